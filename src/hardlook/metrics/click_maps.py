"""Click maps against clicks (NSS, PDE) and against other maps (SIM, KL).

A map is (H, W), 0 or more, with a sum above 0; it is divided by its sum first. Clicks are (n, 2), x then y in pixels;
a fraction of a pixel falls to the pixel it is in. Readings: `released` adds 1e-9 to the sum and to the standard
deviation, `paper` adds nothing.

>>> square = np.zeros((4, 4)); square[1:3, 1:3] = 1
>>> round(nss(square, [(1, 1), (2, 1)], "paper"), 6), round(pde(square, [(1, 1)]), 6)
(1.732051, 0.25)
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.click_sets import click_points

MapReading = Literal["released", "paper"]

EPSILON = 1e-9


def nss(click_map: ArrayLike, clicks: ArrayLike, reading: MapReading = "released") -> float:
    """Normalised scanpath saliency: the mean at the clicks of the map less its mean, over its standard deviation.

    A constant map has no standard deviation: 0. Higher is better.

    >>> nss(np.ones((2, 2)), [(0, 1)])
    0.0
    """
    shares = _normalise(click_map, reading, "click_map")
    clicked = _read_at_clicks(shares, clicks)
    if shares.max() == shares.min():
        return 0.0
    spread = shares.std() + (EPSILON if reading == "released" else 0.0)
    return float((clicked - shares.mean()).mean() / spread)


def pde(click_map: ArrayLike, clicks: ArrayLike, reading: MapReading = "released") -> float:
    """Probability density estimate: the mean probability at the clicks, in [0, 1]; higher is better.

    >>> round(pde([[3.0, 1.0]], [(0, 0), (1, 0)]), 6)
    0.5
    """
    return float(_read_at_clicks(_normalise(click_map, reading, "click_map"), clicks).mean())


def map_similarity(first: ArrayLike, second: ArrayLike) -> float:
    """SIM: the mass that two maps of one shape have in common, the sum of the lesser of both, in [0, 1].

    >>> map_similarity([[1, 1, 0]], [[0, 2, 2]])
    0.5
    """
    p, q = _normalise_both(first, second, "paper")
    return float(np.minimum(p, q).sum())


def map_divergence(target: ArrayLike, predicted: ArrayLike) -> float:
    """KL(target || predicted) in nats: the sum of p log(1e-9 + p / (q + 1e-9)); lower is better.

    Both are maps of one shape. The small number keeps it finite where the target has mass and the prediction none.

    >>> round(map_divergence([[1, 1, 0, 0]], [[1, 1, 1, 1]]), 6)
    0.693147
    """
    p, q = _normalise_both(target, predicted, "released")
    return float((p * np.log(EPSILON + p / (q + EPSILON))).sum())


def _normalise_both(
    first: ArrayLike, second: ArrayLike, reading: MapReading
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    p, q = _normalise(first, reading, "first map"), _normalise(second, reading, "second map")
    if p.shape != q.shape:
        raise ValueError(f"expected maps of one shape, got {p.shape} and {q.shape}")
    return p, q


def _normalise(values: ArrayLike, reading: MapReading, name: str) -> NDArray[np.float64]:
    if reading not in ("released", "paper"):
        raise ValueError(f"reading: expected released or paper, got {reading!r}")
    array = np.asarray(values, np.float64)
    if array.ndim != 2:
        raise ValueError(f"{name}: expected shape (H, W), got {array.shape}")
    total = array.sum()
    if not (np.isfinite(total) and total > 0 and array.min() >= 0):
        raise ValueError(f"{name}: expected values of 0 or more with a sum above 0, got a sum of {total}")
    return np.asarray(array / (total + (EPSILON if reading == "released" else 0.0)))


def _read_at_clicks(shares: NDArray[np.float64], clicks: ArrayLike) -> NDArray[np.float64]:
    height, width = shares.shape
    points = click_points(clicks, "clicks")
    columns, rows = np.floor(points).astype(np.int64).T
    outside = (columns < 0) | (columns >= width) | (rows < 0) | (rows >= height)
    if outside.any():
        x, y = points[outside][0]
        raise ValueError(f"clicks: expected points inside {width} x {height} pixels, got ({x:g}, {y:g})")
    return np.asarray(shares[rows, columns])
