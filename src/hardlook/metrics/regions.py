"""Regions of masks: bounding boxes, exact squared distances, the innermost pixel, and crops around objects.

Distances are squared and integer, so that ties are exact: OpenCV's precise transform is one unit in the last place off
in some pixels, differently with one thread and with two, and would break ties by noise. Where numba is not installed,
scipy's exact transform gives the same distances, more slowly.

>>> mask = np.zeros((7, 9), bool)
>>> mask[1:6, 1:6] = True
>>> find_bounding_box(mask)
Box(top=1, left=1, bottom=6, right=6)
>>> squared_distances(mask, frame_is_background=True)[3].tolist()
[0, 1, 4, 9, 4, 1, 0, 0, 0]
>>> find_innermost_pixel(mask), find_innermost_pixel(mask, taken=np.array([[3, 3]]))
((3, 3, 9), (2, 2, 4))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.kernels import load_kernels

MARGIN = 0.4  # of the region's longer side
MIN_REGION_SIDE = 40  # pixels: a smaller region gets the margin of one of this size
MIN_CROP_SIDE = 256  # pixels: a crop whose longer side is below this is enlarged


@dataclass(frozen=True)
class Box:
    """Rows `top` to `bottom` and columns `left` to `right`, in pixels, the far edges exclusive.

    >>> box = Box(top=2, left=3, bottom=4, right=8)
    >>> box.height, box.width, box.grown(2, (6, 9))
    (2, 5, Box(top=0, left=1, bottom=6, right=9))
    """

    top: int
    left: int
    bottom: int
    right: int

    @property
    def slices(self) -> tuple[slice, slice]:
        """The index of the box in an array (H, W, ...)."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    @property
    def height(self) -> int:
        """Rows in the box."""
        return self.bottom - self.top

    @property
    def width(self) -> int:
        """Columns in the box."""
        return self.right - self.left

    def grown(self, margin: int, shape: tuple[int, ...]) -> Box:
        """The box with `margin` pixels more on each side, clipped to a frame of `shape` (H, W)."""
        return Box(
            max(self.top - margin, 0),
            max(self.left - margin, 0),
            min(self.bottom + margin, shape[0]),
            min(self.right + margin, shape[1]),
        )


def find_bounding_box(mask: NDArray[np.bool_]) -> Box | None:
    """The smallest box around the True pixels of a mask (H, W); None where there are none.

    >>> find_bounding_box(np.zeros((2, 2), bool)) is None
    True
    """
    rows = np.asarray(mask.any(axis=1))
    if not rows.any():
        return None
    top, bottom = _find_ends(rows)
    # Columns are searched only in the rows that have True pixels.
    left, right = _find_ends(np.asarray(mask[top:bottom].any(axis=0)))
    return Box(top, left, bottom, right)


def _find_ends(line: NDArray[np.bool_]) -> tuple[int, int]:
    return int(line.argmax()), len(line) - int(line[::-1].argmax())


def squared_distances(mask: NDArray[np.bool_], *, frame_is_background: bool) -> NDArray[np.int64]:
    """(H, W) int64: the squared distance of each True pixel to the nearest False one, 0 outside the mask.

    Distances are between pixel centres. With `frame_is_background` the pixels just beyond the frame count as False.
    Without it a mask that covers the whole frame has no background to be far from: then all pixels get 1, so that
    none is preferred.

    >>> squared_distances(np.ones((2, 2), bool), frame_is_background=False).tolist()
    [[1, 1], [1, 1]]
    """
    if not frame_is_background and mask.all():
        return np.ones(mask.shape, np.int64)
    kernels = load_kernels("distances")
    if kernels and mask.size:
        squared: NDArray[np.int64] = kernels.squared(np.ascontiguousarray(mask), frame_is_background)
        return squared
    return _by_scipy(mask, frame_is_background)


def find_innermost_pixel(
    mask: NDArray[np.bool_], taken: NDArray[np.integer] | None = None
) -> tuple[int, int, int] | None:
    """Row, column and squared distance of the pixel farthest from the background; None where there is none.

    Outside the frame is background; ties go to the first pixel in row-major order. Pixels in `taken` (k, 2), rows and
    columns, are not chosen but stay part of the mask; they may lie outside the frame.
    """
    if not mask.size:
        return None
    skipped = np.ascontiguousarray(() if taken is None else taken, np.int64).reshape(-1, 2)
    if kernels := load_kernels("distances"):
        row, column, depth = kernels.deepest(np.ascontiguousarray(mask), skipped)
    else:
        squared = _by_scipy(mask, True)
        inside = ((skipped >= 0) & (skipped < mask.shape)).all(axis=1)
        squared[skipped[inside, 0], skipped[inside, 1]] = 0
        row, column = divmod(int(squared.argmax()), mask.shape[1])
        depth = int(squared[row, column])
    return (row, column, depth) if depth else None


def _by_scipy(mask: NDArray[np.bool_], frame_is_background: bool) -> NDArray[np.int64]:
    from scipy import ndimage

    # Its float64 distances, squared, are within 0.5 of the exact integer, so rounding restores it.
    framed = np.pad(mask, 1) if frame_is_background else mask
    squared = np.rint(ndimage.distance_transform_edt(framed) ** 2).astype(np.int64)
    return np.ascontiguousarray(squared[1:-1, 1:-1] if frame_is_background else squared)


@dataclass(frozen=True)
class Crop:
    """A part of the frame, with every pixel enlarged to `factor` x `factor` pixels."""

    box: Box
    factor: int

    def cut(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """The crop of an image (H, W, ...)."""
        part = pixels[self.box.slices]
        return np.ascontiguousarray(part.repeat(self.factor, 0).repeat(self.factor, 1))

    def moved(self, points: Iterable[Any]) -> list[tuple[float, float]]:
        """Points (x, y) of the frame in coordinates of the crop."""
        return [
            (
                (float(x) - self.box.left + 0.5) * self.factor - 0.5,
                (float(y) - self.box.top + 0.5) * self.factor - 0.5,
            )
            for x, y in points
        ]


def crop_around(*masks: NDArray[np.bool_], points: Iterable[tuple[float, float]] = ()) -> Crop:
    """The part of the frame around all masks (H, W) and points (x, y); the whole frame where the masks are empty.

    >>> mask = np.zeros((400, 600), bool)
    >>> mask[100:130, 200:240] = True
    >>> crop = crop_around(mask)
    >>> crop.cut(mask).shape, crop.moved([(200.0, 100.0)])
    ((248, 288), [(65.5, 65.5)])
    >>> crop_around(mask, points=[(0, 0)]).box
    Box(top=0, left=0, bottom=146, right=256)
    """
    union = np.logical_or.reduce(masks)
    height, width = union.shape
    box = find_bounding_box(union) or Box(0, 0, height, width)
    margin = round(MARGIN * max(box.height, box.width, MIN_REGION_SIDE))
    for x, y in points:
        row, column = round(y), round(x)
        box = Box(min(box.top, row), min(box.left, column), max(box.bottom, row + 1), max(box.right, column + 1))
    shown = box.grown(margin, (height, width))
    return Crop(shown, max(1, -(-MIN_CROP_SIDE // max(shown.height, shown.width))))
