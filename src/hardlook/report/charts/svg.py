"""An SVG that is a picture with a text alternative: title, words, and the shapes charts are made of.

>>> drawing("k", 10, 10, "Title", "In words.", "")[:60]
'<svg class="chart" role="img" aria-labelledby="k-title k-wor'
"""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.report.charts.lettering import SMALL, label
from hardlook.report.charts.palette import GRID, MUTED, RULE
from hardlook.report.charts.scales import LinearScale
from hardlook.report.markup import element, escape, plain

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"


def drawing(key: str, width: float, height: float, title: str, words: str, *parts: str, fixed: bool = False) -> str:
    """The outermost element; it fills its box up to its natural width, or keeps that width when `fixed`."""
    return element(
        "svg",
        element("title", escape(plain(title)), id=f"{key}-title"),
        element("desc", escape(plain(words)), id=f"{key}-words"),
        *parts,
        class_="chart fixed" if fixed else "chart",
        role="img",
        aria_labelledby=f"{key}-title {key}-words",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        font_family=FONT,
    )


def segment(
    x1: float, y1: float, x2: float, y2: float, stroke: str = RULE, width: float = 1, dash: str | None = None
) -> str:
    """A straight line."""
    return element(
        "line",
        x1=float(x1),
        y1=float(y1),
        x2=float(x2),
        y2=float(y2),
        stroke=stroke,
        stroke_width=width,
        stroke_dasharray=dash,
    )


def polyline(points: Sequence[tuple[float, float]], stroke: str, width: float = 2, dash: str | None = None) -> str:
    """An open path through the points."""
    return element(
        "path",
        d=_path(points),
        fill="none",
        stroke=stroke,
        stroke_width=width,
        stroke_dasharray=dash,
        stroke_linejoin="round",
        stroke_linecap="round",
    )


def area(points: Sequence[tuple[float, float]], fill: str, opacity: float = 0.16) -> str:
    """A closed, filled path through the points."""
    return element("path", d=_path(points) + "Z", fill=fill, fill_opacity=opacity)


def disc(x: float, y: float, radius: float, fill: str, title: str = "", *, hollow: bool = False) -> str:
    """A dot; hollow ones show their colour as a ring."""
    return element(
        "circle",
        element("title", escape(title)) if title else "",
        cx=float(x),
        cy=float(y),
        r=float(radius),
        fill="none" if hollow else fill,
        stroke=fill if hollow else None,
        stroke_width=1.6 if hollow else None,
    )


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
    """Horizontal grid lines with their numbers at the left; the title lies flat above, where it can be read."""
    parts = []
    for tick, text in zip(scale.ticks, scale.tick_texts(), strict=True):
        y = scale.at(tick)
        parts.append(segment(left, y, right, y, RULE if tick == 0 else GRID))
        parts.append(element("g", label(left - 7, y + 4, text, size=SMALL, anchor="end", fill=MUTED), class_="tick"))
    if title:
        parts.append(label(2, min(scale.start, scale.stop) - 14, title, size=SMALL, fill=MUTED, room=right - 2))
    return element("g", *parts, class_="y-axis")


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points)
