"""Arrays as they come: numpy arrays, nested lists, or tensors of a library that is not imported here."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Tensor(Protocol):
    """What a torch tensor offers and this package needs of it."""

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
    """The values as a numpy array of some integer type; truth values count as 0 and 1.

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


def flat_row(values: NDArray[np.integer]) -> NDArray[np.integer]:
    """The values in one contiguous, read-only row of native byte order, without a copy where none is needed.

    Compiled kernels are made once for each spelling of their input; this leaves one spelling a type.

    >>> flat_row(np.array([[1, 2], [3, 4]]).T)
    array([1, 3, 2, 4])
    """
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    row = np.ascontiguousarray(native).reshape(-1).view()
    row.flags.writeable = False
    return row
