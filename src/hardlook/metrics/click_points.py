"""Clicks as points: the checks that all comparisons of point sets share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def click_points(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """The clicks as (n, 2) float64 x and y in pixels, n at least 1, finite; `name` is what an error calls them.

    >>> click_points([(1, 2)], "clicks")
    array([[1., 2.]])
    """
    points = np.asarray(values, np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(f"{name}: expected points of shape (n, 2), n at least 1, got {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError(f"{name}: expected finite coordinates, got {points[~np.isfinite(points).all(1)][0].tolist()}")
    return points


def box_size(box: tuple[float, float]) -> NDArray[np.float64]:
    """(2,) width and height of an object's box in pixels, both above 0.

    >>> box_size((20, 40))
    array([20., 40.])
    """
    width, height = box
    if not (0 < width < math.inf and 0 < height < math.inf):
        raise ValueError(f"box: expected a width and a height above 0, got {width} and {height}")
    return np.array([width, height], np.float64)
