"""Charts, tables and galleries as data: fixed columns a kind, one row a mark.

`axes` says what the numbers are; `references` are the labelled lines of a chart. A distribution is exported by its
counts, mean and quartiles, for its values are in the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hardlook.contract.sections import (
    CurveChart,
    DialChart,
    DistributionChart,
    DotChart,
    Gallery,
    HeatMap,
    Line,
    ScatterChart,
    Section,
    SlopeChart,
    Table,
)
from hardlook.export.plain_values import plain
from hardlook.report.charts.distribution import tabulate_distribution

Row = Sequence[Any]


@dataclass(frozen=True)
class Marks:
    """What a block shows: columns and rows, the words on its axes, its reference lines."""

    kind: str
    columns: Sequence[str]
    rows: Sequence[Row]
    axes: dict[str, str] = field(default_factory=dict)
    references: Sequence[tuple[str, float]] = ()


def marks_of(block: Any) -> Marks:
    """The block as columns and rows.

    >>> from hardlook.contract.sections import Dot
    >>> chart = DotChart("IoU by class", "Higher is better.", (Dot("cat", 0.8, 0.7, 0.9),), axis="IoU")
    >>> marks_of(chart).columns, marks_of(chart).rows
    (('group', 'label', 'value', 'low', 'high'), [('', 'cat', 0.8, 0.7, 0.9)])
    """
    try:
        return _KINDS[type(block)](block)
    except KeyError:
        raise TypeError(f"expected a block of a report, got {type(block).__name__}") from None


def sections_as_data(sections: Sequence[Section], names: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Every section with its blocks; `names` has a name for each block of each section."""
    return [
        {
            "title": section.title,
            "text": section.text,
            "blocks": [_data(block, name) for block, name in zip(section.blocks, named, strict=True)],
        }
        for section, named in zip(sections, names, strict=True)
    ]


def _data(block: Any, name: str) -> dict[str, Any]:
    marks = marks_of(block)
    return {
        "type": marks.kind,
        "name": name,
        "title": block.title,
        "caption": block.caption,
        "axes": marks.axes,
        "columns": list(marks.columns),
        "rows": plain(marks.rows),
        "references": [{"label": label, "value": plain(value)} for label, value in marks.references],
    }


def _dots(chart: DotChart) -> Marks:
    rows = [(row.group, row.label, row.value, row.low, row.high) for row in chart.rows]
    return Marks("dots", ("group", "label", "value", "low", "high"), rows, {"value": chart.axis}, chart.references)


def _points(lines: Sequence[Line]) -> list[tuple[Any, ...]]:
    points: list[tuple[Any, ...]] = []
    for line in lines:
        low, high = ([None] * len(line.x) if band is None else band for band in (line.low, line.high))
        points += [(line.name, *point) for point in zip(line.x, line.y, low, high, strict=True)]
    return points


def _curves(chart: CurveChart) -> Marks:
    axes = {"x": chart.x_axis, "y": chart.y_axis}
    return Marks("curves", ("line", "x", "y", "low", "high"), _points(chart.lines), axes)


def _dial(chart: DialChart) -> Marks:
    follows = {line.name: rho for line, rho in zip(chart.lines, chart.spearman, strict=False)}
    rows = [(*point, follows.get(point[0]), point[0] in chart.controls) for point in _points(chart.lines)]
    columns = ("line", "x", "y", "low", "high", "spearman", "control")
    return Marks("dial", columns, rows, {"x": "setting of the dial", "y": chart.score})


def _heat(chart: HeatMap) -> Marks:
    rows = [(name, *values) for name, values in zip(chart.rows, chart.values, strict=True)]
    axes = {"row": chart.row_axis, "column": chart.column_axis}
    return Marks("heat-map", ("row", *chart.columns), rows, axes)


def _scatter(chart: ScatterChart) -> Marks:
    rows = [(spot.group, spot.label, spot.x, spot.y) for spot in chart.spots]
    return Marks("scatter", ("group", "label", "x", "y"), rows, {"x": chart.x_axis, "y": chart.y_axis})


def _distribution(chart: DistributionChart) -> Marks:
    summary = tabulate_distribution(chart)
    return Marks("distribution", summary.columns, summary.rows, {"value": chart.axis})


def _slopes(chart: SlopeChart) -> Marks:
    rows = [(row.label, row.left, row.right, row.note) for row in chart.rows]
    axes = {"left": chart.left, "right": chart.right, "value": chart.axis}
    return Marks("slope", ("label", "left", "right", "note"), rows, axes)


def _table(table: Table) -> Marks:
    width = len(table.columns)
    return Marks("table", table.columns, [(*row, *[None] * (width - len(row))) for row in table.rows])


def _gallery(gallery: Gallery) -> Marks:
    return Marks("gallery", ("unit", "caption"), [(example.unit, example.caption) for example in gallery.examples])


_KINDS: dict[type, Callable[[Any], Marks]] = {
    DotChart: _dots,
    CurveChart: _curves,
    DialChart: _dial,
    HeatMap: _heat,
    ScatterChart: _scatter,
    DistributionChart: _distribution,
    SlopeChart: _slopes,
    Table: _table,
    Gallery: _gallery,
}
