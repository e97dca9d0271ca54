"""A chart as a figure: heading, caption, the drawing at two widths, and the numbers behind it.

Text in an SVG shrinks with it, so each chart is drawn once for a page and once for a phone; the stylesheet shows
the one that fits. Heat maps keep their cells readable and scroll instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hardlook.contract.sections import (
    Chart,
    CurveChart,
    DialChart,
    DistributionChart,
    DotChart,
    Gallery,
    HeatMap,
    ScatterChart,
    SlopeChart,
    Table,
)
from hardlook.report.charts.curves import describe_curves, draw_curves, tabulate_curves
from hardlook.report.charts.dial import describe_dial, draw_dial, tabulate_dial
from hardlook.report.charts.distribution import describe_distribution, draw_distribution, tabulate_distribution
from hardlook.report.charts.dots import describe_dots, draw_dots, tabulate_dots
from hardlook.report.charts.heat import describe_heat, draw_heat, tabulate_heat
from hardlook.report.charts.numbers import MOST_ROWS, Numbers
from hardlook.report.charts.scatter import describe_scatter, draw_scatter, tabulate_scatter
from hardlook.report.charts.slopes import describe_slopes, draw_slopes, tabulate_slopes
from hardlook.report.markup import element, inline, plain
from hardlook.report.numerals import counted, decimals_for, finite
from hardlook.report.tables import draw_table, html_table, small_print

WIDE, NARROW = 840.0, 360.0


@dataclass(frozen=True)
class _Kind:
    """How one kind of chart is drawn, tabulated, said in words, and which numbers it needs at least one of."""

    draw: Callable[[Any, str, float], str]
    tabulate: Callable[[Any], Numbers]
    describe: Callable[[Any], str]
    values: Callable[[Any], list[float]]


_KINDS: dict[type, _Kind] = {
    DotChart: _Kind(draw_dots, tabulate_dots, describe_dots, lambda chart: finite(row.value for row in chart.rows)),
    CurveChart: _Kind(
        draw_curves, tabulate_curves, describe_curves, lambda chart: finite(y for line in chart.lines for y in line.y)
    ),
    DialChart: _Kind(
        draw_dial, tabulate_dial, describe_dial, lambda chart: finite(y for line in chart.lines for y in line.y)
    ),
    HeatMap: _Kind(
        draw_heat, tabulate_heat, describe_heat, lambda chart: finite(value for row in chart.values for value in row)
    ),
    ScatterChart: _Kind(
        draw_scatter, tabulate_scatter, describe_scatter, lambda chart: finite(s.x + s.y for s in chart.spots)
    ),
    SlopeChart: _Kind(
        draw_slopes,
        tabulate_slopes,
        describe_slopes,
        lambda chart: finite(v for row in chart.rows for v in (row.left, row.right)),
    ),
    DistributionChart: _Kind(
        draw_distribution,
        tabulate_distribution,
        describe_distribution,
        lambda chart: finite(v for _, group in chart.groups for v in group),
    ),
}


def draw(block: Chart | Table, *, key: str = "", name: str = "") -> str:
    """The block as an HTML fragment: a figure with title, caption, drawing and the numbers.

    `key` prefixes the ids inside and must differ between the blocks of a page; without one it is made from the
    block itself. `name` is what commands call the block, shown in small print. A gallery needs pictures:
    `galleries.draw_gallery` draws it.

    >>> from hardlook.contract.sections import Dot
    >>> draw(DotChart("IoU by class", "Higher is better.", (Dot("cat", 0.8, 0.7, 0.9),))).count("<svg")
    2
    """
    key = key or "k" + hashlib.sha256(repr(block).encode()).hexdigest()[:10]
    if isinstance(block, Table):
        return draw_table(block, key, name)
    kind = _kind(block)
    heading = element("h3", inline(block.title), id=f"{key}-heading")
    caption = element("p", inline(block.caption), class_="caption") if block.caption else ""
    return element(
        "figure",
        element("figcaption", heading, caption, small_print("figure", name)),
        _drawings(block, kind, key),
        _behind(block, kind, key),
        class_="block",
        id=key,
    )


def draw_svg(block: Chart, *, key: str = "", width: float = NARROW) -> str:
    """The drawing alone at one width, say for a thumbnail; empty where there is nothing to draw."""
    key = key or "k" + hashlib.sha256(repr(block).encode()).hexdigest()[:10]
    kind = _kind(block)
    return kind.draw(block, key, width) if kind.values(block) else ""


def tabulate(block: Chart) -> Table:
    """The numbers behind a chart as a table."""
    numbers = _kind(block).tabulate(block)
    decimals = numbers.decimals
    if decimals is None:
        decimals = decimals_for([cell for row in numbers.rows for cell in row if isinstance(cell, float)])
    return Table(block.title, block.caption, numbers.columns, numbers.rows, decimals)


def describe(block: Chart) -> str:
    """A chart in words, as its text alternative says it."""
    return _kind(block).describe(block)


def _kind(block: Chart) -> _Kind:
    if isinstance(block, Gallery) or type(block) not in _KINDS:
        raise TypeError(f"expected a chart or a table, got {type(block).__name__}; draw_gallery draws galleries")
    return _KINDS[type(block)]


def _drawings(block: Chart, kind: _Kind, key: str) -> str:
    if not kind.values(block):
        return element("p", "There is nothing to draw here: no value was given.", class_="nothing")
    if isinstance(block, HeatMap):
        name = f"{plain(block.title)}, scrollable"
        drawing = kind.draw(block, f"{key}-map", WIDE)
        return element("div", drawing, class_="scroll map", tabindex=0, role="region", aria_label=name)
    return element("div", kind.draw(block, f"{key}-wide", WIDE), class_="wide") + element(
        "div", kind.draw(block, f"{key}-narrow", NARROW), class_="narrow"
    )


def _behind(block: Chart, kind: _Kind, key: str) -> str:
    numbers = kind.tabulate(block)
    if not numbers.rows:
        return ""
    shown = numbers.rows[:MOST_ROWS]
    cut = len(numbers.rows) - len(shown)
    note = element("p", f"The first {len(shown)} rows; {counted(cut, 'more row')} not shown.") if cut else ""
    table = html_table(
        f"{key}-numbers", numbers.columns, shown, decimals=numbers.decimals, title=f"{block.title}, the numbers"
    )
    return element("details", element("summary", "the numbers"), note, table, class_="numbers")
