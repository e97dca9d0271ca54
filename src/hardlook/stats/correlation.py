"""Correlation of two lists of numbers: Pearson for lines, Spearman for order."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.stats.finite import finite_vector


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's correlation, in [-1, 1].

    `x` and `y` have shape (n,), finite. The result is NaN where it does not exist: n < 2, or all values of one
    list are equal.

    >>> round(pearson([1, 2, 3], [2, 4, 7]), 6)
    0.993399
    """
    a, b = _pair(x, y)
    return _cosine(_centred(a), _centred(b))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation, in [-1, 1]: Pearson's of the ranks, ties having their average rank.

    `x` and `y` have shape (n,), finite. The result is NaN where it does not exist: n < 2, or all values of one
    list are equal.

    >>> spearman([1, 2, 3], [10, 100, 1000])
    1.0
    """
    a, b = _pair(x, y)
    # Twice the centred ranks are whole numbers, so equal and opposite orders give exactly 1 and -1.
    middle = len(a) + 1
    return _cosine(2 * average_ranks(a) - middle, 2 * average_ranks(b) - middle)


def average_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks from 1 for the smallest of the n values; equal values share the average of their places.

    >>> average_ranks([10, 30, 30, 20])
    array([1. , 3.5, 3.5, 2. ])
    """
    _, inverse, counts = np.unique(finite_vector(values, "values"), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def _pair(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = finite_vector(x, "x"), finite_vector(y, "y")
    if len(a) != len(b):
        raise ValueError(f"x has {len(a)} values and y {len(b)}; expected pairs")
    return a, b


def _centred(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # Rounding would leave a constant list with a tiny spread, and a correlation of noise.
    if not len(values) or np.ptp(values) == 0:
        return np.zeros_like(values)
    # Mapping to [0, 1] first keeps squares of very small and very large numbers within range.
    unit = (values - values.min()) / np.ptp(values)
    return np.asarray(unit - unit.mean())


def _cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    size = math.sqrt(float(a @ a) * float(b @ b))
    return max(-1.0, min(1.0, float(a @ b) / size)) if size else math.nan
