"""Numbers that statistics can be computed from: arrays of the right shape without NaN or infinity.

A NaN that slips into a mean turns the whole result into NaN, and a NaN that is dropped changes the question.
So every function here refuses them and says how many there were.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def finite_vector(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `values` as a float64 vector, or raise a ValueError that counts what is not finite.

    `values` has shape (n,), n >= 0; `name` is the word the error uses for it.

    >>> finite_vector([1, 2], "scores")
    array([1., 2.])
    >>> finite_vector([1, float("nan")], "scores")
    Traceback (most recent call last):
    ...
    ValueError: scores: 1 of 2 values are NaN or infinite; leave those units out and report how many
    """
    return _finite(values, name, ndim=1)


def finite_rows(sums: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `sums` as a float64 matrix, or raise a ValueError that counts what is not finite.

    `sums` has shape (n_units, n_columns); integers above 2**53 in absolute value lose their last digits.

    >>> finite_rows([[3, 4], [1, 2]], "sums").shape
    (2, 2)
    """
    return _finite(sums, name, ndim=2)


def check_probability(value: float, name: str) -> None:
    """Raise a ValueError unless `value` lies strictly between 0 and 1.

    >>> check_probability(95, "level")
    Traceback (most recent call last):
    ...
    ValueError: level: expected a number between 0 and 1, got 95
    """
    if not 0 < value < 1:
        raise ValueError(f"{name}: expected a number between 0 and 1, got {value}")


def _finite(values: ArrayLike, name: str, ndim: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim:
        expected = "(n,)" if ndim == 1 else "(n_units, n_columns)"
        raise ValueError(f"{name}: expected shape {expected}, got {array.shape}")
    bad = int(array.size - np.isfinite(array).sum())
    if bad:
        raise ValueError(
            f"{name}: {bad} of {array.size} values are NaN or infinite; leave those units out and report how many"
        )
    return array
