"""Input arrays of the metrics: conversion of numpy arrays, nested lists and tensors, and the check of similarities."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Tensor(Protocol):
    """The methods of a torch tensor that this package uses."""

    def detach(self) -> Tensor:
        """The same values without a history of gradients."""

    def cpu(self) -> Tensor:
        """The same values in the memory of the host."""

    def numpy(self) -> NDArray[Any]:
        """The same memory as a numpy array."""


Values = ArrayLike | Tensor


def as_numpy(values: Values) -> NDArray[Any]:
    """The values as a numpy array of the same shape and type, without a copy where none is needed.

    >>> as_numpy([[1, 2]]).shape
    (1, 2)
    """
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    return np.asarray(values)


def integer_array(values: Values, name: str) -> NDArray[np.integer]:
    """The values as a numpy array of some integer type; bools count as 0 and 1.

    `name` is what an error calls them.

    >>> integer_array([0.5], "prediction")
    Traceback (most recent call last):
    ...
    ValueError: prediction: expected integers, got float64
    """
    array = as_numpy(values)
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    if not array.size:  # an empty list has no type of its own
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name}: expected integers, got {array.dtype}")
    return array


def divide(above: NDArray[Any], below: NDArray[Any]) -> NDArray[np.float64]:
    """`above / below`, NaN where `below` is not above 0.

    >>> divide(np.array([1, 0]), np.array([2, 0]))
    array([0.5, nan])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(below > 0, above / below, np.nan))


def flat_row(values: NDArray[np.integer]) -> NDArray[np.integer]:
    """The values in one contiguous, read-only row of native byte order, without a copy where none is needed.

    Numba compiles once per memory layout of its input; this leaves one layout per type.

    >>> flat_row(np.array([[1, 2], [3, 4]]).T)
    array([1, 3, 2, 4])
    """
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    row = np.ascontiguousarray(native).reshape(-1).view()
    row.flags.writeable = False
    return row


# Cosines of 32-bit embeddings miss 0 and 1 by about this much; more is an error.
ROUNDING = 1e-6


def checked_similarity(similarity: Values, classes: int) -> NDArray[np.float64]:
    """(classes, classes) similarities in 0..1 with ones on the diagonal, or an error that names the wrong cell.

    Row = true label, column = label given. Values outside the range by rounding are clipped to it, so that
    the diagonal is exactly 1.

    >>> checked_similarity([[1, 0.5], [1.5, 1]], classes=2)
    Traceback (most recent call last):
    ...
    ValueError: similarity[1, 0]: expected a number from 0 to 1, got 1.5
    """
    matrix = np.array(as_numpy(similarity), np.float64)
    if matrix.shape != (classes, classes):
        raise ValueError(f"similarity: expected shape ({classes}, {classes}), got {matrix.shape}")
    outside = ~((matrix >= -ROUNDING) & (matrix <= 1 + ROUNDING))
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ValueError(f"similarity[{row}, {column}]: expected a number from 0 to 1, got {matrix[row, column]:g}")
    wrong = np.flatnonzero(np.abs(matrix.diagonal() - 1) > ROUNDING)
    if wrong.size:
        k = wrong[0]
        raise ValueError(f"similarity[{k}, {k}]: expected 1, a label is like itself, got {matrix[k, k]:g}")
    np.clip(matrix, 0, 1, out=matrix)
    np.fill_diagonal(matrix, 1)
    return matrix
