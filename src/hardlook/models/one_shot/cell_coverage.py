"""How much of each cell of a feature map a mask covers.

>>> mask = np.zeros((4, 6), bool)
>>> mask[:, :2] = True
>>> cell_coverage(mask, (2, 2)).tolist()
[[0.6666666865348816, 0.0], [0.6666666865348816, 0.0]]
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from hardlook.models.roles import Mask


def cell_coverage(mask: Mask, grid: tuple[int, int]) -> NDArray[np.float32]:
    """Share of each cell's area that the mask (H, W) covers: (h, w) float32 in [0, 1] for a grid of h x w cells.

    The grid covers the whole picture, with any ratio of sizes: a pixel on a border counts for both cells by its
    parts, and a picture of fewer pixels than cells is right too. Exactly 0 where a cell has no pixel of the mask.
    """
    down, across = _shares(mask.shape[0], grid[0]), _shares(mask.shape[1], grid[1])
    covered: NDArray[np.float32] = down @ mask.astype(np.float32) @ across.T
    return np.minimum(covered, np.float32(1))


@functools.lru_cache(maxsize=1024)
def _shares(pixels: int, cells: int) -> NDArray[np.float32]:
    """(cells, pixels): which part of the cell's length lies in the pixel; rows sum to 1."""
    borders = np.arange(cells + 1)[:, None] * (pixels / cells)
    starts = np.arange(pixels)
    common = np.minimum(borders[1:], starts + 1) - np.maximum(borders[:-1], starts)
    shares: NDArray[np.float32] = (np.clip(common, 0, None) * (cells / pixels)).astype(np.float32)
    shares.setflags(write=False)
    return shares
