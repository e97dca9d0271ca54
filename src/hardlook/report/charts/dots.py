"""Dots with intervals, one row each, under group headings; names of reference lines are above and cover nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hardlook.harness.sections import Dot, DotChart
from hardlook.report.charts import drawing as svg
from hardlook.report.charts.palette import ACCENT, MUTED
from hardlook.report.formatting import (
    MISSING,
    choose_decimals,
    format_count,
    format_interval,
    format_number,
    is_number,
    keep_finite,
)
from hardlook.report.html_tables import TableData
from hardlook.report.markup import element

LANE, _MAX_LANES = 16.0, 6
_ROW = 24.0


@dataclass(frozen=True)
class PlacedReference:
    """A reference: its line at `x`, its text from `start` to `stop` in a lane above the plot (0 is the lowest)."""

    x: float
    start: float
    stop: float
    text: str
    lane: int


def place_references(
    references: Sequence[tuple[str, float]], scale: svg.LinearScale, decimals: int, width: float
) -> list[PlacedReference]:
    """Each reference in the lowest lane where its text, centred or beside its line, meets nothing.

    >>> scale = svg.LinearScale(0, 1, 0, 400)
    >>> [placed.lane for placed in place_references((("paper", 0.5), ("chance", 0.52)), scale, 2, 400)]
    [0, 0]
    """
    placed: list[PlacedReference] = []
    known = sorted(((name, value) for name, value in references if is_number(value)), key=lambda pair: pair[1])
    for index, (name, value) in enumerate(known):
        text = f"{name} {format_number(value, decimals)}"
        x, room = scale.at(value), min(svg.text_width(text, svg.SMALL), width - 4)
        later = [scale.at(other) for _, other in known[index + 1 :]]
        placed.append(_place_lowest(x, room, text, placed, later, width))
    return placed


def draw_references(placed: Sequence[PlacedReference], head: float, bottom: float) -> str:
    """The dashed lines from their names down through the plot; `head` is the base of the lowest lane."""
    parts = []
    for reference in placed:
        base = head - reference.lane * LANE
        # A line begins below its text, or beside it.
        top = base + 1 if reference.start < reference.x < reference.stop else base - 12
        parts.append(svg.segment(reference.x, top, reference.x, bottom, MUTED, 1.2, "4 3"))
    for reference in placed:
        base = head - reference.lane * LANE - 3
        room = reference.stop - reference.start + 1
        parts.append(svg.label(reference.start, base, reference.text, size=svg.SMALL, fill=MUTED, room=room, halo=True))
    return element("g", *parts, class_="references")


def _place_lowest(
    x: float, room: float, text: str, placed: list[PlacedReference], later: list[float], width: float
) -> PlacedReference:
    for lane in range(_MAX_LANES):
        for start in (x - room / 2, x - room - 5, x + 5):
            candidate = PlacedReference(x, start, start + room, text, lane)
            if 0 <= start and start + room <= width and _is_free(candidate, placed, later):
                return candidate
    # Nothing is free: it gets a lane of its own, where at worst it covers a line.
    start = max(2.0, min(x - room / 2, width - room - 2))
    return PlacedReference(x, start, start + room, text, max((other.lane for other in placed), default=-1) + 1)


def _is_free(candidate: PlacedReference, placed: list[PlacedReference], later: list[float]) -> bool:
    for other in placed:
        if other.lane == candidate.lane and candidate.start < other.stop + 8 and other.start < candidate.stop + 8:
            return False
        if other.lane >= candidate.lane and candidate.start - 3 < other.x < candidate.stop + 3:
            return False
        if other.lane < candidate.lane and other.start - 3 < candidate.x < other.stop + 3:
            return False
    # Lines still to come may have to pass through this lane.
    return not any(candidate.start - 3 < line < candidate.stop + 3 for line in later)


def draw_dots(chart: DotChart, key: str, width: float) -> str:
    """The chart as SVG: labels at the left, values written at the right, the axis below (and above long ones)."""
    decimals = _choose_decimals(chart)
    texts = [_format_value(row, decimals, whole=width > 600) for row in chart.rows]
    left = min(
        svg.max_text_width([row.label for row in chart.rows], svg.SIZE) + 14 + _get_indent(chart),
        width * (0.36 if width > 600 else 0.44),
    )
    right = width - svg.max_text_width(texts, svg.SMALL) - 14
    numbers = keep_finite(number for row in chart.rows for number in (row.value, row.low, row.high))
    numbers += keep_finite(value for _, value in chart.references)
    scale = svg.fit_scale(numbers, start=left + 8, stop=right - 14, ticks=max(2, int((right - left) / 65)))

    long = len(chart.rows) > 25
    references = place_references(chart.references, scale, decimals, width)
    head = LANE * (1 + max(placed.lane for placed in references)) if references else 4.0
    top = head + (22 if long else 4)
    rows, bottom = _draw_rows(chart, scale, texts, top, width)
    lines = draw_references(references, head, bottom), svg.x_axis(scale, top, bottom, chart.axis, above=long)
    height = bottom + (46 if chart.axis else 24)
    return svg.svg_drawing(key, width, height, chart.title, describe_dots(chart), *lines, rows)


def describe_dots(chart: DotChart) -> str:
    """The text alternative: how many rows, the highest and lowest with their intervals, the references."""
    decimals = _choose_decimals(chart)
    known = [row for row in chart.rows if is_number(row.value)]
    words = [f"{format_count(len(chart.rows), 'value')}{' of ' + chart.axis if chart.axis else ''}."]
    if known:
        high, low = max(known, key=lambda row: row.value), min(known, key=lambda row: row.value)
        words.append(f"Highest: {_describe_row(high, decimals)}.")
        if low is not high:
            words.append(f"Lowest: {_describe_row(low, decimals)}.")
    if len(known) < len(chart.rows):
        words.append(f"{format_count(len(chart.rows) - len(known), 'row')} without a value.")
    words += [f"Reference: {name} {format_number(value, decimals)}." for name, value in chart.references]
    return " ".join(words)


def tabulate_dots(chart: DotChart) -> TableData:
    """The rows as a table; columns that would be empty are left out."""
    grouped = any(row.group for row in chart.rows)
    bounded = any(format_interval(row.low, row.high, 3) for row in chart.rows)
    columns = (*(("group",) if grouped else ()), "name", chart.axis or "value", *(("low", "high") if bounded else ()))
    listed = [*chart.rows, *(Dot(name, value, group="reference") for name, value in chart.references)]
    rows = [
        (*((row.group,) if grouped else ()), row.label, row.value, *((row.low, row.high) if bounded else ()))
        for row in listed
    ]
    return TableData(columns, rows, _choose_decimals(chart))


def _draw_rows(
    chart: DotChart, scale: svg.LinearScale, texts: Sequence[str], top: float, width: float
) -> tuple[str, float]:
    """All rows under their group headings, and where they end."""
    parts, y = [], top
    for group in dict.fromkeys(row.group for row in chart.rows):
        if group:
            parts.append(svg.label(0, y + 17, group, size=svg.SIZE, room=width, weight=600, halo=True))
            y += _ROW
        for row, text in zip(chart.rows, texts, strict=True):
            if row.group == group:
                parts.append(_draw_row(row, text, scale, y + _ROW / 2, indent=_get_indent(chart), width=width))
                y += _ROW
    return "".join(parts), y + 4


def _draw_row(row: Dot, text: str, scale: svg.LinearScale, y: float, indent: float, width: float) -> str:
    name = svg.label(indent, y + 4, row.label, room=scale.start - 16 - indent)
    value = svg.label(width, y + 4, text, size=svg.SMALL, anchor="end", fill=MUTED)
    if not is_number(row.value):
        return element("g", name, value, class_="row")
    whisker = ""
    if is_number(row.low) and is_number(row.high):
        whisker = svg.segment(scale.at(row.low), y, scale.at(row.high), y, ACCENT, 2.4)
    return element("g", name, whisker, svg.disc(scale.at(row.value), y, 4.2, ACCENT, f"{row.label}: {text}"), value)


def _get_indent(chart: DotChart) -> float:
    return 12.0 if any(row.group for row in chart.rows) else 0.0


def _format_value(row: Dot, decimals: int, *, whole: bool) -> str:
    value = format_number(row.value, decimals)
    bounds = format_interval(row.low, row.high, decimals)
    return f"{value}  ({bounds})" if bounds and whole and value != MISSING else value


def _describe_row(row: Dot, decimals: int) -> str:
    bounds = format_interval(row.low, row.high, decimals)
    return f"{row.label}{' in ' + row.group if row.group else ''} {format_number(row.value, decimals)}" + (
        f" ({bounds})" if bounds else ""
    )


def _choose_decimals(chart: DotChart) -> int:
    return choose_decimals([number for row in chart.rows for number in (row.value, row.low, row.high)])
