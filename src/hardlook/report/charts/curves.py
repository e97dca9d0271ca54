"""Curves with bands: how a score moves along a number of clicks, shots, a threshold."""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.contract.sections import CurveChart, Line
from hardlook.report.charts.numbers import Cell, Numbers
from hardlook.report.charts.palette import category, dash
from hardlook.report.charts.svg import drawing
from hardlook.report.charts.traces import Trace, draw_traces, finite_points
from hardlook.report.numerals import counted, decimals_for, numeral


def draw_curves(chart: CurveChart, key: str, width: float) -> str:
    """The chart as SVG; each curve's name stands at its end in its colour."""
    traces = [Trace(line, line.name, category(index), dash(index)) for index, line in enumerate(chart.lines)]
    plane, height = draw_traces(traces, width, chart.x_axis, chart.y_axis)
    return drawing(key, width, height, chart.title, describe_curves(chart), plane)


def describe_curves(chart: CurveChart) -> str:
    """The chart in words: for each curve where it starts, ends and peaks."""
    words = [f"{counted(len(chart.lines), 'curve')} of {chart.y_axis} over {chart.x_axis}."]
    for line in chart.lines:
        points = finite_points(line)
        if not points:
            words.append(f"{line.name}: no defined point.")
            continue
        ys, xs = decimals_for(line.y), decimals_for(line.x)
        first, last, peak = points[0], points[-1], max(points, key=lambda point: point[1])
        words.append(
            f"{line.name}: from {numeral(first[1], ys)} at {numeral(first[0], xs)} to {numeral(last[1], ys)} at "
            f"{numeral(last[0], xs)}, highest {numeral(peak[1], ys)} at {numeral(peak[0], xs)}."
        )
    return " ".join(words)


def tabulate_curves(chart: CurveChart) -> Numbers:
    """One row a point."""
    return tabulate_lines(chart.lines, chart.x_axis, chart.y_axis)


def tabulate_lines(lines: Sequence[Line], x_axis: str, y_axis: str) -> Numbers:
    """One row a point of every line, with the band where there is one."""
    bounded = any(line.low is not None and line.high is not None for line in lines)
    rows: list[tuple[Cell, ...]] = []
    for line in lines:
        for index, (x, y) in enumerate(zip(line.x, line.y, strict=True)):
            low = line.low[index] if line.low is not None else None
            high = line.high[index] if line.high is not None else None
            rows.append((line.name, x, y, *((low, high) if bounded else ())))
    columns = ("line", x_axis, y_axis, *(("low", "high") if bounded else ()))
    return Numbers(columns, rows)
