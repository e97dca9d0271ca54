"""Similarity matrices: what makes one valid, and how labels without a place in it are treated.

A similarity matrix is symmetric, its diagonal is 1, and every value lies in [0, 1].

>>> import numpy as np
>>> restrict(np.array([[1.0, 0.3], [0.3, 1.0]]), [1, -1, 0])
array([[1. , 0. , 0.3],
       [0. , 1. , 0. ],
       [0.3, 0. , 1. ]])
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

UNKNOWN = -1
"""The place of a label that is not known: similarity 0 to every other label, 1 to itself."""


def check_similarity(
    matrix: ArrayLike, *, labels: Sequence[str] | None = None, tolerance: float = 1e-6
) -> NDArray[np.float64]:
    """The matrix as float64 (K, K) if it is a similarity matrix, else a ValueError that names the first bad cell.

    Deviations up to `tolerance`, as rounding to a text file or float32 leaves them, are mended: values are clipped to
    [0, 1], the diagonal set to 1, and the two halves averaged. `labels` (K names) make the error readable.

    >>> check_similarity([[1, 0.2], [0.3, 1]], labels=["cat", "dog"])
    Traceback (most recent call last):
    ...
    ValueError: similarity: expected a symmetric matrix, got 0.2 at row 0 (cat), column 1 (dog) and 0.3 mirrored
    """
    values = np.array(matrix, np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"similarity: expected a square matrix, got shape {values.shape}")
    if labels is not None and len(labels) != len(values):
        raise ValueError(f"similarity: expected {len(labels)} rows, one a label, got {len(values)}")

    def refuse(wrong: NDArray[np.bool_], expected: str, mirrored: bool = False) -> None:
        if wrong.any():
            row, column = (int(place) for place in np.argwhere(wrong)[0])
            first, second = (f"{i} ({labels[i]})" if labels is not None else f"{i}" for i in (row, column))
            ending = f" and {values[column, row]:.9g} mirrored" if mirrored else ""
            came = f"{values[row, column]:.9g} at row {first}, column {second}"
            raise ValueError(f"similarity: expected {expected}, got {came}{ending}")

    refuse(~np.isfinite(values), "finite values")
    refuse((values < -tolerance) | (values > 1 + tolerance), "values in [0, 1]")
    refuse(np.eye(len(values), dtype=bool) & (np.abs(values - 1) > tolerance), "1 on the diagonal")
    refuse(np.abs(values - values.T) > tolerance, "a symmetric matrix", mirrored=True)
    mended = np.clip((values + values.T) / 2, 0.0, 1.0)
    np.fill_diagonal(mended, 1.0)
    return mended


def restrict(matrix: NDArray[np.float64], places: ArrayLike) -> NDArray[np.float64]:
    """The similarity matrix of a list of labels (L,), given by their places in `matrix`; -1 is an unknown label.

    A place may come twice: two labels of one meaning have similarity 1 to each other. Two unknown labels have 0.
    """
    chosen = np.asarray(places, np.int64)
    if chosen.ndim != 1 or (len(chosen) and not UNKNOWN <= chosen.min() <= chosen.max() < len(matrix)):
        raise ValueError(f"similarity: expected places in -1..{len(matrix) - 1}, got {chosen.tolist()}")
    known = np.flatnonzero(chosen != UNKNOWN)
    restricted = np.eye(len(chosen))
    restricted[np.ix_(known, known)] = matrix[np.ix_(chosen[known], chosen[known])]
    return restricted


def distinct_nodes(nodes: ArrayLike, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct known nodes (U,), ascending, and for each of the K given its place among them, -1 where unknown.

    >>> distinct_nodes([7, -1, 3, 7], size=9)
    (array([3, 7]), array([ 1, -1,  0,  1]))
    """
    given = np.asarray(nodes, np.int64)
    if given.ndim != 1 or (len(given) and not UNKNOWN <= given.min() <= given.max() < size):
        raise ValueError(f"nodes: expected a vector of values in -1..{size - 1}, got {given.tolist()}")
    distinct = np.unique(given[given != UNKNOWN])
    return distinct, np.where(given == UNKNOWN, UNKNOWN, np.searchsorted(distinct, given))
