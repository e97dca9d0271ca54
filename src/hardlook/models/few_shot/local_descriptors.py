"""Feature maps as sets of local descriptors: one vector a cell, what learners on maps compare.

>>> maps = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
>>> descriptors(maps)[0].tolist()
[[0.0, 4.0], [1.0, 5.0], [2.0, 6.0], [3.0, 7.0]]
>>> [round(float(length), 6) for length in np.linalg.norm(unit_length(descriptors(maps)[0]), axis=1)]
[1.0, 1.0, 1.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.stacking import Stack

BLOCK_BYTES = 1 << 23
"""Bytes of products of query and support descriptors held at a time: they should stay in the processor's cache."""


def descriptors(maps: NDArray[np.float32]) -> NDArray[np.float32]:
    """(..., C, h, w) maps as (..., h * w, C) descriptors, cells in reading order."""
    *leading, channels, height, width = maps.shape
    cells = maps.reshape(*leading, channels, height * width)
    return np.ascontiguousarray(np.moveaxis(cells, -2, -1))


def unit_length(rows: NDArray[np.float32], axis: int = -1) -> NDArray[np.float32]:
    """The same directions with length 1 along `axis`; what is all zero stays zero."""
    moved = np.moveaxis(rows, axis, -1)
    length = np.expand_dims(np.sqrt(np.einsum("...d,...d->...", moved, moved)), axis)
    unit: NDArray[np.float32] = np.divide(rows, np.where(length > 0, length, 1), dtype=np.float32)
    return unit


def class_cells(stack: Stack) -> list[slice]:
    """Where each class's descriptors lie among a task's (n * h * w, C), since supports are sorted by class."""
    cells = int(np.prod(stack.support.shape[3:]))
    ends = np.cumsum(stack.shots) * cells
    return [slice(int(end - shots * cells), int(end)) for end, shots in zip(ends, stack.shots, strict=True)]


def query_blocks(queries: int, floats_each: int) -> Iterator[slice]:
    """Slices over the queries of a task such that `floats_each` floats a query stay within `BLOCK_BYTES`.

    >>> [(block.start, block.stop) for block in query_blocks(5, BLOCK_BYTES // 8)]
    [(0, 2), (2, 4), (4, 5)]
    """
    size = max(1, BLOCK_BYTES // (4 * max(1, floats_each)))
    for start in range(0, queries, size):
        yield slice(start, min(start + size, queries))
