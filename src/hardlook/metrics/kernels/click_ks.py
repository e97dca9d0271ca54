"""The statistic of the two-dimensional Kolmogorov-Smirnov test (Fasano and Franceschini), compiled with numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.kernels.compiled import compiled


def quadrant_gaps(draws: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int64]:
    """(draws,) the statistic D of each set in `draws` (draws, n, 2) against `points` (m, 2), times 2 n m.

    Around each point of one set the shares of both sets in a quadrant are compared. D is the mean, over the two sets,
    of the largest difference around any point of the set.

    >>> quadrant_gaps(np.array([[[1.0, 1.0]]]), np.array([[2.0, 2.0]]))
    array([2])
    """
    # (2, n): x and y are contiguous, so that the inner loop is vectorised.
    drawn_xy, points_xy = np.ascontiguousarray(np.moveaxis(draws, 2, 1)), np.ascontiguousarray(points.T)
    gaps = np.empty(len(draws), np.int64)
    _fill_gaps(drawn_xy, points_xy, gaps)
    return gaps


@compiled
def _count_left_and_below(points: Any, x: Any, y: Any) -> Any:
    lefts, belows, both = 0, 0, 0
    for j in range(points.shape[1]):
        left, below = points[0, j] <= x, points[1, j] <= y
        lefts += left
        belows += below
        both += left & below
    return lefts, belows, both


@compiled
def _find_largest_gap(centres: Any, others: Any) -> Any:
    n, m = centres.shape[1], others.shape[1]
    low, high = n * m, -n * m
    for i in range(n):
        x, y = centres[0, i], centres[1, i]
        lefts, belows, both = _count_left_and_below(centres, x, y)
        other_lefts, other_belows, other_both = _count_left_and_below(others, x, y)
        first = both * m - other_both * n
        second = (lefts - both) * m - (other_lefts - other_both) * n
        third = (belows - both) * m - (other_belows - other_both) * n
        # The four shares of either set add up to 1, so the differences add up to 0.
        fourth = -first - second - third
        low = min(low, first - m, second, third, fourth)
        high = max(high, first - m, second, third, fourth)
    return max(-low, high + m)


@compiled
def _fill_gaps(draws: Any, points: Any, gaps: Any) -> None:
    for k in range(draws.shape[0]):
        gaps[k] = _find_largest_gap(draws[k], points) + _find_largest_gap(points, draws[k])
