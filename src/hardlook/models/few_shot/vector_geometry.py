"""Lengths, cosines and distances of stacked vectors.

>>> squared_distances(np.array([[[1.0]]], np.float32), np.array([[[0.0], [4.0]]], np.float32)).tolist()
[[[1.0, 9.0]]]
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.floating[Any])


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors (..., D) of length 1; a vector of length 0 stays.

    >>> unit(np.array([[3, 4], [0, 0]], np.float32)).astype(float).round(3).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.sqrt(np.einsum("...d,...d->...", vectors, vectors))[..., None]
    units: NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units


def squared_distances(queries: NDArray[np.float32], points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Squared Euclidean distances (T, q, m), at least 0, of queries (T, q, D) to points (T, m, D)."""
    # Distances are small differences of large squares; moved to the points' middle, the squares are small too.
    middle = points.mean(axis=1, keepdims=True)
    queries, points = queries - middle, points - middle
    squares = np.einsum("tqd,tqd->tq", queries, queries)[:, :, None] + np.einsum("tmd,tmd->tm", points, points)[:, None]
    distances: NDArray[np.float32] = np.maximum(squares - 2 * (queries @ points.transpose(0, 2, 1)), 0)
    return distances


def softmax(logits: NDArray[Number]) -> NDArray[Number]:
    """Exponentials along the last axis that sum to 1.

    >>> softmax(np.array([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: NDArray[Number] = raised / raised.sum(axis=-1, keepdims=True)
    return shares
