"""Scatter charts: names beside the spots where there is room, and marginal histograms."""

from __future__ import annotations

from collections.abc import Sequence

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
    across, along = (
        np.histogram(np.asarray(values, np.float64), np.linspace(scale.low, scale.high, _BINS + 1))[0].tolist()
        for values, scale in ((xs, x), (ys, y))
    )
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


def draw_scatter(chart: ScatterChart, key: str, width: float) -> str:
    """The chart as SVG; groups differ in colour and, every other one, in being hollow."""
    spots = [spot for spot in chart.spots if is_number(spot.x) and is_number(spot.y)]
    groups = {group: index for index, group in enumerate(dict.fromkeys(spot.group for spot in chart.spots))}
    legend, legend_height = _draw_legend(groups, width)
    edge = DEPTH if len(spots) >= MARGINALS_FROM else 0.0
    top = legend_height + (34.0 if chart.y_axis else 14.0) + edge
    bottom = top + (400.0 if width > 600 else 290.0)
    xs, ys = [spot.x for spot in spots], [spot.y for spot in spots]
    if chart.diagonal:
        xs = ys = xs + ys
    y = svg.fit_scale(ys, start=bottom, stop=top, ticks=5)
    left = svg.max_text_width(y.tick_texts(), svg.SMALL) + 10
    right = min(width, left + 560 + edge) - 16 - edge
    x = svg.fit_scale(xs, start=left + 6, stop=right, ticks=5)
    parts = [legend, svg.y_axis(y, left, right), svg.x_axis(x, top, bottom, chart.x_axis)]
    if chart.y_axis:
        parts.append(svg.label(2, top - edge - 14, chart.y_axis, size=svg.SMALL, fill=MUTED, room=right - 2))
    if edge:
        parts.append(draw_marginals([spot.x for spot in spots], [spot.y for spot in spots], x, y))
    if chart.diagonal:
        parts.append(_draw_diagonal(x, y))
    parts += _draw_spots(spots, groups, x, y)
    if len(spots) <= _MAX_NAMED:
        avoided = _list_diagonal_boxes(x, y) if chart.diagonal else []
        # Without histograms names may reach beyond the plane, where nothing else is.
        beyond = right if edge else min(width, right + 180)
        parts.append(_draw_names(spots, x, y, (left, top, beyond, bottom), avoided))
    return svg.svg_drawing(
        key, width, bottom + (46 if chart.x_axis else 24), chart.title, describe_scatter(chart), *parts
    )


def describe_scatter(chart: ScatterChart) -> str:
    """The text alternative: counts, ranges, and how many spots lie above the diagonal."""
    spots = [spot for spot in chart.spots if is_number(spot.x) and is_number(spot.y)]
    words = [f"{format_count(len(chart.spots), 'spot')}: {chart.y_axis} against {chart.x_axis}."]
    for name, values in ((chart.x_axis, [spot.x for spot in spots]), (chart.y_axis, [spot.y for spot in spots])):
        if values:
            decimals = choose_decimals(values)
            words.append(
                f"{name} runs from {format_number(min(values), decimals)} to {format_number(max(values), decimals)}."
            )
    if chart.diagonal:
        words.append(f"{sum(spot.y > spot.x for spot in spots)} of {len(spots)} lie above the diagonal.")
    if len(spots) < len(chart.spots):
        words.append(f"{format_count(len(chart.spots) - len(spots), 'spot')} without a place.")
    return " ".join(words)


def tabulate_scatter(chart: ScatterChart) -> TableData:
    """One row per spot."""
    grouped = any(spot.group for spot in chart.spots)
    columns = ("name", *(("group",) if grouped else ()), chart.x_axis, chart.y_axis)
    rows = [(spot.label, *((spot.group,) if grouped else ()), spot.x, spot.y) for spot in chart.spots]
    return TableData(columns, rows)


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
    spots: Sequence[Spot], x: svg.LinearScale, y: svg.LinearScale, bounds: Box, avoided: Sequence[Box]
) -> str:
    """Names at the first of four sides where they meet nothing; a name without room is in the title of its spot."""
    taken: list[Box] = [(x.at(s.x) - 4, y.at(s.y) - 4, x.at(s.x) + 4, y.at(s.y) + 4) for s in spots]
    taken += avoided
    parts = []
    for spot in spots:
        # Whole where it fits, for cut names are easily taken for one another.
        for room in (_WHOLE_NAME, _CUT_NAME):
            place = _find_free_place(
                svg.truncate_text(spot.label, svg.SMALL, room), (x.at(spot.x), y.at(spot.y)), bounds, taken
            )
            if place:
                start, base, box = place
                taken.append(box)
                parts.append(svg.label(start, base, spot.label, size=svg.SMALL, fill=INK, room=room))
                break
    return element("g", *parts, class_="names")


def _find_free_place(
    text: str, at: tuple[float, float], bounds: Box, taken: Sequence[Box]
) -> tuple[float, float, Box] | None:
    """Start, baseline and box of a name beside its spot: right, left, above or below; None where all are taken."""
    (px, py), wide = at, svg.text_width(text, svg.SMALL)
    sides = ((px + 7, py + 4), (px - 7 - wide, py + 4), (px - wide / 2, py - 8), (px - wide / 2, py + 16))
    for start, base in sides:
        box = (start, base - 9, start + wide, base + 3)
        inside = bounds[0] <= box[0] and box[2] <= bounds[2] and bounds[1] <= box[1] and box[3] <= bounds[3]
        if inside and not any(_overlap(box, other) for other in taken):
            return start, base, box
    return None


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
