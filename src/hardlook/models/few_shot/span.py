"""The span of a task's vectors: a linear head never leaves the span of its supports and its first weights.

A gradient is a mixture of supports; decay and momentum mix what is there. So of D = 640 or 1280 dimensions a task of 25
supports and 5 classes moves in 30. Coordinates in an orthonormal basis of the span keep every product and length:
training there gives the weights that training in all dimensions gives.

>>> rows = np.array([[[3.0, 0, 4, 0], [0, 0, 5, 0]]], np.float32)
>>> span = compute_span(rows)
>>> span.coordinates.shape, (span.coordinates[0] @ span.coordinates[0].T).round(6).tolist()
((1, 2, 2), [[25.0, 20.0], [20.0, 25.0]])
>>> span.lift(span.coordinates[:, :1]).round(6).tolist()
[[[3.0, 0.0, 4.0, 0.0]]]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_SHARE = 1e-12
"""Directions with less than this share of the largest direction's square are rounding, not features."""


@dataclass(frozen=True)
class Span:
    """Rows (T, m, D) in coordinates (T, m, r) float64 of an orthonormal basis; `basis` (T, r, D), None for r = D."""

    coordinates: NDArray[np.float64]
    basis: NDArray[np.float64] | None

    def lift(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights (T, N, r) of the span as weights (T, N, D)."""
        return weights if self.basis is None else weights @ self.basis


def compute_span(rows: NDArray[np.floating[Any]]) -> Span:
    """The span of the rows (T, m, D); r is the smaller of m and D."""
    wide = rows.astype(np.float64)
    if wide.shape[1] >= wide.shape[2]:
        return Span(wide, None)
    # The Gram matrix's eigenvectors cost a fifth of a QR of the rows, and take equal or empty rows as they come.
    squares, turns = np.linalg.eigh(wide @ wide.transpose(0, 2, 1))
    kept = squares > MIN_SHARE * squares[:, -1:]
    lengths = np.sqrt(np.where(kept, squares, 0))
    inverse = np.divide(1, lengths, out=np.zeros_like(lengths), where=kept & (lengths > 0))
    return Span(turns * lengths[:, None, :], (turns * inverse[:, None, :]).transpose(0, 2, 1) @ wide)
