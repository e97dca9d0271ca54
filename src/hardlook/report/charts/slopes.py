"""Slope charts: one line per row from one model to another, with names and numbers at its ends."""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.harness.sections import Slope, SlopeChart
from hardlook.report.charts import drawing as svg
from hardlook.report.charts.palette import MUTED, RULE, category_colour
from hardlook.report.formatting import choose_decimals, format_count, format_number, is_number
from hardlook.report.html_tables import Cell, TableData
from hardlook.report.markup import element, escape

_GAP, _TOP, _LEAD = 16.0, 34.0, 16.0


def draw_slopes(chart: SlopeChart, key: str, width: float) -> str:
    """The chart as SVG: rises and falls differ in colour and dash, with names at both ends where there is room."""
    rows = [row for row in chart.rows if is_number(row.left) or is_number(row.right)]
    wide, decimals = width > 600, _choose_decimals(chart)
    lefts = [(f"{row.label}  " if wide else "") + format_number(row.left, decimals) for row in rows]
    rights = [
        f"{format_number(row.right, decimals)}  {row.label}" + (f" ({row.note})" if row.note else "") for row in rows
    ]
    # A very long name of a model is cut.
    heading = chart.right if svg.text_width(chart.right, svg.SIZE) < 180 else chart.right[:24]
    left = min(svg.max_text_width(lefts, svg.SMALL, bold=True) + _LEAD + 4, width * (0.36 if wide else 0.24))
    needed = svg.max_text_width([*rights, heading], svg.SMALL, bold=True) + _LEAD + 4
    right = width - min(needed, width * (0.36 if wide else 0.5))
    bottom = _TOP + max(240.0 if wide else 220.0, _GAP * 1.2 * len(rows))
    numbers = [number for row in rows for number in (row.left, row.right)]
    scale = svg.fit_scale(numbers, start=bottom, stop=_TOP, ticks=5, tight=True)
    parts = [
        _draw_left_heading(chart.left, left, room=(left + right) / 2 - 8),
        svg.label(right, _TOP - 16, chart.right, size=svg.SIZE, room=width - right, weight=600),
        svg.segment(left, _TOP - 6, left, bottom + 6, RULE),
        svg.segment(right, _TOP - 6, right, bottom + 6, RULE),
        *(_draw_line(row, scale, left, right, decimals) for row in rows),
        _draw_ends(rows, lefts, [row.left for row in rows], scale, (left, 0.0, bottom)),
        _draw_ends(rows, rights, [row.right for row in rows], scale, (right, width, bottom)),
    ]
    if chart.axis:
        middle = (left + right) / 2
        room = 2 * min(middle, width - middle) - 4
        parts.append(svg.label(middle, bottom + 30, chart.axis, size=svg.SMALL, anchor="middle", fill=MUTED, room=room))
    return svg.svg_drawing(key, width, bottom + (40 if chart.axis else 20), chart.title, describe_slopes(chart), *parts)


def describe_slopes(chart: SlopeChart) -> str:
    """The text alternative: how many rise and fall, and the steepest of both."""
    known = [row for row in chart.rows if is_number(row.left) and is_number(row.right)]
    decimals = _choose_decimals(chart)
    rises, falls = [row for row in known if row.right > row.left], [row for row in known if row.right < row.left]
    words = [
        f"{format_count(len(chart.rows), 'row')}{' of ' + chart.axis if chart.axis else ''} from {chart.left} to "
        f"{chart.right}: {len(rises)} rise, {len(falls)} fall, {len(known) - len(rises) - len(falls)} stay."
    ]
    for name, some in (("Largest rise", rises), ("Largest fall", falls)):
        if some:
            row = max(some, key=lambda row: abs(row.right - row.left))
            words.append(
                f"{name}: {row.label}, {format_number(row.left, decimals)} to {format_number(row.right, decimals)}."
            )
    if len(known) < len(chart.rows):
        words.append(f"{format_count(len(chart.rows) - len(known), 'row')} without both values.")
    return " ".join(words)


def tabulate_slopes(chart: SlopeChart) -> TableData:
    """One row per line, with the difference."""
    noted = any(row.note for row in chart.rows)
    rows: list[tuple[Cell, ...]] = []
    for row in chart.rows:
        both = is_number(row.left) and is_number(row.right)
        moved = row.right - row.left if both else None
        rows.append((row.label, row.left, row.right, moved, *((row.note,) if noted else ())))
    return TableData(
        ("name", chart.left, chart.right, "difference", *(("note",) if noted else ())), rows, _choose_decimals(chart)
    )


def _draw_left_heading(name: str, x: float, *, room: float) -> str:
    """The name over its column, ending there; a long one begins at the edge and may reach to the middle."""
    if svg.text_width(name, svg.SIZE, bold=True) <= x:
        return svg.label(x, _TOP - 16, name, size=svg.SIZE, anchor="end", weight=600)
    return svg.label(0, _TOP - 16, name, size=svg.SIZE, room=room, weight=600)


def _draw_line(row: Slope, scale: svg.LinearScale, left: float, right: float, decimals: int) -> str:
    colour, dash = _choose_style(row)
    title = element(
        "title", escape(f"{row.label}: {format_number(row.left, decimals)} to {format_number(row.right, decimals)}")
    )
    ends = [(x, value) for x, value in ((left, row.left), (right, row.right)) if is_number(value)]
    discs = "".join(svg.disc(x, scale.at(value), 3.6, colour) for x, value in ends)
    if len(ends) < 2:
        return element("g", title, discs, class_="slope")
    stroke = svg.segment(left, scale.at(row.left), right, scale.at(row.right), colour, 1.8, dash)
    return element("g", title, stroke, discs, class_="slope")


def _draw_ends(
    rows: Sequence[Slope],
    texts: Sequence[str],
    values: Sequence[float],
    scale: svg.LinearScale,
    measures: tuple[float, float, float],
) -> str:
    """The texts of one side, moved apart; `measures` are the column's x, the drawing's edge beside it, the bottom."""
    x, edge, bottom = measures
    shown = [(row, text, value) for row, text, value in zip(rows, texts, values, strict=True) if is_number(value)]
    places = svg.space_apart([scale.at(value) for _, _, value in shown], gap=_GAP, low=_TOP, high=bottom)
    away, anchor = (-_LEAD, "end") if edge < x else (_LEAD, "start")
    parts = []
    for (row, text, value), place in zip(shown, places, strict=True):
        if abs(place - scale.at(value)) > 3:
            parts.append(svg.segment(x + away * 0.3, scale.at(value), x + away * 0.8, place, MUTED, 0.7))
        room = abs(edge - x) - _LEAD
        parts.append(
            svg.label(x + away, place + 4, text, size=svg.SMALL, anchor=anchor, fill=_choose_style(row)[0], room=room)
        )
    return element("g", *parts, class_="ends")


def _choose_style(row: Slope) -> tuple[str, str | None]:
    """Colour and dash: rises and falls differ in both."""
    if not (is_number(row.left) and is_number(row.right)) or row.left == row.right:
        return MUTED, None
    return (category_colour(0), None) if row.right > row.left else (category_colour(1), "7 3")


def _choose_decimals(chart: SlopeChart) -> int:
    return choose_decimals([number for row in chart.rows for number in (row.left, row.right)])
