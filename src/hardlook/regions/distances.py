"""Exact squared distances inside a mask, and its innermost pixel.

Distances are whole numbers, squared, so that equal ones compare equal: OpenCV's precise transform is one unit in the
last place off in some pixels, differently with one thread and with two, and would leave ties to noise. Where numba is
not installed scipy's exact transform does the same, more slowly.

>>> mask = np.zeros((7, 9), bool)
>>> mask[1:6, 1:6] = True
>>> squared_distances(mask, frame_is_background=True)[3].tolist()
[0, 1, 4, 9, 4, 1, 0, 0, 0]
>>> innermost(mask)
(3, 3, 9)
>>> innermost(mask, taken=np.array([[3, 3]]))
(2, 2, 4)
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NONE_TAKEN = np.empty((0, 2), np.int64)


def squared_distances(mask: NDArray[np.bool_], *, frame_is_background: bool) -> NDArray[np.int64]:
    """(H, W) int64: the squared distance of each True pixel to the nearest False one, 0 outside the mask.

    Distances are between pixel centres. With `frame_is_background` the pixels just beyond the frame count as False.
    Without it a mask that covers the whole frame has no background to be far from: then all pixels get 1, so that
    none is preferred.

    >>> squared_distances(np.ones((2, 2), bool), frame_is_background=False).tolist()
    [[1, 1], [1, 1]]
    """
    if not frame_is_background and mask.all():
        return np.ones(mask.shape, np.int64)
    kernel = _kernel()
    if kernel is not None and mask.size:
        squared: NDArray[np.int64] = kernel.squared(np.ascontiguousarray(mask), frame_is_background)
        return squared
    return _by_scipy(mask, frame_is_background)


def innermost(mask: NDArray[np.bool_], taken: NDArray[np.integer] | None = None) -> tuple[int, int, int] | None:
    """Row, column and squared distance of the pixel farthest from the background; None where there is none.

    The frame's outside is background; of equal pixels the first in rows, then columns. Pixels in `taken` (k, 2), rows
    and columns, which may lie outside the frame, are passed over though they stay part of the mask.
    """
    if not mask.size:
        return None
    passed = _NONE_TAKEN if taken is None else np.ascontiguousarray(taken, np.int64).reshape(-1, 2)
    kernel = _kernel()
    if kernel is not None:
        row, column, depth = kernel.deepest(np.ascontiguousarray(mask), passed)
    else:
        squared = _by_scipy(mask, True)
        kept = ((passed >= 0) & (passed < mask.shape)).all(axis=1)
        squared[passed[kept, 0], passed[kept, 1]] = 0
        row, column = divmod(int(squared.argmax()), mask.shape[1])
        depth = int(squared[row, column])
    return (row, column, depth) if depth else None


@cache
def _kernel() -> Any:
    """The compiled functions, or None without numba."""
    try:
        return import_module("hardlook.regions.distance_kernel")
    except ImportError:
        return None


def _by_scipy(mask: NDArray[np.bool_], frame_is_background: bool) -> NDArray[np.int64]:
    from scipy import ndimage

    # Its float64 roots square to within half of the whole number they came from.
    framed = np.pad(mask, 1) if frame_is_background else mask
    squared = np.rint(ndimage.distance_transform_edt(framed) ** 2).astype(np.int64)
    return np.ascontiguousarray(squared[1:-1, 1:-1] if frame_is_background else squared)
