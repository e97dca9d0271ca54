"""Cosine similarity of vectors, negatives to 0.

>>> cosine_matrix([[1, 0], [1, 1], [-1, 0], [0, 0]]).round(3)
array([[1.   , 0.707, 0.   , 0.   ],
       [0.707, 1.   , 0.   , 0.   ],
       [0.   , 0.   , 1.   , 0.   ],
       [0.   , 0.   , 0.   , 1.   ]])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def cosine_matrix(vectors: ArrayLike) -> NDArray[np.float64]:
    """(K, K) cosine of K vectors (K, D), in [0, 1]; a negative cosine becomes 0.

    A zero vector, which stands for an unknown word, has 0 with every other vector. The diagonal is 1. A value that is
    not finite is a ValueError that names its row.
    """
    rows = np.array(vectors, np.float64)
    if rows.ndim != 2:
        raise ValueError(f"vectors: expected a matrix (K, D), got shape {rows.shape}")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise ValueError(
            f"vectors: expected finite values, got {rows[bad[0]][~np.isfinite(rows[bad[0]])][0]} in row {bad[0]}"
        )
    # The largest entry goes first, so that squares neither overflow nor vanish.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    np.divide(rows, largest, out=rows, where=largest > 0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, length, out=rows, where=length > 0)
    cosine = np.clip(rows @ rows.T, 0.0, 1.0)
    cosine = (cosine + cosine.T) / 2
    np.fill_diagonal(cosine, 1.0)
    return cosine
