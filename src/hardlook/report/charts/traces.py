"""Lines over a shared plane: bands, gaps at undefined points, and names written at the ends of the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hardlook.contract.sections import Line
from hardlook.report.charts.lettering import SMALL, label, spread, widest
from hardlook.report.charts.palette import MUTED
from hardlook.report.charts.scales import LinearScale, fit
from hardlook.report.charts.svg import area, disc, polyline, segment, x_axis, y_axis
from hardlook.report.markup import element
from hardlook.report.numerals import finite, is_number

_GAP = 15.0
Point = tuple[float, float]


@dataclass(frozen=True)
class Trace:
    """A line and how it is drawn; `text` stands at its end, with `note` under it."""

    line: Line
    text: str
    colour: str
    dash: str | None = None
    note: str = ""


def draw_traces(
    traces: Sequence[Trace], width: float, x_title: str, y_title: str, x_range: Sequence[float] = ()
) -> tuple[str, float]:
    """The plane with all traces, and the height it takes."""
    wide = width > 600
    gap = _GAP * (2 if any(trace.note for trace in traces) else 1)
    top = 34.0 if y_title else 14.0
    bottom = top + max(330.0 if wide else 250.0, gap * len(traces) + 20)
    texts = [text for trace in traces for text in (trace.text, trace.note)]
    ends = min(widest(texts, SMALL, bold=True) + 22, width * (0.3 if wide else 0.36))
    ys = [number for trace in traces for part in _heights(trace.line) for number in part]
    xs = [number for trace in traces for number in trace.line.x] + list(x_range)
    y = fit(ys, start=bottom, stop=top, ticks=5)
    left = widest(y.tick_texts(), SMALL) + 10
    x = fit(xs, start=left + 6, stop=width - ends - 6, ticks=max(2, int((width - ends - left) / 60)), tight=True)
    parts = [y_axis(y, left, width - ends, y_title), x_axis(x, top, bottom, x_title)]
    parts += [_band(trace, x, y) for trace in traces]
    parts += [_stroke(trace, x, y) for trace in traces]
    parts.append(_end_labels(traces, x, y, (width, ends, gap)))
    return "".join(parts), bottom + (46 if x_title else 24)


def finite_points(line: Line) -> list[Point]:
    """The points of the line that can be drawn, in order."""
    pairs = zip(line.x, line.y, strict=True)
    return [(float(x), float(y)) for x, y in pairs if is_number(x) and is_number(y)]


def _heights(line: Line) -> list[list[float]]:
    return [finite(part) for part in (line.y, line.low or (), line.high or ())]


def _runs(points: Sequence[Point | None]) -> list[list[Point]]:
    """The points in runs without a gap."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]


def _placed(xs: Sequence[float], ys: Sequence[float], x: LinearScale, y: LinearScale) -> list[Point | None]:
    pairs = zip(xs, ys, strict=True)
    return [(x.at(one), y.at(other)) if is_number(one) and is_number(other) else None for one, other in pairs]


def _band(trace: Trace, x: LinearScale, y: LinearScale) -> str:
    line = trace.line
    if line.low is None or line.high is None:
        return ""
    lows, highs = _placed(line.x, line.low, x, y), _placed(line.x, line.high, x, y)
    # Both edges must break where either is undefined, or the band would close over the gap.
    both = [low is not None and high is not None for low, high in zip(lows, highs, strict=True)]
    lower = _runs([low if defined else None for low, defined in zip(lows, both, strict=True)])
    upper = _runs([high if defined else None for high, defined in zip(highs, both, strict=True)])
    return "".join(area([*below, *reversed(above)], trace.colour) for below, above in zip(lower, upper, strict=True))


def _stroke(trace: Trace, x: LinearScale, y: LinearScale) -> str:
    placed = _placed(trace.line.x, trace.line.y, x, y)
    lines = "".join(polyline(run, trace.colour, 2, trace.dash) for run in _runs(placed) if len(run) > 1)
    points = [point for point in placed if point is not None]
    marked = points if len(points) <= 25 else []
    return element("g", lines, *(disc(px, py, 2.8, trace.colour) for px, py in marked), class_="trace")


def _end_labels(traces: Sequence[Trace], x: LinearScale, y: LinearScale, measures: tuple[float, float, float]) -> str:
    """Names at the ends of their lines, moved apart; `measures` are the page's width, their room and their gap."""
    width, room, gap = measures
    ending = [(trace, finite_points(trace.line)[-1]) for trace in traces if finite_points(trace.line)]
    places = spread([y.at(point[1]) for _, point in ending], gap=gap, low=y.stop, high=y.start)
    parts = []
    for (trace, point), place in zip(ending, places, strict=True):
        start = width - room + 16
        parts.append(segment(x.at(point[0]) + 5, y.at(point[1]), start - 4, place, MUTED, 0.7))
        parts.append(label(start, place + 4, trace.text, size=SMALL, fill=trace.colour, room=room - 16, weight=600))
        if trace.note:
            parts.append(label(start, place + 18, trace.note, size=SMALL, fill=trace.colour, room=room - 16))
    return element("g", *parts, class_="ends")
