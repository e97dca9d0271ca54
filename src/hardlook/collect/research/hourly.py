"""Answers an hour as a small drawing: bars from counts, the latest hour at the right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.report.charts.lettering import SMALL, label
from hardlook.report.charts.palette import ACCENT, MUTED, RULE
from hardlook.report.charts.scales import fit
from hardlook.report.charts.svg import drawing, segment, y_axis
from hardlook.report.markup import element
from hardlook.report.numerals import counted, numeral

HOURS = 48
_TOP, _TALL, _LEFT, _RIGHT = 34.0, 120.0, 52.0, 8.0


def answers_by_hour(received: NDArray[np.float64], now: float, hours: int = HOURS) -> NDArray[np.int64]:
    """Counts (hours,) of answers in each of the last hours, the oldest first; the last one ends now.

    `received` (N,) and `now` are seconds. An answer from a clock ahead of ours counts as of the last hour.

    >>> answers_by_hour(np.array([0.0, 3600.0, 7100.0]), now=7200.0, hours=3).tolist()
    [0, 1, 2]
    """
    ago = np.maximum(np.ceil((now - received) / 3600).astype(np.int64) - 1, 0)
    counts = np.bincount(ago[ago < hours], minlength=hours)
    return counts[::-1].astype(np.int64)


def draw_hours(counts: NDArray[np.int64], *, key: str, width: float) -> str:
    """The drawing as SVG with everything in words; nothing where there is no answer."""
    if not counts.sum():
        return ""
    base, wide = _TOP + _TALL, (width - _LEFT - _RIGHT) / len(counts)
    scale = fit([0, int(counts.max())], start=base, stop=_TOP, ticks=3)
    bars = "".join(
        f"M{_LEFT + place * wide + 0.5:.1f} {base:.1f}V{min(scale.at(count), base - 1):.1f}h{wide - 1:.1f}V{base:.1f}z"
        for place, count in enumerate(counts.tolist())
        if count
    )
    parts = [y_axis(scale, _LEFT, width - _RIGHT, "answers an hour"), element("path", d=bars, fill=ACCENT)]
    parts.append(segment(_LEFT, base, width - _RIGHT, base, RULE))
    for ago in range(0, len(counts) + 1, 12 if width > 500 else 24):
        said = "now" if not ago else f"{ago} h ago"
        anchor = "end" if not ago else "start" if ago == len(counts) else "middle"
        x = width - _RIGHT - ago * wide
        parts.append(label(x, base + 16, said, size=SMALL, anchor=anchor, fill=MUTED))
    return drawing(key, width, base + 24, "Answers an hour", in_words(counts), *parts)


def in_words(counts: NDArray[np.int64]) -> str:
    """The drawing in words.

    >>> in_words(np.array([0, 4, 1]))
    '5 answers in the last 3 hours, 1 in the last hour; the most in an hour were 4.'
    """
    return (
        f"{counted(int(counts.sum()), 'answer')} in the last {len(counts)} hours, "
        f"{numeral(int(counts[-1]), 0)} in the last hour; the most in an hour were {numeral(int(counts.max()), 0)}."
    )
