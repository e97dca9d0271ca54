"""A chart as an HTML figure: heading, caption, the drawing at two widths, and its numbers as a table.

Text in an SVG shrinks with it, so that each chart is drawn once for a page and once for a phone; the stylesheet shows
the one that fits. Heat maps keep their cells readable and scroll instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hardlook.harness import sections
from hardlook.report.charts import curves, distribution, dots, heat_map, scatter, slopes
from hardlook.report.charts.flat import describe_flat
from hardlook.report.formatting import choose_decimals, format_count, is_number
from hardlook.report.html_tables import TableData, draw_block_name, draw_html_table, draw_table
from hardlook.report.markup import element, render_inline, strip_backticks

WIDE, NARROW = 840.0, 360.0
MAX_ROWS = 1000


@dataclass(frozen=True)
class _Kind:
    """How a kind of chart is drawn, tabulated and described."""

    draw: Callable[[Any, str, float], str]
    tabulate: Callable[[Any], TableData]
    describe: Callable[[Any], str]


_KINDS: dict[type, _Kind] = {
    sections.DotChart: _Kind(dots.draw_dots, dots.tabulate_dots, dots.describe_dots),
    sections.CurveChart: _Kind(curves.draw_curves, curves.tabulate_curves, curves.describe_curves),
    sections.DialChart: _Kind(curves.draw_dial, curves.tabulate_dial, curves.describe_dial),
    sections.HeatMap: _Kind(heat_map.draw_heat, heat_map.tabulate_heat, heat_map.describe_heat),
    sections.ScatterChart: _Kind(scatter.draw_scatter, scatter.tabulate_scatter, scatter.describe_scatter),
    sections.SlopeChart: _Kind(slopes.draw_slopes, slopes.tabulate_slopes, slopes.describe_slopes),
    sections.DistributionChart: _Kind(
        distribution.draw_distribution, distribution.tabulate_distribution, distribution.describe_distribution
    ),
}


def draw(block: sections.Chart | sections.Table, *, key: str = "", name: str = "") -> str:
    """The block as an HTML fragment: a figure with title, caption, drawing and the numbers.

    A chart whose values are all equal is a sentence in place of caption and drawing.

    `key` prefixes the ids inside and must differ between the blocks of a page; without one it is made from the
    block itself. `name` is the name of the block for commands, shown in small print. A gallery needs pictures:
    `galleries.draw_gallery` draws it.

    >>> from hardlook.harness.sections import Dot, DotChart
    >>> draw(DotChart("IoU by class", "Higher is better.", (Dot("cat", 0.8, 0.7, 0.9),))).count("<svg")
    2
    """
    key = key or "k" + hashlib.sha256(repr(block).encode()).hexdigest()[:10]
    if isinstance(block, sections.Table):
        return draw_table(block, key, name)
    kind = _get_kind(block)
    heading = element("h3", render_inline(block.title), id=f"{key}-heading")
    if flat := describe_flat(block):
        sentence = element("p", render_inline(flat)) + draw_block_name("figure", name)
        return element("figure", heading, sentence, _draw_numbers(block, kind, key), class_="block flat", id=key)
    caption = element("p", render_inline(block.caption), class_="caption") if block.caption else ""
    return element(
        "figure",
        element("figcaption", heading, caption, draw_block_name("figure", name)),
        _draw_both_widths(block, kind, key),
        _draw_numbers(block, kind, key),
        class_="block",
        id=key,
    )


def draw_svg(block: sections.Chart, *, key: str = "", width: float = NARROW) -> str:
    """The drawing alone at one width, say for a thumbnail; empty where there is nothing to draw."""
    key = key or "k" + hashlib.sha256(repr(block).encode()).hexdigest()[:10]
    return _get_kind(block).draw(block, key, width) if _has_values(block) else ""


def tabulate(block: sections.Chart) -> sections.Table:
    """The numbers of a chart as a table."""
    numbers = _get_kind(block).tabulate(block)
    decimals = numbers.decimals
    if decimals is None:
        decimals = choose_decimals([cell for row in numbers.rows for cell in row if isinstance(cell, float)])
    return sections.Table(block.title, block.caption, numbers.columns, numbers.rows, decimals)


def describe(block: sections.Chart) -> str:
    """The text alternative of a chart."""
    return _get_kind(block).describe(block)


def _get_kind(block: sections.Chart) -> _Kind:
    if isinstance(block, sections.Gallery) or type(block) not in _KINDS:
        raise TypeError(f"expected a chart or a table, got {type(block).__name__}; draw_gallery draws galleries")
    return _KINDS[type(block)]


def _has_values(block: sections.Chart) -> bool:
    """Whether there is a value to draw."""
    values: Iterable[float]
    match block:
        case sections.DotChart():
            values = (row.value for row in block.rows)
        case sections.CurveChart() | sections.DialChart():
            values = (y for line in block.lines for y in line.y)
        case sections.HeatMap():
            values = (value for row in block.values for value in row)
        case sections.ScatterChart():
            values = (spot.x + spot.y for spot in block.spots)
        case sections.SlopeChart():
            values = (value for row in block.rows for value in (row.left, row.right))
        case sections.DistributionChart():
            values = (value for _, group in block.groups for value in group)
    return any(map(is_number, values))


def _draw_both_widths(block: sections.Chart, kind: _Kind, key: str) -> str:
    if not _has_values(block):
        return element("p", "There is nothing to draw here: no value was given.", class_="nothing")
    if isinstance(block, sections.HeatMap):
        name = f"{strip_backticks(block.title)}, scrollable"
        drawing = kind.draw(block, f"{key}-map", WIDE)
        return element("div", drawing, class_="scroll map", tabindex=0, role="region", aria_label=name)
    widths = (("wide", WIDE), ("narrow", NARROW))
    return "".join(element("div", kind.draw(block, f"{key}-{name}", width), class_=name) for name, width in widths)


def _draw_numbers(block: sections.Chart, kind: _Kind, key: str) -> str:
    numbers = kind.tabulate(block)
    if not numbers.rows:
        return ""
    shown = numbers.rows[:MAX_ROWS]
    cut = len(numbers.rows) - len(shown)
    note = element("p", f"The first {len(shown)} rows; {format_count(cut, 'more row')} not shown.") if cut else ""
    table = draw_html_table(
        f"{key}-numbers", numbers.columns, shown, decimals=numbers.decimals, title=f"{block.title}, the numbers"
    )
    return element("details", element("summary", "the numbers"), note, table, class_="numbers")
