"""Charts, tables and galleries as data: fixed columns per kind of block, one row per mark.

`axes` names the axes; `references` are the labelled lines of a chart. A distribution is exported by its counts, mean
and quartiles, since its values are in the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hardlook.harness.sections import (
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
from hardlook.report.block_names import make_name
from hardlook.report.block_names import name_blocks as named_blocks
from hardlook.report.charts.distribution import tabulate_distribution
from hardlook.report.json_values import to_json_value

if TYPE_CHECKING:
    pass


Row = Sequence[Any]


@dataclass(frozen=True)
class BlockData:
    """A block as columns and rows, with the names of its axes and its reference lines."""

    kind: str
    columns: Sequence[str]
    rows: Sequence[Row]
    axes: dict[str, str] = field(default_factory=dict)
    references: Sequence[tuple[str, float]] = ()


def build_section_data(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Every section with its blocks, each with a unique name."""
    return [
        {
            "title": section.title,
            "text": section.text,
            "blocks": [_build_block(block, name) for block, name in zip(section.blocks, named, strict=True)],
        }
        for section, named in zip(sections, name_all_blocks(sections), strict=True)
    ]


def _build_block(block: Any, name: str) -> dict[str, Any]:
    data = tabulate_block(block)
    return {
        "type": data.kind,
        "name": name,
        "title": block.title,
        "caption": block.caption,
        "axes": data.axes,
        "columns": list(data.columns),
        "rows": to_json_value(data.rows),
        "references": [{"label": label, "value": to_json_value(value)} for label, value in data.references],
    }


def tabulate_block(block: Any) -> BlockData:
    """The block as columns and rows.

    >>> from hardlook.harness.sections import Dot
    >>> chart = DotChart("IoU by class", "Higher is better.", (Dot("cat", 0.8, 0.7, 0.9),), axis="IoU")
    >>> tabulate_block(chart).columns, tabulate_block(chart).rows
    (('group', 'label', 'value', 'low', 'high'), [('', 'cat', 0.8, 0.7, 0.9)])
    """
    try:
        return _KINDS[type(block)](block)
    except KeyError:
        raise TypeError(f"expected a block of a report, got {type(block).__name__}") from None


def _list_points(lines: Sequence[Line]) -> list[tuple[Any, ...]]:
    points: list[tuple[Any, ...]] = []
    for line in lines:
        low, high = ([None] * len(line.x) if band is None else band for band in (line.low, line.high))
        points += [(line.name, *point) for point in zip(line.x, line.y, low, high, strict=True)]
    return points


def _dots(chart: DotChart) -> BlockData:
    rows = [(row.group, row.label, row.value, row.low, row.high) for row in chart.rows]
    return BlockData("dots", ("group", "label", "value", "low", "high"), rows, {"value": chart.axis}, chart.references)


def _curves(chart: CurveChart) -> BlockData:
    axes = {"x": chart.x_axis, "y": chart.y_axis}
    return BlockData("curves", ("line", "x", "y", "low", "high"), _list_points(chart.lines), axes)


def _dial(chart: DialChart) -> BlockData:
    follows = {line.name: rho for line, rho in zip(chart.lines, chart.spearman, strict=False)}
    rows = [(*point, follows.get(point[0]), point[0] in chart.controls) for point in _list_points(chart.lines)]
    columns = ("line", "x", "y", "low", "high", "spearman", "control")
    return BlockData("dial", columns, rows, {"x": "setting of the dial", "y": chart.score})


def _heat(chart: HeatMap) -> BlockData:
    rows = [(name, *values) for name, values in zip(chart.rows, chart.values, strict=True)]
    axes = {"row": chart.row_axis, "column": chart.column_axis}
    return BlockData("heat-map", ("row", *chart.columns), rows, axes)


def _scatter(chart: ScatterChart) -> BlockData:
    rows = [(spot.group, spot.label, spot.x, spot.y) for spot in chart.spots]
    return BlockData("scatter", ("group", "label", "x", "y"), rows, {"x": chart.x_axis, "y": chart.y_axis})


def _distribution(chart: DistributionChart) -> BlockData:
    summary = tabulate_distribution(chart)
    return BlockData("distribution", summary.columns, summary.rows, {"value": chart.axis})


def _slopes(chart: SlopeChart) -> BlockData:
    rows = [(row.label, row.left, row.right, row.note) for row in chart.rows]
    axes = {"left": chart.left, "right": chart.right, "value": chart.axis}
    return BlockData("slope", ("label", "left", "right", "note"), rows, axes)


def _table(table: Table) -> BlockData:
    width = len(table.columns)
    return BlockData("table", table.columns, [(*row, *[None] * (width - len(row))) for row in table.rows])


def _gallery(gallery: Gallery) -> BlockData:
    return BlockData("gallery", ("unit", "caption"), [(example.unit, example.caption) for example in gallery.examples])


_KINDS: dict[type, Callable[[Any], BlockData]] = {
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


def name_all_blocks(sections: Sequence[Section]) -> list[list[str]]:
    """A unique name for each block of each section: those of `name_blocks`, and names for galleries.

    >>> from hardlook.harness.sections import Table
    >>> iou = Table("IoU of each class", "", (), ())
    >>> name_all_blocks([Section("a", "", (iou, Gallery("Worst", "", ()))), Section("b", "", (iou,))])
    [['iou-of-each-class', 'worst'], ['iou-of-each-class-2']]
    """
    taken = dict.fromkeys(named_blocks(sections))
    # These are in the order of the blocks.
    in_order = iter(list(taken))

    def name(block: object) -> str:
        if not isinstance(block, Gallery):
            return next(in_order)
        unique, number = make_name(block.title), 1
        while unique in taken:
            number += 1
            unique = f"{make_name(block.title)}-{number}"
        taken[unique] = None
        return unique

    return [[name(block) for block in section.blocks] for section in sections]
