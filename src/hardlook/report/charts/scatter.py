"""Scatter charts: names beside the spots where there is room, marginal histograms, and a Pareto front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from hardlook.harness.sections import ScatterChart, Spot
from hardlook.report.charts import drawing as svg
from hardlook.report.charts.palette import ACCENT, INK, MUTED, category_colour
from hardlook.report.formatting import choose_decimals, format_count, format_number, is_number
from hardlook.report.html_tables import TableData
from hardlook.report.markup import element

MARGINALS_FROM = 20
DEPTH = 44.0
_BINS, _GAP = 24, 5.0
_MAX_NAMED, _MAX_TITLED = 40, 600
_WHOLE_NAME, _CUT_NAME = 220.0, 130.0
Box = tuple[float, float, float, float]


def draw_marginals(xs: Sequence[float], ys: Sequence[float], x: svg.LinearScale, y: svg.LinearScale) -> str:
    """Bars above the plane for `xs` and at its right for `ys`, each as long as its share of the fullest bin."""
    across, along = (_count_values(values, scale) for values, scale in ((xs, x), (ys, y)))
    right, size, most = x.stop + _GAP, (y.stop - y.start) / _BINS, max(*along, 1)
    beside = "".join(
        f"M{right:.1f} {y.start + index * size - 0.5:.1f}h{count / most * (DEPTH - 8):.1f}v{size + 1:.1f}H{right:.1f}z"
        for index, count in enumerate(along)
        if count
    )
    paths = (("horizontal", svg.histogram_path(across, x, y.stop - _GAP, DEPTH - 8)), ("vertical", beside))
    drawn = []
    for axis, path in paths:
        title = element("title", f"how the values along the {axis} axis spread")
        drawn.append(element("path", title, d=path, fill=ACCENT, fill_opacity=0.4))
    return element("g", *drawn, class_="marginals")


def _count_values(values: Sequence[float], scale: svg.LinearScale) -> list[int]:
    """How many values lie in each bin; bins are as wide as each other on the page."""
    spaced = np.geomspace if isinstance(scale, svg.LogScale) else np.linspace
    counts: list[int] = np.histogram(np.asarray(values, np.float64), spaced(scale.low, scale.high, _BINS + 1))[
        0
    ].tolist()
    return counts


def draw_scatter(chart: ScatterChart, key: str, width: float) -> str:
    """The chart as SVG; groups differ in colour and, every other one, in being hollow."""
    spots = [spot for spot in chart.spots if _has_place(spot, chart)]
    groups = {group: index for index, group in enumerate(dict.fromkeys(spot.group for spot in chart.spots))}
    legend, legend_height = _draw_legend(groups, width)
    # Beside a front, names have the room of histograms.
    edge = DEPTH if len(spots) >= MARGINALS_FROM and not chart.front else 0.0
    top = legend_height + (34.0 if chart.y_axis else 14.0) + edge
    bottom = top + (400.0 if width > 600 else 290.0)
    xs, ys = [spot.x for spot in spots], [spot.y for spot in spots]
    if chart.diagonal:
        xs = ys = xs + ys
    y = svg.fit_scale(ys, start=bottom, stop=top, ticks=5)
    left = svg.max_text_width(y.tick_texts(), svg.SMALL) + 10
    right = min(width, left + 560 + edge) - 16 - edge
    fit = svg.fit_log_scale if chart.log_x else svg.fit_scale
    x = fit(xs, start=left + 6, stop=right, ticks=5)
    parts = [legend, svg.y_axis(y, left, right), svg.x_axis(x, top, bottom, chart.x_axis)]
    if chart.y_axis:
        parts.append(svg.label(2, top - edge - 14, chart.y_axis, size=svg.SMALL, fill=MUTED, room=right - 2))
    if edge:
        parts.append(draw_marginals([spot.x for spot in spots], [spot.y for spot in spots], x, y))
    if chart.diagonal:
        parts.append(_draw_diagonal(x, y))
    front = [spot for spot in (chart.spots[place] for place in chart.front) if _has_place(spot, chart)]
    steps = _list_steps(front, x, y)
    if steps:
        parts.append(_draw_front(front, steps, x, y))
    parts += _draw_spots(spots, groups, x, y)
    if len(spots) <= _MAX_NAMED:
        avoided = _list_diagonal_boxes(x, y) if chart.diagonal else []
        avoided += [_make_line_box(start, end) for start, end in pairwise(steps)]
        # Without histograms names may reach beyond the plane, where nothing else is.
        beyond = right if edge else min(width, right + 180)
        # Names on the front are placed while there is most room.
        ordered = [*front, *(spot for spot in spots if not any(spot is one for one in front))]
        parts.append(_draw_names(ordered, spots, x, y, (left, top, beyond, bottom), avoided))
    return svg.svg_drawing(
        key, width, bottom + (46 if chart.x_axis else 24), chart.title, describe_scatter(chart), *parts
    )


def describe_scatter(chart: ScatterChart) -> str:
    """The text alternative: counts, ranges, how many spots lie above the diagonal, and which are on the front."""
    spots = [spot for spot in chart.spots if _has_place(spot, chart)]
    words = [f"{format_count(len(chart.spots), 'spot')}: {chart.y_axis} against {chart.x_axis}."]
    for name, values in ((chart.x_axis, [spot.x for spot in spots]), (chart.y_axis, [spot.y for spot in spots])):
        if values:
            decimals = choose_decimals(values)
            words.append(
                f"{name} runs from {format_number(min(values), decimals)} to {format_number(max(values), decimals)}."
            )
    if chart.diagonal:
        words.append(f"{sum(spot.y > spot.x for spot in spots)} of {len(spots)} lie above the diagonal.")
    if chart.front:
        words.append(f"On the Pareto front: {', '.join(chart.spots[place].label for place in chart.front)}.")
    if len(spots) < len(chart.spots):
        words.append(f"{format_count(len(chart.spots) - len(spots), 'spot')} without a place.")
    return " ".join(words)


def tabulate_scatter(chart: ScatterChart) -> TableData:
    """One row per spot; on a chart with a Pareto front, whether it is on it."""
    grouped = any(spot.group for spot in chart.spots)
    columns = ("name", *(("group",) if grouped else ()), chart.x_axis, chart.y_axis)
    rows = [(spot.label, *((spot.group,) if grouped else ()), spot.x, spot.y) for spot in chart.spots]
    if not chart.front:
        return TableData(columns, rows)
    marked = [(*row, "yes" if place in set(chart.front) else "") for place, row in enumerate(rows)]
    return TableData((*columns, "Pareto front"), marked)


def _has_place(spot: Spot, chart: ScatterChart) -> bool:
    return is_number(spot.x) and is_number(spot.y) and (spot.x > 0 or not chart.log_x)


def _draw_legend(groups: dict[str, int], width: float) -> tuple[str, float]:
    """The groups as a line of marked names, wrapped; nothing when there is one group without a name."""
    if not any(groups):
        return "", 0.0
    parts, x, y = [], 2.0, 8.0
    for group, index in groups.items():
        name = group or "no group"
        room = svg.text_width(svg.truncate_text(name, svg.SMALL, width - 24), svg.SMALL) + 34
        if x > 2 and x + room > width:
            x, y = 2.0, y + 18
        parts.append(svg.disc(x + 4, y, 4, category_colour(index), hollow=index % 2 == 1))
        parts.append(svg.label(x + 13, y + 4, name, size=svg.SMALL, fill=category_colour(index), room=width - 24))
        x += room
    return element("g", *parts, class_="legend"), y + 14


def _draw_diagonal(x: svg.LinearScale, y: svg.LinearScale) -> str:
    low, high = max(x.low, y.low), min(x.high, y.high)
    return svg.segment(x.at(low), y.at(low), x.at(high), y.at(high), MUTED, 1.2, "4 3") + svg.label(
        x.at(high) - 22, y.at(high) + 12, "y = x", size=svg.SMALL, fill=MUTED, anchor="end", halo=True
    )


def _list_steps(front: Sequence[Spot], x: svg.LinearScale, y: svg.LinearScale) -> list[tuple[float, float]]:
    """Corners of the line below and left of which nothing lies, from the top of the plane to its right end."""
    if not front:
        return []
    steps = [(x.at(front[0].x), y.stop)]
    for spot, after in zip(front, [*front[1:], None], strict=True):
        steps += [(x.at(spot.x), y.at(spot.y)), (x.stop if after is None else x.at(after.x), y.at(spot.y))]
    return steps


def _draw_front(
    front: Sequence[Spot], steps: Sequence[tuple[float, float]], x: svg.LinearScale, y: svg.LinearScale
) -> str:
    rings = [svg.disc(x.at(spot.x), y.at(spot.y), 6.3, INK, hollow=True) for spot in front]
    title = element("title", "Pareto front: nothing is lower and further left")
    return element("g", title, svg.polyline(steps, MUTED, 1.4, "2 3"), *rings, class_="front")


def _make_line_box(start: tuple[float, float], end: tuple[float, float]) -> Box:
    """A box along a horizontal or vertical line, for names to keep clear of."""
    (x1, x2), (y1, y2) = sorted((start[0], end[0])), sorted((start[1], end[1]))
    return x1 - 1, y1 - 1, x2 + 1, y2 + 1


def _draw_spots(spots: Sequence[Spot], groups: dict[str, int], x: svg.LinearScale, y: svg.LinearScale) -> list[str]:
    """A circle per spot; many spots are one path of round dots per group, which is a tenth of the bytes."""
    if len(spots) > _MAX_TITLED:
        clouds = []
        for group, index in groups.items():
            d = "".join(f"M{x.at(spot.x):.1f} {y.at(spot.y):.1f}h0" for spot in spots if spot.group == group)
            colour, wide = category_colour(index), 4.5 if len(spots) <= 1500 else 3.0
            stroke = {"stroke": colour, "stroke_width": wide, "stroke_linecap": "round"}
            clouds.append(element("path", d=d, fill="none", stroke_opacity=0.5, **stroke))
        return clouds
    radius = 4.2 if len(spots) <= 120 else 3.2
    marks = []
    for spot in spots:
        index = groups[spot.group]
        text = f"{spot.label}: {spot.x:g}, {spot.y:g}"
        marks.append(svg.disc(x.at(spot.x), y.at(spot.y), radius, category_colour(index), text, hollow=index % 2 == 1))
    return [element("g", *marks, fill_opacity=0.8, class_="spots")]


def _list_diagonal_boxes(x: svg.LinearScale, y: svg.LinearScale) -> list[Box]:
    """Small boxes along y = x and its name, for names to keep clear of."""
    low, high = max(x.low, y.low), min(x.high, y.high)
    values = [low + (high - low) * share / 100 for share in range(101)]
    name = (x.at(high) - 62, y.at(high), x.at(high) - 20, y.at(high) + 16)
    return [(x.at(value) - 2, y.at(value) - 2, x.at(value) + 2, y.at(value) + 2) for value in values] + [name]


def _draw_names(
    ordered: Sequence[Spot],
    spots: Sequence[Spot],
    x: svg.LinearScale,
    y: svg.LinearScale,
    bounds: Box,
    avoided: Sequence[Box],
) -> str:
    """Names in that order, each at the first place where it meets nothing; one without room is its spot's title.

    Whole beside the spot where it fits, for cut names are easily taken for one another; else cut, else whole further
    away, at the end of a thin line.
    """
    marks: list[Box] = [(x.at(s.x) - 4, y.at(s.y) - 4, x.at(s.x) + 4, y.at(s.y) + 4) for s in spots]
    # A name keeps clear of drawn lines, which the thin line to its spot may cross.
    taken, crossed = [*marks, *avoided], marks
    parts = []
    for spot in ordered:
        at = (x.at(spot.x), y.at(spot.y))
        for room, near in ((_WHOLE_NAME, True), (_CUT_NAME, True), (_WHOLE_NAME, False)):
            text = svg.truncate_text(spot.label, svg.SMALL, room)
            place = _find_side(text, at, bounds, taken) if near else _find_far_place(text, at, bounds, taken, crossed)
            if place is None:
                continue
            start, base, box = place
            if not near:
                end = _find_line_end(at, box)
                parts.append(svg.segment(*at, *end, MUTED, 0.8))
                line = _list_sloping_boxes(at, end)
                taken, crossed = [*taken, *line], [*crossed, *line]
            taken, crossed = [*taken, box], [*crossed, box]
            parts.append(svg.label(start, base, spot.label, size=svg.SMALL, fill=INK, room=room))
            break
    return element("g", *parts, class_="names")


Place = tuple[float, float, Box]


def _find_side(text: str, at: tuple[float, float], bounds: Box, taken: Sequence[Box]) -> Place | None:
    """Start, baseline and box of a name beside its spot: right, left, above or below; None where all are taken."""
    (px, py), wide = at, svg.text_width(text, svg.SMALL)
    sides = ((px + 7, py + 4), (px - 7 - wide, py + 4), (px - wide / 2, py - 8), (px - wide / 2, py + 16))
    return _choose_free(sides, wide, bounds, taken)


# Right and down from a spot to the middle of a name's baseline, the nearest first.
_FAR = sorted(
    ((across, down) for across in range(-180, 181, 20) for down in (*range(-160, -17, 9), *range(26, 169, 9))),
    key=lambda step: (math.hypot(*step), step),
)


def _find_far_place(
    text: str, at: tuple[float, float], bounds: Box, taken: Sequence[Box], crossed: Sequence[Box]
) -> Place | None:
    """As `_find_side`, further away, where the line from the spot to the name would cross none of `crossed`."""
    wide = svg.text_width(text, svg.SMALL)
    for across, down in _FAR:
        place = _choose_free([(at[0] + across - wide / 2, at[1] + down)], wide, bounds, taken)
        if place is not None:
            line = _list_sloping_boxes(at, _find_line_end(at, place[2]))
            if not any(_overlap(part, other) for part in line for other in crossed):
                return place
    return None


def _find_line_end(at: tuple[float, float], box: Box) -> tuple[float, float]:
    """Where the line from a spot to its name ends: on the name's lower or upper edge."""
    return min(max(at[0], box[0]), box[2]), box[3] if box[3] < at[1] else box[1]


def _list_sloping_boxes(start: tuple[float, float], end: tuple[float, float]) -> list[Box]:
    """Small boxes along a line from a spot, but for its first pixels, which lie on the spot itself."""
    length = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1.0)
    shares = [done / length for done in range(9, int(length), 3)]
    points = [(start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])) for share in shares]
    return [(x - 1, y - 1, x + 1, y + 1) for x, y in points]


def _choose_free(places: Sequence[tuple[float, float]], wide: float, bounds: Box, taken: Sequence[Box]) -> Place | None:
    """The first of several starts and baselines whose name lies inside and meets nothing."""
    for start, base in places:
        box = (start, base - 9, start + wide, base + 3)
        inside = bounds[0] <= box[0] and box[2] <= bounds[2] and bounds[1] <= box[1] and box[3] <= bounds[3]
        if inside and not any(_overlap(box, other) for other in taken):
            return start, base, box
    return None


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
