"""Slopes between two models: one line a row, named and numbered at its ends, so that no legend is needed."""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.contract.sections import Slope, SlopeChart
from hardlook.report.charts.lettering import SIZE, SMALL, label, spread, text_width, widest
from hardlook.report.charts.numbers import Cell, Numbers
from hardlook.report.charts.palette import MUTED, RULE, category
from hardlook.report.charts.scales import LinearScale, fit
from hardlook.report.charts.svg import disc, drawing, segment
from hardlook.report.markup import element, escape
from hardlook.report.numerals import counted, decimals_for, is_number, numeral

_GAP = 16.0
_TOP = 34.0
_LEAD = 16.0


def draw_slopes(chart: SlopeChart, key: str, width: float) -> str:
    """The chart as SVG: rises and falls differ in colour and dash, names stand at both ends where there is room."""
    rows = [row for row in chart.rows if is_number(row.left) or is_number(row.right)]
    wide, decimals = width > 600, _decimals(chart)
    lefts = [_left_text(row, decimals, named=wide) for row in rows]
    rights = [_right_text(row, decimals) for row in rows]
    most = 0.36 if wide else 0.5
    left = min(widest(lefts, SMALL, bold=True) + _LEAD + 4, width * (0.36 if wide else 0.24))
    right = width - min(widest([*rights, _shown(chart.right)], SMALL, bold=True) + _LEAD + 4, width * most)
    bottom = _TOP + max(240.0 if wide else 220.0, _GAP * 1.2 * len(rows))
    numbers = [number for row in rows for number in (row.left, row.right)]
    scale = fit(numbers, start=bottom, stop=_TOP, ticks=5, tight=True)
    parts = [
        _left_heading(chart.left, left, room=(left + right) / 2 - 8),
        label(right, _TOP - 16, chart.right, size=SIZE, room=width - right, weight=600),
        segment(left, _TOP - 6, left, bottom + 6, RULE),
        segment(right, _TOP - 6, right, bottom + 6, RULE),
        *(_line(row, scale, left, right, decimals) for row in rows),
        _ends(rows, lefts, [row.left for row in rows], scale, (left, 0.0, bottom)),
        _ends(rows, rights, [row.right for row in rows], scale, (right, width, bottom)),
    ]
    if chart.axis:
        middle = (left + right) / 2
        parts.append(
            label(
                middle,
                bottom + 30,
                chart.axis,
                size=SMALL,
                anchor="middle",
                fill=MUTED,
                room=2 * min(middle, width - middle) - 4,
            )
        )
    return drawing(key, width, bottom + (40 if chart.axis else 20), chart.title, describe_slopes(chart), *parts)


def describe_slopes(chart: SlopeChart) -> str:
    """The chart in words: how many rise and fall, and the steepest of both."""
    known = [row for row in chart.rows if is_number(row.left) and is_number(row.right)]
    decimals = _decimals(chart)
    rises, falls = [row for row in known if row.right > row.left], [row for row in known if row.right < row.left]
    words = [
        f"{counted(len(chart.rows), 'row')}{' of ' + chart.axis if chart.axis else ''} from {chart.left} to "
        f"{chart.right}: {len(rises)} rise, {len(falls)} fall, {len(known) - len(rises) - len(falls)} stay."
    ]
    for name, some in (("Largest rise", rises), ("Largest fall", falls)):
        if some:
            row = max(some, key=lambda row: abs(row.right - row.left))
            words.append(f"{name}: {row.label}, {numeral(row.left, decimals)} to {numeral(row.right, decimals)}.")
    if len(known) < len(chart.rows):
        words.append(f"{counted(len(chart.rows) - len(known), 'row')} without both values.")
    return " ".join(words)


def tabulate_slopes(chart: SlopeChart) -> Numbers:
    """One row a line, with the difference."""
    noted = any(row.note for row in chart.rows)
    rows: list[tuple[Cell, ...]] = []
    for row in chart.rows:
        both = is_number(row.left) and is_number(row.right)
        moved = row.right - row.left if both else None
        rows.append((row.label, row.left, row.right, moved, *((row.note,) if noted else ())))
    return Numbers(
        ("name", chart.left, chart.right, "difference", *(("note",) if noted else ())), rows, _decimals(chart)
    )


def _left_heading(name: str, x: float, *, room: float) -> str:
    """The name over its column, ending there; a long one begins at the edge and may reach to the middle."""
    if text_width(name, SIZE, bold=True) <= x:
        return label(x, _TOP - 16, name, size=SIZE, anchor="end", weight=600)
    return label(0, _TOP - 16, name, size=SIZE, room=room, weight=600)


def _line(row: Slope, scale: LinearScale, left: float, right: float, decimals: int) -> str:
    colour, dash = _look(row)
    title = element("title", escape(f"{row.label}: {numeral(row.left, decimals)} to {numeral(row.right, decimals)}"))
    ends = [(x, value) for x, value in ((left, row.left), (right, row.right)) if is_number(value)]
    discs = "".join(disc(x, scale.at(value), 3.6, colour) for x, value in ends)
    if len(ends) < 2:
        return element("g", title, discs, class_="slope")
    stroke = segment(left, scale.at(row.left), right, scale.at(row.right), colour, 1.8, dash)
    return element("g", title, stroke, discs, class_="slope")


def _ends(
    rows: Sequence[Slope],
    texts: Sequence[str],
    values: Sequence[float],
    scale: LinearScale,
    measures: tuple[float, float, float],
) -> str:
    """The texts of one side, moved apart; `measures` are the column's x, the drawing's edge beside it, the bottom."""
    x, edge, bottom = measures
    shown = [(row, text, value) for row, text, value in zip(rows, texts, values, strict=True) if is_number(value)]
    places = spread([scale.at(value) for _, _, value in shown], gap=_GAP, low=_TOP, high=bottom)
    away, anchor = (-_LEAD, "end") if edge < x else (_LEAD, "start")
    parts = []
    for (row, text, value), place in zip(shown, places, strict=True):
        if abs(place - scale.at(value)) > 3:
            parts.append(segment(x + away * 0.3, scale.at(value), x + away * 0.8, place, MUTED, 0.7))
        room = abs(edge - x) - _LEAD
        parts.append(label(x + away, place + 4, text, size=SMALL, anchor=anchor, fill=_look(row)[0], room=room))
    return element("g", *parts, class_="ends")


def _look(row: Slope) -> tuple[str, str | None]:
    """Colour and dash: what falls is told from what rises without colour too."""
    if not (is_number(row.left) and is_number(row.right)) or row.left == row.right:
        return MUTED, None
    return (category(0), None) if row.right > row.left else (category(1), "7 3")


def _left_text(row: Slope, decimals: int, *, named: bool) -> str:
    value = numeral(row.left, decimals)
    return f"{row.label}  {value}" if named else value


def _right_text(row: Slope, decimals: int) -> str:
    return f"{numeral(row.right, decimals)}  {row.label}" + (f" ({row.note})" if row.note else "")


def _shown(name: str) -> str:
    """A model's name as far as it asks for room: a very long one is cut instead."""
    return name if text_width(name, SIZE) < 180 else name[:24]


def _decimals(chart: SlopeChart) -> int:
    return decimals_for([number for row in chart.rows for number in (row.left, row.right)])
