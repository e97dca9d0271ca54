"""Similarity matrices as arrays: validity, cosine similarity, summary, neighbours, and agreement of two matrices.

A similarity matrix is symmetric, its diagonal is 1, and every value lies in [0, 1].

>>> matrix = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.2], [0.2, 0.2, 1.0]])
>>> summary = summarise_matrix(matrix)
>>> round(summary.mean, 3), round(summary.mean_off_diagonal, 3)
(0.533, 0.3)
>>> rank_neighbours(matrix, 2, count=1)
(Neighbour(row=0, similarity=0.2),)
>>> round(rank_agreement(matrix, matrix**2), 6), neighbour_overlap(matrix, matrix**2, count=1)
(1.0, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

UNKNOWN = -1
"""The number of an unknown label: similarity 0 to every other label, 1 to itself."""

# Rows and columns of a matrix that are checked together: 32 MB of float64.
TILE = 2048


def check_similarity(
    matrix: ArrayLike,
    *,
    labels: Sequence[str] | None = None,
    tolerance: float = 1e-6,
    asymmetric: bool = False,
) -> NDArray[np.float64]:
    """The matrix as float64 (K, K) if it is a similarity matrix, else a ValueError that names the first bad cell.

    Deviations up to `tolerance`, such as rounding errors of text files or float32, are corrected: values are clipped
    to [0, 1], the diagonal set to 1, and the two halves averaged. With `asymmetric` the halves may differ and stay as
    they are. `labels` (K names) make the error readable.

    >>> check_similarity([[1, 0.2], [0.3, 1]], labels=["cat", "dog"])
    Traceback (most recent call last):
    ...
    ValueError: similarity: expected a symmetric matrix, got 0.2 at row 0 (cat), column 1 (dog) and 0.3 mirrored
    """
    values = np.array(matrix, np.float64)
    check_cells(values, labels=labels, tolerance=tolerance, symmetric=not asymmetric)
    corrected = np.clip(values if asymmetric else (values + values.T) / 2, 0.0, 1.0)
    np.fill_diagonal(corrected, 1.0)
    return corrected


def check_cells(
    values: NDArray[np.floating],
    *,
    labels: Sequence[str] | None = None,
    tolerance: float = 1e-6,
    symmetric: bool = True,
) -> None:
    """Raise a ValueError that names the first bad cell of a matrix (K, K), which is read in tiles and not copied."""
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise ValueError(f"similarity: expected a square matrix, got shape {values.shape}")
    if labels is not None and len(labels) != len(values):
        raise ValueError(f"similarity: expected {len(labels)} rows, one per label, got {len(values)}")

    def fail(row: int, column: int, expected: str, mirrored: bool = False) -> None:
        first, second = (f"{i} ({labels[i]})" if labels is not None else f"{i}" for i in (row, column))
        ending = f" and {values[column, row]:.9g} mirrored" if mirrored else ""
        cell = f"{values[row, column]:.9g} at row {first}, column {second}"
        raise ValueError(f"similarity: expected {expected}, got {cell}{ending}")

    def check_rows(is_wrong: Callable[[NDArray[np.floating]], NDArray[np.bool_]], expected: str) -> None:
        for start in range(0, len(values), rows):
            wrong = is_wrong(values[start : start + rows])
            if wrong.any():
                row, column = (int(place) for place in np.argwhere(wrong)[0])
                fail(start + row, column, expected)

    rows = max(1, TILE**2 // max(1, len(values)))
    check_rows(lambda block: ~np.isfinite(block), "finite values")
    check_rows(lambda block: (block < -tolerance) | (block > 1 + tolerance), "values in [0, 1]")
    for k in np.flatnonzero(np.abs(values.diagonal() - 1) > tolerance)[:1].tolist():
        fail(k, k, "1 on the diagonal")
    if symmetric and (found := _find_uneven(values, tolerance)):
        fail(*found, "a symmetric matrix", mirrored=True)


def _find_uneven(values: NDArray[np.floating], tolerance: float) -> tuple[int, int] | None:
    """The first cell, row by row, that differs from the mirrored one."""
    for start in range(0, len(values), TILE):
        uneven: list[tuple[int, int]] = []
        for begin in range(0, len(values), TILE):
            tile = values[start : start + TILE, begin : begin + TILE]
            wrong = np.abs(tile - values[begin : begin + TILE, start : start + TILE].T) > tolerance
            if wrong.any():
                row, column = (int(place) for place in np.argwhere(wrong)[0])
                uneven.append((start + row, begin + column))
        if uneven:
            return min(uneven)
    return None


def restrict_matrix(matrix: NDArray[np.float64], places: ArrayLike) -> NDArray[np.float64]:
    """The similarity matrix of a list of labels (L,), given by their rows in `matrix`; -1 is an unknown label.

    A row may occur twice: two labels of one meaning have similarity 1 to each other. Two unknown labels have 0.

    >>> restrict_matrix(np.array([[1.0, 0.3], [0.3, 1.0]]), [1, -1, 0])
    array([[1. , 0. , 0.3],
           [0. , 1. , 0. ],
           [0.3, 0. , 1. ]])
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
    given = check_nodes(nodes, size)
    distinct = np.unique(given[given != UNKNOWN])
    return distinct, np.where(given == UNKNOWN, UNKNOWN, np.searchsorted(distinct, given))


def check_nodes(nodes: ArrayLike, size: int) -> NDArray[np.int64]:
    """The nodes (K,) of a graph of `size` nodes as int64, -1 for an unknown one; a ValueError for any other number."""
    given = np.asarray(nodes, np.int64)
    if given.ndim != 1 or (len(given) and not UNKNOWN <= given.min() <= given.max() < size):
        raise ValueError(f"nodes: expected a vector of values in -1..{size - 1}, got {given.tolist()}")
    return given


def cosine_matrix(vectors: ArrayLike) -> NDArray[np.float64]:
    """(K, K) cosine of K vectors (K, D), in [0, 1]; a negative cosine becomes 0.

    A zero vector, that of an unknown word, has 0 with every other vector. The diagonal is 1. A value that is not
    finite is a ValueError that names its row.

    >>> cosine_matrix([[1, 0], [1, 1], [-1, 0], [0, 0]]).round(3)
    array([[1.   , 0.707, 0.   , 0.   ],
           [0.707, 1.   , 0.   , 0.   ],
           [0.   , 0.   , 1.   , 0.   ],
           [0.   , 0.   , 0.   , 1.   ]])
    """
    rows = unit_vectors(vectors)
    cosine = np.clip(rows @ rows.T, 0.0, 1.0)
    cosine = (cosine + cosine.T) / 2
    np.fill_diagonal(cosine, 1.0)
    return cosine


def unit_vectors(vectors: ArrayLike) -> NDArray[np.float64]:
    """The vectors (K, D) at length 1, zero vectors as they are; a value that is not finite is a ValueError."""
    rows = np.array(vectors, np.float64)
    if rows.ndim != 2:
        raise ValueError(f"vectors: expected a matrix (K, D), got shape {rows.shape}")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        what = f"vectors: expected finite values, got {rows[bad[0]][~np.isfinite(rows[bad[0]])][0]} in row {bad[0]}"
        raise ValueError(what)
    # Divided by the largest entry first, so that squares neither overflow nor vanish.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    np.divide(rows, largest, out=rows, where=largest > 0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, length, out=rows, where=length > 0)
    return rows


@dataclass(frozen=True)
class SimilaritySummary:
    """Mean and standard deviation (of the population) of all K x K cells, and off the diagonal (NaN for one label)."""

    labels: int
    mean: float
    std: float
    mean_off_diagonal: float
    std_off_diagonal: float


@dataclass(frozen=True)
class Neighbour:
    """Another label by its row in the matrix, and the similarity to it."""

    row: int
    similarity: float


@dataclass(frozen=True, eq=False)
class DensityCurve:
    """A density over [0, 1]: `centres` (B,) and `density` (B,), whose mean is 1 as the width of all bins is 1."""

    centres: NDArray[np.float64]
    density: NDArray[np.float64]


def summarise_matrix(matrix: NDArray[np.float64]) -> SimilaritySummary:
    """The summary of a similarity matrix (K, K), K at least 1."""
    others = off_diagonal(matrix)
    mean, std = (float(others.mean()), float(others.std())) if len(others) else (np.nan, np.nan)
    return SimilaritySummary(len(matrix), float(matrix.mean()), float(matrix.std()), mean, std)


def off_diagonal(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """(K (K - 1) / 2,) the similarity of each pair of different labels, once, row by row.

    >>> off_diagonal(np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])).tolist()
    [0.5, 0.2, 0.1]
    """
    return matrix[np.triu_indices(len(matrix), 1)]


def density_curve(matrix: NDArray[np.float64], *, bins: int = 50, diagonal: bool = False) -> DensityCurve:
    """The density of similarities in equal bins over [0, 1], of pairs of different labels unless `diagonal`.

    >>> density_curve(np.array([[1.0, 0.6], [0.6, 1.0]]), bins=4).density.tolist()
    [0.0, 0.0, 4.0, 0.0]
    """
    values = matrix.ravel() if diagonal else off_diagonal(matrix)
    if len(values) == 0:
        raise ValueError("density: expected at least two labels, got one")
    # Path similarities are fractions such as 3/10: a value on a border belongs to the bin above, rounding or not.
    places = np.minimum((values * bins + 1e-9).astype(np.int64), bins - 1)
    counts = np.bincount(places, minlength=bins).astype(np.float64)
    return DensityCurve((np.arange(bins) + 0.5) / bins, counts * (bins / len(values)))


def rank_neighbours(matrix: NDArray[np.float64], row: int, *, count: int | None = None) -> tuple[Neighbour, ...]:
    """The other labels, most similar to that in `row` first, ties in their order; the first `count` of them, or all."""
    order = np.argsort(-matrix[row], kind="stable")
    ranked = [Neighbour(int(other), float(matrix[row, other])) for other in order if other != row]
    return tuple(ranked[:count])


def rank_agreement(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Spearman's correlation, in [-1, 1], of two matrices (K, K) over pairs of different labels; NaN if constant."""
    return float(agreement_table([first, second])[0, 1])


def agreement_table(matrices: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """(m, m) rank agreement between each two of m matrices (K, K) over the same labels.

    >>> a = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])
    >>> agreement_table([a, a, 1 - a]).round(6).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """
    from scipy.stats import rankdata

    shapes = {matrix.shape for matrix in matrices}
    if len(shapes) != 1:
        raise ValueError(f"agreement: expected matrices of one shape, got {sorted(shapes)}")
    ranks = np.stack([rankdata(off_diagonal(matrix)) for matrix in matrices])
    centred = ranks - ranks.mean(axis=1, keepdims=True) if ranks.shape[1] else ranks
    products = centred @ centred.T
    spread = np.sqrt(np.diag(products))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.clip(products / np.outer(spread, spread), -1.0, 1.0))


def neighbour_overlap(first: NDArray[np.float64], second: NDArray[np.float64], *, count: int = 5) -> float:
    """The share of each label's `count` nearest labels that two matrices have in common, averaged over labels; [0, 1].

    Labels tied for the last places share them: three labels tied for one place count a third each. So the order of
    labels has no effect, and a matrix agrees with itself completely.
    """
    if first.shape != second.shape or not 0 < count < len(first):
        raise ValueError(
            f"neighbours: expected two matrices of one shape and a count below their size, "
            f"got {first.shape}, {second.shape} and {count}"
        )
    both = np.minimum(_neighbour_weights(first, count), _neighbour_weights(second, count))
    return float(both.sum(axis=1).mean() / count)


def _neighbour_weights(matrix: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    others = matrix.copy()
    np.fill_diagonal(others, -np.inf)
    border = -np.partition(-others, count - 1, axis=1)[:, [count - 1]]
    above, tied = others > border, others == border
    share = (count - above.sum(axis=1)) / tied.sum(axis=1)
    return np.where(above, 1.0, tied * share[:, None])
