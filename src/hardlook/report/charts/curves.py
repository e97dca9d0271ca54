"""Curves with bands, such as a score over the number of clicks; and dial charts, a score over a planted fault.

Lines have gaps at undefined points and their names at their ends. Dial charts add rank correlations, and draw controls,
which stay flat, in grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from hardlook.harness.sections import CurveChart, DialChart, Line
from hardlook.report.charts import drawing as svg
from hardlook.report.charts.palette import MUTED, category_colour, dash_pattern
from hardlook.report.formatting import choose_decimals, format_count, format_number, is_number
from hardlook.report.html_tables import Cell, TableData
from hardlook.report.markup import element

_GAP = 15.0
_SETTING = "dial setting"
Point = tuple[float, float]


@dataclass(frozen=True)
class Trace:
    """A line and its style; `text` is written at its end, with `note` below."""

    line: Line
    text: str
    colour: str
    dash: str | None = None
    note: str = ""


def draw_traces(
    traces: Sequence[Trace], width: float, x_title: str, y_title: str, x_range: Sequence[float] = ()
) -> tuple[str, float]:
    """The plot with all traces, and its height."""
    wide = width > 600
    gap = _GAP * (2 if any(trace.note for trace in traces) else 1)
    top = 34.0 if y_title else 14.0
    bottom = top + max(330.0 if wide else 250.0, gap * len(traces) + 20)
    texts = [text for trace in traces for text in (trace.text, trace.note)]
    ends = min(svg.max_text_width(texts, svg.SMALL, bold=True) + 22, width * (0.3 if wide else 0.36))
    lines = [trace.line for trace in traces]
    ys = [number for line in lines for part in (line.y, line.low or (), line.high or ()) for number in part]
    xs = [number for line in lines for number in line.x] + list(x_range)
    y = svg.fit_scale(ys, start=bottom, stop=top, ticks=5)
    left = svg.max_text_width(y.tick_texts(), svg.SMALL) + 10
    x = svg.fit_scale(
        xs, start=left + 6, stop=width - ends - 6, ticks=max(2, int((width - ends - left) / 60)), tight=True
    )
    parts = [svg.y_axis(y, left, width - ends, y_title), svg.x_axis(x, top, bottom, x_title)]
    parts += [_draw_band(trace, x, y) for trace in traces]
    parts += [_draw_line(trace, x, y) for trace in traces]
    parts.append(_draw_end_labels(traces, x, y, (width, ends, gap)))
    return "".join(parts), bottom + (46 if x_title else 24)


def finite_points(line: Line) -> list[Point]:
    """The finite points of the line, in order."""
    pairs = zip(line.x, line.y, strict=True)
    return [(float(x), float(y)) for x, y in pairs if is_number(x) and is_number(y)]


def _split_at_gaps(points: Sequence[Point | None]) -> list[list[Point]]:
    """The points in runs without gaps."""
    runs = groupby(points, key=lambda point: point is not None)
    return [[point for point in run if point is not None] for defined, run in runs if defined]


def _scale_points(
    xs: Sequence[float], ys: Sequence[float], x: svg.LinearScale, y: svg.LinearScale
) -> list[Point | None]:
    pairs = zip(xs, ys, strict=True)
    return [(x.at(one), y.at(other)) if is_number(one) and is_number(other) else None for one, other in pairs]


def _draw_band(trace: Trace, x: svg.LinearScale, y: svg.LinearScale) -> str:
    line = trace.line
    if line.low is None or line.high is None:
        return ""
    lows, highs = _scale_points(line.x, line.low, x, y), _scale_points(line.x, line.high, x, y)
    # Both edges must break where either is undefined, or the band would close over the gap.
    both = [low is not None and high is not None for low, high in zip(lows, highs, strict=True)]
    lower = _split_at_gaps([low if defined else None for low, defined in zip(lows, both, strict=True)])
    upper = _split_at_gaps([high if defined else None for high, defined in zip(highs, both, strict=True)])
    return "".join(
        svg.area([*below, *reversed(above)], trace.colour) for below, above in zip(lower, upper, strict=True)
    )


def _draw_line(trace: Trace, x: svg.LinearScale, y: svg.LinearScale) -> str:
    placed = _scale_points(trace.line.x, trace.line.y, x, y)
    lines = "".join(svg.polyline(run, trace.colour, 2, trace.dash) for run in _split_at_gaps(placed) if len(run) > 1)
    points = [point for point in placed if point is not None]
    marked = points if len(points) <= 25 else []
    return element("g", lines, *(svg.disc(px, py, 2.8, trace.colour) for px, py in marked), class_="trace")


def _draw_end_labels(
    traces: Sequence[Trace], x: svg.LinearScale, y: svg.LinearScale, measures: tuple[float, float, float]
) -> str:
    """Names at the ends of their lines, moved apart; `measures` are the page's width, their room and their gap."""
    width, room, gap = measures
    ending = [(trace, finite_points(trace.line)[-1]) for trace in traces if finite_points(trace.line)]
    places = svg.space_apart([y.at(point[1]) for _, point in ending], gap=gap, low=y.stop, high=y.start)
    parts = []
    for (trace, point), place in zip(ending, places, strict=True):
        start = width - room + 16
        parts.append(svg.segment(x.at(point[0]) + 5, y.at(point[1]), start - 4, place, MUTED, 0.7))
        parts.append(
            svg.label(start, place + 4, trace.text, size=svg.SMALL, fill=trace.colour, room=room - 16, weight=600)
        )
        if trace.note:
            parts.append(svg.label(start, place + 18, trace.note, size=svg.SMALL, fill=trace.colour, room=room - 16))
    return element("g", *parts, class_="ends")


def draw_curves(chart: CurveChart, key: str, width: float) -> str:
    """The chart as SVG, with each curve's name at its end in its colour."""
    traces = [
        Trace(line, line.name, category_colour(index), dash_pattern(index)) for index, line in enumerate(chart.lines)
    ]
    plane, height = draw_traces(traces, width, chart.x_axis, chart.y_axis)
    return svg.svg_drawing(key, width, height, chart.title, describe_curves(chart), plane)


def describe_curves(chart: CurveChart) -> str:
    """The text alternative: for each curve where it starts, ends and peaks."""
    words = [f"{format_count(len(chart.lines), 'curve')} of {chart.y_axis} over {chart.x_axis}."]
    for line in chart.lines:
        points = finite_points(line)
        if not points:
            words.append(f"{line.name}: no defined point.")
            continue
        ys, xs = choose_decimals(line.y), choose_decimals(line.x)
        named = (points[0], points[-1], max(points, key=lambda point: point[1]))
        first, last, peak = (f"{format_number(y, ys)} at {format_number(x, xs)}" for x, y in named)
        words.append(f"{line.name}: from {first} to {last}, highest {peak}.")
    return " ".join(words)


def tabulate_curves(chart: CurveChart) -> TableData:
    """One row per point of every line, with the band where there is one."""
    bounded = any(line.low is not None and line.high is not None for line in chart.lines)
    rows: list[tuple[Cell, ...]] = []
    for line in chart.lines:
        for index, (x, y) in enumerate(zip(line.x, line.y, strict=True)):
            band = (None if edge is None else edge[index] for edge in (line.low, line.high))
            rows.append((line.name, x, y, *(band if bounded else ())))
    columns = ("line", chart.x_axis, chart.y_axis, *(("low", "high") if bounded else ()))
    return TableData(columns, rows)


def draw_dial(chart: DialChart, key: str, width: float) -> str:
    """The chart as SVG; controls are grey and dashed, every line ends in its name and Spearman's rho."""
    traces, colours = [], 0
    for index, line in enumerate(chart.lines):
        note = _format_rho(chart, index)
        if line.name in chart.controls:
            traces.append(Trace(line, line.name, MUTED, "6 4", note))
        else:
            traces.append(Trace(line, line.name, category_colour(colours), dash_pattern(colours), note))
            colours += 1
    plane, height = draw_traces(traces, width, _SETTING, chart.score, x_range=(0, 1))
    return svg.svg_drawing(key, width, height, chart.title, describe_dial(chart), plane)


def describe_dial(chart: DialChart) -> str:
    """The text alternative: each line's range and rank correlation, and which lines are controls."""
    words = [f"{format_count(len(chart.lines), 'line')} of {chart.score} over the {_SETTING} from 0 to 1."]
    for index, line in enumerate(chart.lines):
        control = " (control, meant to stay flat)" if line.name in chart.controls else ""
        points = finite_points(line)
        if not points:
            words.append(f"{line.name}{control}: no defined point.")
            continue
        decimals = choose_decimals(line.y)
        moved = f"from {format_number(points[0][1], decimals)} to {format_number(points[-1][1], decimals)}"
        rho = chart.spearman[index] if index < len(chart.spearman) else None
        words.append(f"{line.name}{control}: {moved}, Spearman's rho {format_number(rho, 2)}.")
    return " ".join(words)


def tabulate_dial(chart: DialChart) -> TableData:
    """One row per point, with the rank correlation of its line."""
    table = tabulate_curves(CurveChart(chart.title, chart.caption, chart.lines, _SETTING, chart.score))
    rho = dict(zip((line.name for line in chart.lines), chart.spearman, strict=False))
    rows = [(*row, rho.get(str(row[0]))) for row in table.rows]
    return TableData((*table.columns, "Spearman's rho"), rows, table.decimals)


def _format_rho(chart: DialChart, index: int) -> str:
    if chart.lines[index].name in chart.controls:
        return "control"  # the rank correlation of a flat line says nothing
    known = index < len(chart.spearman) and is_number(chart.spearman[index])
    # Greek rho, as printed in papers.
    return f"\N{GREEK SMALL LETTER RHO} = {format_number(chart.spearman[index], 2)}" if known else ""
