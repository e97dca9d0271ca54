"""The matrix that says how alike two labels are, checked before anything is scored by it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.array_input import Values, as_numpy

# Cosines of 32-bit embeddings miss 0 and 1 by about this much; more is another matrix than was meant.
ROUNDING = 1e-6


def checked_similarity(similarity: Values, classes: int) -> NDArray[np.float64]:
    """(classes, classes) similarities in 0..1 with ones on the diagonal, or an error that names the wrong cell.

    Row = true label, column = label given. What misses the range by rounding is put on its edge, so that a label
    costs nothing against itself, exactly.

    >>> checked_similarity([[1, 0.5], [1.5, 1]], classes=2)
    Traceback (most recent call last):
    ...
    ValueError: similarity[1, 0]: expected a number from 0 to 1, got 1.5
    """
    matrix = np.array(as_numpy(similarity), np.float64)
    if matrix.shape != (classes, classes):
        raise ValueError(f"similarity: expected shape ({classes}, {classes}), got {matrix.shape}")
    outside = ~((matrix >= -ROUNDING) & (matrix <= 1 + ROUNDING))
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise ValueError(f"similarity[{row}, {column}]: expected a number from 0 to 1, got {matrix[row, column]:g}")
    wrong = np.flatnonzero(np.abs(matrix.diagonal() - 1) > ROUNDING)
    if wrong.size:
        k = wrong[0]
        raise ValueError(f"similarity[{k}, {k}]: expected 1, a label is like itself, got {matrix[k, k]:g}")
    np.clip(matrix, 0, 1, out=matrix)
    np.fill_diagonal(matrix, 1)
    return matrix
