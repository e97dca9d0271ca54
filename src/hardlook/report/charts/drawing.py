"""SVG drawings with a text alternative: shapes, axes, scales, and text of estimated width.

>>> svg_drawing("k", 10, 10, "Title", "What it shows.", "")[:60]
'<svg class="chart" role="img" aria-labelledby="k-title k-wor'

A scale maps values to coordinates, with ticks at round numbers.

>>> scale = fit_scale([0.12, 0.87], start=0, stop=100, ticks=5)
>>> scale.ticks
(0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
>>> scale.at(0.5)
50.0

Text widths are estimates for common sans-serif fonts, a little too wide.

>>> truncate_text("a very long label indeed", size=12, room=80)
'a very lon…'
>>> space_apart([10, 11, 40], gap=14, low=0, high=100)
[3.5, 17.5, 40.0]
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hardlook.report.charts.palette import GRID, INK, MUTED, PAGE, RULE
from hardlook.report.formatting import keep_finite
from hardlook.report.markup import element, escape, strip_backticks


@dataclass(frozen=True)
class LinearScale:
    """Maps `low`..`high` to `start`..`stop` (in units of the drawing); `ticks` lie within."""

    low: float
    high: float
    start: float
    stop: float
    ticks: tuple[float, ...] = ()

    def at(self, value: float) -> float:
        """The coordinate of the value; values outside the domain are drawn at its edge."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + (self.stop - self.start) * min(max(share, 0.0), 1.0)

    def tick_texts(self) -> list[str]:
        """The ticks as texts, all with as many decimals as the finest needs."""
        step = min((after - before for before, after in pairwise(self.ticks)), default=1.0)
        decimals = 0
        while decimals < 8 and any(abs(round(tick, decimals) - tick) > 1e-6 * step for tick in self.ticks):
            decimals += 1
        if decimals == 8 or max((abs(tick) for tick in self.ticks), default=0) >= 1e5:
            texts = [[f"{tick:.{digits}g}" for tick in self.ticks] for digits in range(3, 16)]
            distinct = next((row for row in texts if len(set(row)) == len(row)), texts[-1])
            return [text.replace("-", "\N{MINUS SIGN}") for text in distinct]
        return [f"{tick:.{decimals}f}".replace("-", "\N{MINUS SIGN}") for tick in self.ticks]


def fit_scale(
    values: Iterable[float | None], *, start: float, stop: float, ticks: int = 5, tight: bool = False
) -> LinearScale:
    """The scale whose domain is the round range around all finite values; equal values get a margin on both sides.

    A tight scale ends at the values themselves. Whole values (counts, clicks) get whole ticks.

    >>> fit_scale([1, 20], start=0, stop=1, ticks=7, tight=True).ticks
    (5.0, 10.0, 15.0, 20.0)
    """
    numbers = keep_finite(values)
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 1.0)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        # A score has its natural range; anything else gets a tenth of itself on both sides, if it has one.
        if 0 <= low <= 1 or -1e-300 < low < 0:
            low, high = (0.0 if low >= 0 else -1.0), 1.0
        else:
            low, high = low - abs(low) * 0.1, high + abs(high) * 0.1
    step = _round_step((high - low) / max(ticks, 1))
    if high - low >= 1 and all(number == int(number) for number in numbers):
        step = max(1.0, 5.0 if step == 2.5 else step)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    # Without rounding errors: 0.30000000000000004 becomes 0.3.
    places = tuple(float(f"{index * step:.12g}") + 0.0 for index in range(first, last + 1))
    if tight:
        return LinearScale(low, high, start, stop, tuple(place for place in places if low <= place <= high))
    return LinearScale(places[0], places[-1], start, stop, places)


@dataclass(frozen=True)
class LogScale(LinearScale):
    """Equal ratios are equally far apart; `low`, `high` and `ticks` are over 0."""

    def at(self, value: float) -> float:
        """The coordinate of a value over 0; values outside the domain are drawn at its edge."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + (self.stop - self.start) * min(max(share, 0.0), 1.0)

    def tick_texts(self) -> list[str]:
        """Each tick with as many digits as it needs."""
        return [f"{tick:g}" for tick in self.ticks]


def fit_log_scale(values: Iterable[float], *, start: float, stop: float, ticks: int = 5) -> LogScale:
    """The scale around all values, which are over 0; it ends at powers of ten, or at 2 or 5 times one.

    >>> fit_log_scale([41, 150], start=0, stop=100).ticks, fit_log_scale([3, 20_000], start=0, stop=100).ticks
    ((20.0, 50.0, 100.0, 200.0), (10.0, 100.0, 1000.0, 10000.0))
    """
    numbers = list(values) or [1.0, 10.0]
    low, high = min(numbers), max(numbers)
    if high < 1.2 * low:
        low, high = low / 1.5, high * 1.5
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    places = [float(f"{factor}e{power}") for power in powers for factor in (1, 2, 5)]
    places = [
        place
        for place, after, before in zip(places, [*places[1:], math.inf], [0.0, *places[:-1]], strict=True)
        if after > low and before < high
    ]
    tens = places if len(places) <= ticks + 2 else [place for place in places if f"{place:e}".startswith("1.0")]
    return LogScale(places[0], places[-1], start, stop, tuple(tens[:: math.ceil(len(tens) / (ticks + 2))]))


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    factor = next(nice for nice in (1, 2, 2.5, 5, 10) if nice * power >= rough * (1 - 1e-9))
    return factor * power


SIZE, SMALL = 12.5, 11.5
_NARROW = frozenset("iljtfrI.,:;'|!()[]{} /\\`-")
_WIDE = frozenset("mwMW@%—…\N{MINUS SIGN}")


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The estimated width of the text, in the same unit as its size."""
    return size * sum(_measure_letter(letter) for letter in text) * (1.09 if bold else 1.0)


def max_text_width(texts: Sequence[str], size: float, *, bold: bool = False) -> float:
    """The width of the widest of these texts; 0 without any."""
    return max((text_width(text, size, bold=bold) for text in texts), default=0.0)


def truncate_text(text: str, size: float, room: float, *, bold: bool = False) -> str:
    """The text, cut with an ellipsis where it would not fit."""
    if text_width(text, size, bold=bold) <= room:
        return text
    kept, used = 0, text_width("…", size, bold=bold)
    while used + text_width(text[kept], size, bold=bold) <= room:
        used += text_width(text[kept], size, bold=bold)
        kept += 1
    return text[:kept].rstrip() + "…"


def label(
    x: float,
    y: float,
    text: str,
    *,
    size: float = SIZE,
    room: float | None = None,
    anchor: str | None = None,
    fill: str = INK,
    weight: int | None = None,
    transform: str | None = None,
    halo: bool = False,
) -> str:
    """A text element, baseline at y; cut to `room` its title has all of it; a halo keeps it readable over lines."""
    shown = text if room is None else truncate_text(text, size, room, bold=weight is not None)
    title = "" if shown == text else element("title", escape(text))
    anchor = None if anchor == "start" else anchor
    font = {"font_size": size, "text_anchor": anchor, "fill": fill, "font_weight": weight, "transform": transform}
    outline = {"stroke": PAGE, "stroke_width": 4, "paint_order": "stroke"} if halo else {}
    return element("text", escape(shown) + title, x=float(x), y=float(y), **font, **outline)


def space_apart(places: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Coordinates moved as little as needed to be `gap` apart and between low and high, in the same order.

    Neighbours that touch join a cluster, which is centred on the mean of what its members wanted.
    """
    order = sorted(range(len(places)), key=lambda index: (places[index], index))
    clusters: list[tuple[float, list[int]]] = []
    for index in order:
        clusters.append((places[index], [index]))
        while len(clusters) > 1 and _overlap(clusters[-2], clusters[-1], gap, low, high):
            (_, second), (_, first) = clusters.pop(), clusters.pop()
            joined = first + second
            wanted = [places[member] - rank * gap for rank, member in enumerate(joined)]
            clusters.append((sum(wanted) / len(wanted) + (len(joined) - 1) * gap / 2, joined))
    settled = [0.0] * len(places)
    for centre, members in clusters:
        top = _compute_top(centre, len(members), gap, low, high)
        for rank, member in enumerate(members):
            settled[member] = top + rank * gap
    return settled


def _overlap(
    first: tuple[float, list[int]], second: tuple[float, list[int]], gap: float, low: float, high: float
) -> bool:
    end = _compute_top(first[0], len(first[1]), gap, low, high) + (len(first[1]) - 1) * gap
    return _compute_top(second[0], len(second[1]), gap, low, high) - end < gap - 1e-9


def _compute_top(centre: float, count: int, gap: float, low: float, high: float) -> float:
    return float(max(low, min(centre - (count - 1) * gap / 2, high - (count - 1) * gap)))


def _measure_letter(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in _NARROW:
        return 0.37
    if letter in _WIDE:
        return 0.95
    if letter.isdigit():
        return 0.64
    return 0.7 if letter.isupper() else 0.61


FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"


def svg_drawing(
    key: str, width: float, height: float, title: str, description: str, *parts: str, fixed: bool = False
) -> str:
    """The outermost element; it fills its box up to its natural width, or keeps that width when `fixed`."""
    name = element("title", escape(strip_backticks(title)), id=f"{key}-title")
    words = element("desc", escape(strip_backticks(description)), id=f"{key}-words")
    kind = {"class_": "chart fixed" if fixed else "chart", "role": "img"}
    kind |= {"aria_labelledby": f"{key}-title {key}-words", "viewBox": f"0 0 {width:.0f} {height:.0f}"}
    return element("svg", name, words, *parts, **kind, width=f"{width:.0f}", height=f"{height:.0f}", font_family=FONT)


def segment(
    x1: float, y1: float, x2: float, y2: float, stroke: str = RULE, width: float = 1, dash: str | None = None
) -> str:
    """A straight line."""
    ends = {"x1": float(x1), "y1": float(y1), "x2": float(x2), "y2": float(y2)}
    return element("line", **ends, stroke=stroke, stroke_width=width, stroke_dasharray=dash)


def polyline(points: Sequence[tuple[float, float]], stroke: str, width: float = 2, dash: str | None = None) -> str:
    """An open path through the points."""
    style = {"stroke_dasharray": dash, "stroke_linejoin": "round", "stroke_linecap": "round"}
    return element("path", d=_format_path(points), fill="none", stroke=stroke, stroke_width=width, **style)


def area(points: Sequence[tuple[float, float]], fill: str, opacity: float = 0.16) -> str:
    """A closed, filled path through the points."""
    return element("path", d=_format_path(points) + "Z", fill=fill, fill_opacity=opacity)


def histogram_path(counts: Sequence[int], scale: LinearScale, base: float, tall: float, least: float = 0.0) -> str:
    """The path of bars over the bins of the scale: the fullest is `tall`, none that is filled is lower than `least`."""
    wide, most = (scale.stop - scale.start) / len(counts), max(*counts, 1)
    return "".join(
        f"M{scale.start + place * wide + 0.5:.1f} {base:.1f}v-{max(count / most * tall, least):.1f}"
        f"h{wide - 1:.1f}V{base:.1f}z"
        for place, count in enumerate(counts)
        if count
    )


def disc(x: float, y: float, radius: float, fill: str, title: str = "", *, hollow: bool = False) -> str:
    """A dot; hollow ones show their colour as a ring."""
    paint = {"fill": "none", "stroke": fill, "stroke_width": 1.6} if hollow else {"fill": fill}
    text = element("title", escape(title)) if title else ""
    return element("circle", text, cx=float(x), cy=float(y), r=float(radius), **paint)


def x_axis(scale: LinearScale, top: float, bottom: float, title: str = "", *, above: bool = False) -> str:
    """Vertical grid lines with their numbers below (or above as well), and the axis title under them."""
    parts = []
    for tick, text in zip(scale.ticks, scale.tick_texts(), strict=True):
        x = scale.at(tick)
        parts.append(segment(x, top, x, bottom, RULE if tick == 0 else GRID))
        parts.append(element("g", label(x, bottom + 16, text, size=SMALL, anchor="middle", fill=MUTED), class_="tick"))
        if above:
            parts.append(label(x, top - 7, text, size=SMALL, anchor="middle", fill=MUTED, halo=True))
    if title:
        middle, room = (scale.start + scale.stop) / 2, (scale.stop - scale.start) * 1.1
        parts.append(label(middle, bottom + 35, title, size=SMALL, anchor="middle", fill=MUTED, room=room))
    return element("g", *parts, class_="x-axis")


def y_axis(scale: LinearScale, left: float, right: float, title: str = "") -> str:
    """Horizontal grid lines with their numbers at the left; the title is horizontal, above the axis."""
    parts = []
    for tick, text in zip(scale.ticks, scale.tick_texts(), strict=True):
        y = scale.at(tick)
        parts.append(segment(left, y, right, y, RULE if tick == 0 else GRID))
        parts.append(element("g", label(left - 7, y + 4, text, size=SMALL, anchor="end", fill=MUTED), class_="tick"))
    if title:
        parts.append(label(2, min(scale.start, scale.stop) - 14, title, size=SMALL, fill=MUTED, room=right - 2))
    return element("g", *parts, class_="y-axis")


def _format_path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points)
