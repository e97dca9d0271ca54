"""Text on a drawing: how wide it is, where it is cut, and how labels keep out of each other's way.

Nothing here can ask the browser, so widths are estimates for common sans-serif fonts, a little on the wide side.

>>> shorten("a very long label indeed", size=12, room=80)
'a very lon…'
>>> spread([10, 11, 40], gap=14, low=0, high=100)
[3.5, 17.5, 40.0]
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from hardlook.report.charts.palette import INK, PAGE
from hardlook.report.markup import element, escape

SIZE = 12.5
SMALL = 11.5
_NARROW = frozenset("iljtfrI.,:;'|!()[]{} /\\`-")
_WIDE = frozenset("mwMW@%—…\N{MINUS SIGN}")


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The estimated width of the text, in the same unit as its size."""
    return size * sum(_advance(letter) for letter in text) * (1.09 if bold else 1.0)


def widest(texts: Sequence[str], size: float, *, bold: bool = False) -> float:
    """The width of the widest of these texts; 0 without any."""
    return max((text_width(text, size, bold=bold) for text in texts), default=0.0)


def shorten(text: str, size: float, room: float, *, bold: bool = False) -> str:
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
    """A text element, its baseline at y; cut to `room`, with the whole text in its title where it was cut.

    A halo in the colour of the page keeps it readable over lines.
    """
    shown = text if room is None else shorten(text, size, room, bold=weight is not None)
    title = "" if shown == text else element("title", escape(text))
    return element(
        "text",
        escape(shown) + title,
        x=float(x),
        y=float(y),
        font_size=size,
        text_anchor=None if anchor == "start" else anchor,
        fill=fill,
        font_weight=weight,
        transform=transform,
        stroke=PAGE if halo else None,
        stroke_width=4 if halo else None,
        paint_order="stroke" if halo else None,
    )


def spread(places: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Places moved as little as needed to lie `gap` apart and between low and high, in their old order.

    Neighbours that touch join a cluster, which is centred on the mean of what its members wanted.
    """
    order = sorted(range(len(places)), key=lambda index: (places[index], index))
    clusters: list[tuple[float, list[int]]] = []
    for index in order:
        clusters.append((places[index], [index]))
        while len(clusters) > 1 and _touch(clusters[-2], clusters[-1], gap, low, high):
            (_, second), (_, first) = clusters.pop(), clusters.pop()
            joined = first + second
            wanted = [places[member] - rank * gap for rank, member in enumerate(joined)]
            clusters.append((sum(wanted) / len(wanted) + (len(joined) - 1) * gap / 2, joined))
    settled = [0.0] * len(places)
    for centre, members in clusters:
        top = _top(centre, len(members), gap, low, high)
        for rank, member in enumerate(members):
            settled[member] = top + rank * gap
    return settled


def _touch(
    first: tuple[float, list[int]], second: tuple[float, list[int]], gap: float, low: float, high: float
) -> bool:
    end = _top(first[0], len(first[1]), gap, low, high) + (len(first[1]) - 1) * gap
    return _top(second[0], len(second[1]), gap, low, high) - end < gap - 1e-9


def _top(centre: float, count: int, gap: float, low: float, high: float) -> float:
    return float(max(low, min(centre - (count - 1) * gap / 2, high - (count - 1) * gap)))


def _advance(letter: str) -> float:
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
