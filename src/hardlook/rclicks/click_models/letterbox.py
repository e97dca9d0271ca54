"""Images and masks of any shape on a square grid, whole and in proportion, and maps on that grid back again.

>>> box = Letterbox.of((100, 200), size=64)
>>> box
Letterbox(height=100, width=200, size=64, top=16, left=0, rows=32, columns=64)
>>> placed = box.place(np.ones((100, 200), np.float32))
>>> placed.shape, float(placed[:16].max()), float(placed[16:48].min())
((64, 64), 0.0, 1.0)
>>> box.take(placed).shape
(100, 200)
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.models.roles import Image, Mask

IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
IMAGENET_STD = np.array([0.229, 0.224, 0.225], np.float32)
Plane = NDArray[np.float32]


@dataclass(frozen=True)
class Letterbox:
    """Where an image of `height` x `width` lies on a grid of `size` x `size`: `rows` x `columns` from (top, left)."""

    height: int
    width: int
    size: int
    top: int
    left: int
    rows: int
    columns: int

    @classmethod
    def of(cls, shape: tuple[int, ...], size: int) -> Letterbox:
        """The longer side fills the grid, the shorter lies in the middle (the odd cell after) and is at least 1."""
        height, width = shape[:2]
        rows = size if height > width else max(height * size // width, 1)
        columns = max(width * size // height, 1) if height > width else size
        return cls(height, width, size, (size - rows) // 2, (size - columns) // 2, rows, columns)

    def place(self, plane: Plane, *, density: bool = False) -> Plane:
        """(height, width[, channels]) float32 on the grid, interpolated; 0 around it.

        Where a `density` shrinks, a cell has the mean of an area, since single clicks fall between samples.
        """
        grid = np.zeros((self.size, self.size, *plane.shape[2:]), np.float32)
        kind = _by_scale(plane.shape, self.rows) if density else cv2.INTER_LINEAR
        self.content(grid)[:] = cv2.resize(plane, (self.columns, self.rows), interpolation=kind)
        return grid

    def content(self, grid: Plane) -> Plane:
        """The part (rows, columns) of the grid that the image covers."""
        return grid[self.top : self.top + self.rows, self.left : self.left + self.columns]

    def take(self, grid: Plane) -> Plane:
        """A map (size, size) on the grid as one of the image, (height, width)."""
        inside = np.ascontiguousarray(self.content(grid))
        wanted = (self.width, self.height)
        return np.asarray(cv2.resize(inside, wanted, interpolation=_by_scale(inside.shape, self.height)), np.float32)

    def points(self, clicks: NDArray[np.integer]) -> NDArray[np.int64]:
        """Clicks (n, 2) x, y in pixels of the image as cells of `content`, x, y."""
        scale = np.array([self.columns / self.width, self.rows / self.height])
        cells = ((np.asarray(clicks) + 0.5) * scale).astype(np.int64)
        inside: NDArray[np.int64] = np.clip(cells, 0, np.array([self.columns - 1, self.rows - 1]))
        return inside


def image_on_grid(image: Image, box: Letterbox) -> Plane:
    """(3, size, size) float32, normalised as ImageNet's images, then 0 around it.

    >>> grey = np.full((2, 4, 3), 255, np.uint8)
    >>> image_on_grid(grey, Letterbox.of(grey.shape, 4))[:, 1, 0].round(2)
    array([2.25, 2.43, 2.64], dtype=float32)
    """
    normalised = (image.astype(np.float32) / np.float32(255) - IMAGENET_MEAN) / IMAGENET_STD
    return np.ascontiguousarray(box.place(normalised).transpose(2, 0, 1))


def masks_on_grid(target: Mask, error: Mask, box: Letterbox) -> Plane:
    """(2, size, size) float32 in [0, 1]: the object's mask, then the error's."""
    return np.stack([box.place(mask.astype(np.float32)) for mask in (target, error)])


def _by_scale(shape: tuple[int, ...], wanted_rows: int) -> int:
    return int(cv2.INTER_AREA if wanted_rows < shape[0] else cv2.INTER_LINEAR)
