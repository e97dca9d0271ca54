"""The outline of a mask as an SVG path along the edges of its pixels, so that it fits a click to the pixel.

>>> outline_path(np.array([[False, True, True], [False, True, False]]))
'M1 0h2M2 1h1M1 2h1M1 0v2M2 1v1M3 0v1'
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# A speckled mask has more edges than a page can hold; it is then drawn from a coarser one.
MOST_RUNS = 20_000


def outline_path(mask: NDArray[np.bool_], most: int = MOST_RUNS) -> str:
    """The path of a mask (H, W) in its own coordinates: x right, y down, from the upper left corner.

    A mask with more than `most` straight runs is halved in size until it has fewer, and then fits within a cell of
    that size.
    """
    cell = 1
    while True:
        across, down = _runs(mask), _runs(mask.T)
        if len(across) + len(down) <= most or min(mask.shape) == 1:
            break
        mask, cell = _halved(mask), cell * 2
    parts = [f"M{start * cell} {line * cell}h{length * cell}" for line, start, length in across.tolist()]
    parts += [f"M{line * cell} {start * cell}v{length * cell}" for line, start, length in down.tolist()]
    return "".join(parts)


def _runs(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Straight pieces (N, 3) of the outline that lie between two rows: which line, where from, how long."""
    rows, columns = mask.shape
    padded = np.zeros((rows + 2, columns), np.int8)
    padded[1:-1] = mask
    edges = np.zeros((rows + 1, columns + 2), np.int8)
    edges[:, 1:-1] = np.abs(np.diff(padded, axis=0))
    turns = np.diff(edges, axis=1)
    line, start = np.nonzero(turns == 1)
    _, stop = np.nonzero(turns == -1)
    return np.stack([line, start, stop - start], axis=1).astype(np.int64)


def _halved(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A pixel where any of four was one."""
    rows, columns = (-(-size // 2) for size in mask.shape)
    padded = np.zeros((rows * 2, columns * 2), np.bool_)
    padded[: mask.shape[0], : mask.shape[1]] = mask
    return np.asarray(padded.reshape(rows, 2, columns, 2).any(axis=(1, 3)))
