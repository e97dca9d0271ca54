"""Dots with intervals, one row each, under group headings and against labelled reference lines."""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.contract.sections import Dot, DotChart
from hardlook.report.charts.lettering import SIZE, SMALL, label, widest
from hardlook.report.charts.numbers import Numbers
from hardlook.report.charts.palette import ACCENT, MUTED
from hardlook.report.charts.references import LANE, draw_references, place_references
from hardlook.report.charts.scales import LinearScale, fit
from hardlook.report.charts.svg import disc, drawing, segment, x_axis
from hardlook.report.markup import element
from hardlook.report.numerals import NOTHING, counted, decimals_for, finite, is_number, numeral, span

_ROW = 24.0


def draw_dots(chart: DotChart, key: str, width: float) -> str:
    """The chart as SVG: labels at the left, values written at the right, the axis below (and above long ones)."""
    decimals = _decimals(chart)
    texts = [_value_text(row, decimals, whole=width > 600) for row in chart.rows]
    left = min(widest([row.label for row in chart.rows], SIZE) + 14 + _indent(chart), width * 0.36)
    right = width - widest(texts, SMALL) - 14
    numbers = finite(number for row in chart.rows for number in (row.value, row.low, row.high))
    numbers += finite(value for _, value in chart.references)
    scale = fit(numbers, start=left + 8, stop=right - 14, ticks=max(2, int((right - left) / 65)))

    long = len(chart.rows) > 25
    references = place_references(chart.references, scale, decimals, width)
    head = LANE * (1 + max(placed.lane for placed in references)) if references else 4.0
    top = head + (22 if long else 4)
    rows, bottom = _rows(chart, scale, texts, top, width)
    return drawing(
        key,
        width,
        bottom + (46 if chart.axis else 24),
        chart.title,
        describe_dots(chart),
        draw_references(references, head, bottom),
        x_axis(scale, top, bottom, chart.axis, above=long),
        rows,
    )


def describe_dots(chart: DotChart) -> str:
    """The chart in words: how many rows, the highest and lowest with their intervals, the references."""
    decimals = _decimals(chart)
    known = [row for row in chart.rows if is_number(row.value)]
    words = [f"{counted(len(chart.rows), 'value')}{' of ' + chart.axis if chart.axis else ''}."]
    if known:
        high, low = max(known, key=lambda row: row.value), min(known, key=lambda row: row.value)
        words.append(f"Highest: {_said(high, decimals)}.")
        if low is not high:
            words.append(f"Lowest: {_said(low, decimals)}.")
    if len(known) < len(chart.rows):
        words.append(f"{counted(len(chart.rows) - len(known), 'row')} without a value.")
    words += [f"Reference: {name} {numeral(value, decimals)}." for name, value in chart.references]
    return " ".join(words)


def tabulate_dots(chart: DotChart) -> Numbers:
    """The rows as a table; columns that would be empty are left out."""
    grouped = any(row.group for row in chart.rows)
    bounded = any(span(row.low, row.high, 3) for row in chart.rows)
    columns = (*(("group",) if grouped else ()), "name", chart.axis or "value", *(("low", "high") if bounded else ()))
    listed = [*chart.rows, *(Dot(name, value, group="reference") for name, value in chart.references)]
    rows = [
        (*((row.group,) if grouped else ()), row.label, row.value, *((row.low, row.high) if bounded else ()))
        for row in listed
    ]
    return Numbers(columns, rows, _decimals(chart))


def _rows(chart: DotChart, scale: LinearScale, texts: Sequence[str], top: float, width: float) -> tuple[str, float]:
    """All rows under their group headings, and where they end."""
    parts, y = [], top
    groups = list(dict.fromkeys(row.group for row in chart.rows))
    for group in groups:
        if group:
            parts.append(label(0, y + 17, group, size=SIZE, room=width, weight=600, halo=True))
            y += _ROW
        for row, text in zip(chart.rows, texts, strict=True):
            if row.group == group:
                parts.append(_row(row, text, scale, y + _ROW / 2, indent=_indent(chart), width=width))
                y += _ROW
    return "".join(parts), y + 4


def _row(row: Dot, text: str, scale: LinearScale, y: float, indent: float, width: float) -> str:
    name = label(indent, y + 4, row.label, room=scale.start - 16 - indent)
    value = label(width, y + 4, text, size=SMALL, anchor="end", fill=MUTED)
    if not is_number(row.value):
        return element("g", name, value, class_="row")
    whisker = ""
    if span(row.low, row.high, 3) and row.low is not None and row.high is not None:
        whisker = segment(scale.at(row.low), y, scale.at(row.high), y, ACCENT, 2.4)
    return element("g", name, whisker, disc(scale.at(row.value), y, 4.2, ACCENT, f"{row.label}: {text}"), value)


def _indent(chart: DotChart) -> float:
    return 12.0 if any(row.group for row in chart.rows) else 0.0


def _value_text(row: Dot, decimals: int, *, whole: bool) -> str:
    value = numeral(row.value, decimals)
    bounds = span(row.low, row.high, decimals)
    return f"{value}  ({bounds})" if bounds and whole and value != NOTHING else value


def _said(row: Dot, decimals: int) -> str:
    bounds = span(row.low, row.high, decimals)
    return f"{row.label}{' in ' + row.group if row.group else ''} {numeral(row.value, decimals)}" + (
        f" ({bounds})" if bounds else ""
    )


def _decimals(chart: DotChart) -> int:
    return decimals_for([number for row in chart.rows for number in (row.value, row.low, row.high)])
