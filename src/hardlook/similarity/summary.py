"""What a similarity matrix looks like: its mean and spread, its density, a label's neighbours.

>>> import numpy as np
>>> matrix = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.2], [0.2, 0.2, 1.0]])
>>> summary = summarise(matrix)
>>> round(summary.mean, 3), round(summary.mean_off_diagonal, 3)
(0.533, 0.3)
>>> neighbours(matrix, 2, count=1)
(Neighbour(place=0, similarity=0.2),)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SimilaritySummary:
    """Mean and standard deviation (of the population) over all K x K cells, and over those off the diagonal.

    Without two labels nothing is off the diagonal: those two are NaN.
    """

    labels: int
    mean: float
    std: float
    mean_off_diagonal: float
    std_off_diagonal: float


@dataclass(frozen=True)
class Neighbour:
    """Another label by its place in the matrix, and the similarity to it."""

    place: int
    similarity: float


@dataclass(frozen=True, eq=False)
class DensityCurve:
    """A density over [0, 1]: `centres` (B,) and `density` (B,), whose mean is 1 as the width of all bins is 1."""

    centres: NDArray[np.float64]
    density: NDArray[np.float64]


def summarise(matrix: NDArray[np.float64]) -> SimilaritySummary:
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


def neighbours(matrix: NDArray[np.float64], place: int, *, count: int | None = None) -> tuple[Neighbour, ...]:
    """The other labels, most similar first, equals in their order; the first `count` of them, or all."""
    order = np.argsort(-matrix[place], kind="stable")
    ranked = [Neighbour(int(other), float(matrix[place, other])) for other in order if other != place]
    return tuple(ranked[:count])
