"""What can be read from vectors along straight lines: a ridge classifier, its penalty chosen by leaving one out.

Columns are standardised on the training rows, targets are +1 and -1 a class, the highest answer wins. Everything is
closed-form and needs no seed.

>>> rng = np.random.default_rng(0)
>>> labels = np.arange(90) % 3
>>> vectors = np.eye(3)[labels] + 0.1 * rng.standard_normal((90, 3))
>>> float((out_of_fold(vectors, labels, np.arange(90) // 30) == labels).mean())
1.0
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

PENALTIES = tuple(float(10.0**power) for power in range(-2, 6))


def fit_and_predict(
    vectors: ArrayLike, labels: ArrayLike, others: ArrayLike, penalties: tuple[float, ...] = PENALTIES
) -> NDArray[np.generic]:
    """Labels (m,) for `others` (m, D), from `vectors` (n, D) with `labels` (n,) of two or more kinds.

    The penalty with the least squared leave-one-out error over all classes is taken; a tie goes to the smaller one.
    """
    x, new = np.asarray(vectors, np.float64), np.asarray(others, np.float64)
    kinds, codes = np.unique(np.asarray(labels), return_inverse=True)
    if len(kinds) < 2 or x.ndim != 2 or len(x) != len(codes):
        raise ValueError(f"labels: expected two or more kinds for {x.shape} vectors, got {len(kinds)} in {len(codes)}")
    centre, scale = x.mean(0), x.std(0)
    # A column that rounding alone makes vary must not be blown up to full size.
    scale = np.where(scale > 1e-9 * np.abs(x).max(0, initial=0), scale, 1.0)
    x, new = (x - centre) / scale, (new - centre) / scale
    targets = np.where(codes[:, None] == np.arange(len(kinds)), 1.0, -1.0)
    offset = targets.mean(0)
    basis, squares = _left_basis(x)
    along = basis.T @ (targets - offset)
    errors = [_leave_one_out(basis, squares, along, targets - offset, penalty) for penalty in penalties]
    weights = x.T @ (basis @ (along / (squares + penalties[int(np.argmin(errors))])[:, None]))
    return np.asarray(kinds[np.argmax(new @ weights + offset, axis=1)])


def out_of_fold(vectors: ArrayLike, labels: ArrayLike, folds: ArrayLike) -> NDArray[np.generic]:
    """Labels (n,) read for every row by a probe of the other folds; rows of fold -1 train always, and keep their own.

    `folds` (n,) are whole numbers from -1. Every fold's complement needs two kinds of labels.
    """
    x, truth, numbers = np.asarray(vectors), np.asarray(labels), np.asarray(folds)
    read = truth.copy()
    for fold in np.unique(numbers[numbers >= 0]):
        asked = numbers == fold
        read[asked] = fit_and_predict(x[~asked], truth[~asked], x[asked])
    return np.asarray(read)


def _left_basis(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Left singular vectors (n, r) and squared singular values (r,), from the smaller of the two Gram matrices."""
    rows, columns = x.shape
    gram = x @ x.T if rows <= columns else x.T @ x
    squares, vectors = np.linalg.eigh(gram)
    kept = squares > squares.max(initial=0.0) * max(rows, columns) * np.finfo(np.float64).eps
    squares, vectors = squares[kept], vectors[:, kept]
    return (vectors if rows <= columns else x @ vectors / np.sqrt(squares)), squares


def _leave_one_out(
    basis: NDArray[np.float64],
    squares: NDArray[np.float64],
    along: NDArray[np.float64],
    targets: NDArray[np.float64],
    penalty: float,
) -> float:
    """Mean squared error of each row as told by all others: residuals over one minus leverage, without refitting."""
    shrunk = squares / (squares + penalty)
    residuals = targets - basis @ (shrunk[:, None] * along)
    leverage = (basis**2) @ shrunk + 1 / len(basis)  # 1 / n is the intercept's
    return float(np.mean((residuals / np.maximum(1 - leverage, 1e-12)[:, None]) ** 2))
