"""Input arrays of the metrics: conversion of numpy arrays, nested lists and tensors, and the check of similarities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Tensor(Protocol):
    """The methods of a torch tensor that this package uses on its way to numpy."""

    @property
    def device(self) -> Any:
        """Where the values are; `type` is "cpu" for the memory of the host."""

    def detach(self) -> Tensor:
        """The same values without a history of gradients."""

    def cpu(self) -> Tensor:
        """The same values in the memory of the host."""

    def float(self) -> Tensor:
        """The same values in 32 bits."""

    def numpy(self) -> NDArray[Any]:
        """The same memory as a numpy array."""


Values = ArrayLike | Tensor


def as_numpy(values: Values) -> NDArray[Any]:
    """The values as a numpy array of the same shape and type, without a copy where none is needed.

    Tensors of a type that numpy does not have, such as bfloat16, become float32, which holds their values exactly.

    >>> as_numpy([[1, 2]]).shape
    (1, 2)
    """
    if not hasattr(values, "detach"):
        return np.asarray(values)
    tensor = values.detach().cpu()
    try:
        return tensor.numpy()
    except TypeError:
        return tensor.float().numpy()


def is_on_device(*arrays: Any) -> bool:
    """Whether all of these are tensors outside the memory of the host, on one device.

    >>> is_on_device([1, 2], np.zeros(2))
    False
    """
    devices = {str(array.device) if hasattr(array, "detach") else "cpu" for array in arrays}
    return len(devices) == 1 and not devices.pop().startswith("cpu")


def integer_tensor(values: Any, name: str) -> Any:
    """The values of a tensor as 64-bit integers on its device; bools count as 0 and 1, other types are an error.

    `name` is what the error calls them.
    """
    if values.numel() and (values.is_floating_point() or values.is_complex()):
        raise ValueError(f"{name}: expected integers, got {values.dtype}")
    return values.detach().long()


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
    native = values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
    row = np.ascontiguousarray(native).reshape(-1).view()
    row.flags.writeable = False
    return row


def unique_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """The names of labels as a tuple, or an error that names one that comes twice.

    >>> unique_labels(["cat", "dog", "cat"])
    Traceback (most recent call last):
    ...
    ValueError: labels: expected names that differ, got 'cat' at 0 and 2
    """
    names = tuple(labels)
    if len(set(names)) < len(names):
        first: dict[str, int] = {}
        for place, name in enumerate(names):
            if first.setdefault(name, place) != place:
                raise ValueError(f"labels: expected names that differ, got {name!r} at {first[name]} and {place}")
    return names


def class_mask(values: Values, classes: int, name: str) -> NDArray[np.bool_]:
    """The values as a mask (classes,), or an error where they do not say true or false of each class.

    >>> class_mask([1, 2], 2, "things")
    Traceback (most recent call last):
    ...
    ValueError: things: expected true or false for each class, got 2
    """
    mask = as_numpy(values)
    if mask.shape != (classes,):
        raise ValueError(f"{name}: expected shape ({classes},), got {mask.shape}")
    return as_bools(mask, name, "true or false for each class")


def as_bools(values: NDArray[Any], name: str, wanted: str = "true or false") -> NDArray[np.bool_]:
    """The values as bools, or an error that names one that is neither 0 nor 1.

    >>> as_bools(np.array([[0.0, 0.7]]), "masks")
    Traceback (most recent call last):
    ...
    ValueError: masks: expected true or false, got 0.7
    """
    if values.dtype == np.bool_:
        return values
    if values.size and values.dtype.kind not in "iuf":
        raise ValueError(f"{name}: expected {wanted}, got {values.flat[0]!s}")
    other = (values != 0) & (values != 1)
    if other.any():
        raise ValueError(f"{name}: expected {wanted}, got {values[other][0]}")
    return values.astype(np.bool_)


def check_choice(value: str, allowed: Any, name: str) -> None:
    """Raise an error where the value is none of a `Literal`'s, which a branch would take for the other one.

    >>> from typing import Literal
    >>> check_choice("gtonly", Literal["detectron2", "gt-only"], "mean_over")
    Traceback (most recent call last):
    ...
    ValueError: mean_over: expected detectron2 or gt-only, got 'gtonly'
    """
    if value not in get_args(allowed):
        raise ValueError(f"{name}: expected {' or '.join(get_args(allowed))}, got {value!r}")


def pixel_counts(values: Values, name: str) -> NDArray[np.integer]:
    """The values as an integer array, or an error where one of them is negative and so counts nothing.

    >>> pixel_counts([[3, -1]], "confusion")
    Traceback (most recent call last):
    ...
    ValueError: confusion[0, 1]: expected a count, got -1
    """
    counts = integer_array(values, name)
    if counts.dtype.kind == "i" and counts.min(initial=0) < 0:
        cell = np.argwhere(counts < 0)[0].tolist()
        raise ValueError(f"{name}{cell}: expected a count, got {counts[tuple(cell)]}")
    return counts


# Cosines of 32-bit embeddings miss 0 and 1 by about this much; more is an error.
ROUNDING = 1e-6

# Cells of a similarity matrix that are looked at together: 32 MB of float64.
BLOCK_CELLS = 2**22


def checked_similarity(similarity: Values, classes: int, *, symmetric: bool = False) -> NDArray[np.float64]:
    """(classes, classes) similarities in 0..1 with ones on the diagonal, or an error that names the wrong cell.

    Row = true label, column = label given. Values outside the range by rounding are clipped to it, so that
    the diagonal is exactly 1. With `symmetric` a matrix that is not is an error too.

    >>> checked_similarity([[1, 0.5], [1.5, 1]], classes=2)
    Traceback (most recent call last):
    ...
    ValueError: similarity[1, 0]: expected a number from 0 to 1, got 1.5
    """
    matrix = np.array(as_numpy(similarity), np.float64)
    check_similarity(matrix, classes, symmetric=symmetric)
    np.clip(matrix, 0, 1, out=matrix)
    np.fill_diagonal(matrix, 1)
    return matrix


def check_similarity(matrix: NDArray[Any], classes: int, *, symmetric: bool = False) -> None:
    """Raise an error that names the wrong cell of a similarity matrix, which is read in blocks of rows.

    >>> check_similarity(np.array([[1, 0], [0, 0.5]]), 2)
    Traceback (most recent call last):
    ...
    ValueError: similarity[1, 1]: expected 1, a label is like itself, got 0.5
    """
    if matrix.shape != (classes, classes):
        raise ValueError(f"similarity: expected shape ({classes}, {classes}), got {matrix.shape}")
    rows = max(1, BLOCK_CELLS // max(classes, 1))
    for start in range(0, classes, rows):
        block = np.asarray(matrix[start : start + rows])
        outside = ~((block >= -ROUNDING) & (block <= 1 + ROUNDING))
        if outside.any():
            row, column = np.argwhere(outside)[0]
            value = f"got {block[row, column]:g}"
            raise ValueError(f"similarity[{start + row}, {column}]: expected a number from 0 to 1, {value}")
    wrong = np.flatnonzero(np.abs(matrix.diagonal() - 1) > ROUNDING)
    if wrong.size:
        k = wrong[0]
        raise ValueError(f"similarity[{k}, {k}]: expected 1, a label is like itself, got {matrix[k, k]:g}")
    for start in range(0, classes if symmetric else 0, rows):
        block, mirrored = matrix[start : start + rows], matrix[:, start : start + rows].T
        uneven = np.abs(block - mirrored) > ROUNDING
        if uneven.any():
            row, column = np.argwhere(uneven)[0]
            row += start
            raise ValueError(
                f"similarity[{row}, {column}] is {matrix[row, column]:g} and similarity[{column}, {row}] is "
                f"{matrix[column, row]:g}: expected a symmetric matrix; give asymmetric=True if it is meant "
                "(rows are true labels, columns predicted ones)"
            )


Labels = NDArray[np.int64]
PairSimilarity = Callable[[Labels, Labels], Values]

# Pairs whose similarity is asked for together.
BLOCK_PAIRS = 2**20


def look_up_pairs(
    similarity: Values | PairSimilarity, true: NDArray[np.integer], called: NDArray[np.integer], classes: int
) -> NDArray[np.float64]:
    """(n,) similarity of the pairs of labels, 0 where `called` is not a label, read in blocks of pairs.

    `similarity` is (classes, classes), or a function of two arrays (n,) of labels that returns the similarities of
    these pairs; what it returns is checked.

    >>> look_up_pairs(lambda one, other: np.full(len(one), 0.5), np.array([0, 1]), np.array([1, 2]), classes=2)
    array([0.5, 0. ])
    """
    share = np.zeros(len(true))
    for start in range(0, len(true), BLOCK_PAIRS):
        block = slice(start, start + BLOCK_PAIRS)
        share[block] = _look_up(similarity, true[block], called[block], classes)
    return share


def _look_up(
    similarity: Values | PairSimilarity, true: NDArray[np.integer], called: NDArray[np.integer], classes: int
) -> NDArray[np.float64]:
    labelled = called < classes
    share = np.zeros(len(true))
    one, other = true[labelled].astype(np.int64), called[labelled].astype(np.int64)
    if callable(similarity):
        values = np.asarray(as_numpy(similarity(one, other)), np.float64)
        if values.shape != one.shape:
            raise ValueError(f"similarity: expected {one.shape} numbers for as many pairs, got shape {values.shape}")
        wrong = ~((values >= -ROUNDING) & (values <= 1 + ROUNDING)) | ((one == other) & (np.abs(values - 1) > ROUNDING))
        if wrong.any():
            k = int(wrong.argmax())
            wanted = "1, a label is like itself" if one[k] == other[k] else "a number from 0 to 1"
            raise ValueError(f"similarity of labels {one[k]} and {other[k]}: expected {wanted}, got {values[k]:g}")
    else:
        values = as_numpy(similarity)[one, other].astype(np.float64)
    share[labelled] = np.where(one == other, 1.0, values.clip(0, 1))
    return share
