"""Vectors of length 1, so that a dot product is a cosine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def unit_vectors(vectors: NDArray[np.float32], axis: int = -1) -> NDArray[np.float32]:
    """The vectors along `axis` of an array of any shape, scaled to length 1; a vector of length 0 becomes 0.

    >>> unit_vectors(np.array([[3, 4], [0, 0]], np.float32)).astype(float).round(3).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    moved = np.moveaxis(vectors, axis, -1)
    lengths = np.expand_dims(np.sqrt(np.einsum("...d,...d->...", moved, moved)), axis)
    return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0))
