"""A label's neighbours under several measures side by side, and the most similar pairs of a matrix.

>>> import numpy as np
>>> matrix = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
>>> most_similar_pairs(matrix, ["cat", "dog", "car"], 2)
(SimilarPair(first='cat', second='dog', similarity=0.5), SimilarPair(first='dog', second='car', similarity=0.3))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hardlook.labels.label_set import LabelSet
from hardlook.similarity.summary import neighbours

Matrices = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class SimilarPair:
    """Two different labels and their similarity."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True)
class NeighbourList:
    """A label's nearest labels, most similar first, under each measure: (name, similarity)."""

    label: str
    by_measure: Mapping[str, tuple[tuple[str, float], ...]]


def most_similar_pairs(matrix: NDArray[np.float64], names: Sequence[str], count: int) -> tuple[SimilarPair, ...]:
    """The `count` most similar pairs of different labels of a matrix (K, K); equals in the order of the labels."""
    rows, columns = np.triu_indices(len(matrix), 1)
    values = matrix[rows, columns]
    order = np.argsort(-values, kind="stable")[:count]
    return tuple(SimilarPair(names[rows[one]], names[columns[one]], float(values[one])) for one in order)


def neighbour_list(labels: LabelSet, matrices: Matrices, row: int, count: int) -> NeighbourList:
    """The `count` nearest labels of the label in `row` under every measure."""
    names = labels.names
    return NeighbourList(
        names[row],
        {
            measure: tuple((names[one.place], one.similarity) for one in neighbours(matrix, row, count=count))
            for measure, matrix in matrices.items()
        },
    )


def telling_rows(matrices: Matrices, *, count: int, nearest: int) -> tuple[int, ...]:
    """Rows of labels worth a list when nobody asked for any: half of them where measures differ most, half least.

    A label's measure of it is how many of its `nearest` neighbours two measures have in common, on average over the
    pairs of measures. With one measure alone, the labels with the most similar neighbours.

    >>> near, far = np.array([[1, 0.9, 0.1], [0.9, 1, 0.5], [0.1, 0.5, 1]]), np.ones((3, 3))
    >>> telling_rows({"a": near, "b": near, "c": far}, count=2, nearest=1)
    (2, 0)
    """
    size = len(next(iter(matrices.values())))
    if len(matrices) == 1:
        others = next(iter(matrices.values())) - np.eye(size)
        return tuple(int(row) for row in np.argsort(-others.max(axis=1), kind="stable")[:count])
    member = {name: _nearest(matrix, nearest) for name, matrix in matrices.items()}
    shared = np.mean([(member[a] & member[b]).sum(axis=1) for a, b in combinations(member, 2)], axis=0)
    order = np.argsort(shared, kind="stable").tolist()
    low = order[: (count + 1) // 2]
    high = [row for row in np.argsort(-shared, kind="stable").tolist() if row not in low]
    return tuple([*low, *high[: count - len(low)]])


def _nearest(matrix: NDArray[np.float64], count: int) -> NDArray[np.bool_]:
    others = matrix.copy()
    np.fill_diagonal(others, -1.0)
    places = np.argsort(-others, axis=1, kind="stable")[:, :count]
    member = np.zeros(matrix.shape, np.bool_)
    np.put_along_axis(member, places, True, axis=1)
    return member
