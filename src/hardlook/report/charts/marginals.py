"""Histograms at the edges of a scatter: how each of the two measurements spreads by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardlook.report.charts.palette import ACCENT
from hardlook.report.charts.scales import LinearScale
from hardlook.report.markup import element, escape

MARGINALS_FROM = 20
DEPTH = 44.0
_BINS = 24
_GAP = 5.0


def draw_marginals(xs: Sequence[float], ys: Sequence[float], x: LinearScale, y: LinearScale) -> str:
    """Bars above the plane for `xs` and at its right for `ys`, each as long as its share of the fullest bin."""
    top, right = y.stop - _GAP, x.stop + _GAP
    above = [
        f"M{start + 0.5:.1f} {top:.1f}v-{share * (DEPTH - 8):.1f}h{size - 1:.1f}V{top:.1f}z"
        for start, size, share in _bars(xs, x)
    ]
    beside = [
        f"M{right:.1f} {start - 0.5:.1f}h{share * (DEPTH - 8):.1f}v{size + 1:.1f}H{right:.1f}z"
        for start, size, share in _bars(ys, y)
    ]
    return element(
        "g",
        _path(above, "how the values along the horizontal axis spread"),
        _path(beside, "how the values along the vertical axis spread"),
        class_="marginals",
    )


def _bars(values: Sequence[float], scale: LinearScale) -> list[tuple[float, float, float]]:
    """Start and size of each filled bin on the page (the size of a vertical one is negative), and its share.

    >>> _bars([0.0, 0.0, 1.0], LinearScale(0, 1, 0, 240))
    [(0.0, 10.0, 1.0), (230.0, 10.0, 0.5)]
    """
    counts, _ = np.histogram(np.asarray(values, np.float64), np.linspace(scale.low, scale.high, _BINS + 1))
    size = (scale.stop - scale.start) / _BINS
    most = max(int(counts.max()), 1)
    filled = ((index, count) for index, count in enumerate(counts.tolist()) if count)
    return [(scale.start + index * size, size, count / most) for index, count in filled]


def _path(pieces: list[str], title: str) -> str:
    return element("path", element("title", escape(title)), d="".join(pieces), fill=ACCENT, fill_opacity=0.4)
