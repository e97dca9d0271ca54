"""One object of one image, whatever its dataset's layout: the unit of interactive segmentation.

TETRIS is evaluated with the longest side of its images limited to 2048 pixels: `limit_image`, `limit_mask` and
`scale_points` resize image, mask and clicks consistently.

>>> import tempfile
>>> import PIL.Image
>>> from hardlook.data.object_instances.isegm import InteractiveObject
>>> folder = Path(tempfile.mkdtemp())
>>> PIL.Image.new("RGB", (4, 3)).save(folder / "cat.png")
>>> PIL.Image.fromarray(np.array([[0, 1, 1, 0]] * 3, np.uint8)).save(folder / "mask.png")
>>> stored = InteractiveObject("cat", "1", folder / "cat.png", folder / "mask.png", "integers")
>>> cat = ObjectInstance("tetris", "cat", "1", "tetris/cat", stored)
>>> cat.full_stem, cat.read().shape, int(cat.read_target().mask.sum())
('cat_______1', (3, 4, 3), 6)
>>> limit_size((4096, 2731)), limit_size((640, 480))
((2048, 1366), (640, 480))
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks.source import check_mask_size, read_image_size
from hardlook.data.click_names import format_instance_stem
from hardlook.data.images import read_image
from hardlook.data.stored_files import Stored, read_stored_image, read_stored_size
from hardlook.errors import DataError, HardlookError

MAX_SIDE = 2048
Size = tuple[int, int]


@dataclass(frozen=True)
class Target:
    """What is to be segmented: `mask` and `ignore` (H, W) bool, disjoint."""

    mask: NDArray[np.bool_]
    ignore: NDArray[np.bool_]


class StoredObject(Protocol):
    """An object as its dataset stores it; small when pickled."""

    @property
    def path(self) -> Path:
        """The image's file."""

    @property
    def mask_path(self) -> Path:
        """The file that holds the target."""

    def read_target(self) -> Target:
        """The target as stored; its mask may be empty."""


@dataclass(frozen=True)
class ObjectInstance:
    """One object of one image; files are read on demand.

    `dataset` is spelt as by `normalize_dataset_name`. Instances with the same `image_key` show the same image.
    `longest` limits the longest side of image and target in pixels; None keeps the stored size. `image` is the image
    where it is not a file of its own.
    """

    dataset: str
    image_stem: str
    object_stem: str
    image_key: str
    stored: StoredObject
    longest: int | None = None
    image: Stored | None = None

    @property
    def full_stem(self) -> str:
        """The name in click files: the image's stem, and the object's if an image has several objects."""
        return format_instance_stem(self.image_stem, self.object_stem)

    def read(self) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        try:
            pixels = read_image(self.stored.path) if self.image is None else read_stored_image(self.image)
            return limit_image(pixels, self.longest)
        except HardlookError as error:
            raise error.at(unit=self._unit) from error

    def read_target(self) -> Target:
        """The object and the pixels to ignore, at the size of `read`; an empty object is a `DataError`."""
        file = self.stored.mask_path
        try:
            size = self._read_stored_size()
            target = self.stored.read_target()
            check_mask_size((target.mask.shape[1], target.mask.shape[0]), size, file)
        except HardlookError as error:
            raise error.at(unit=self._unit) from error
        if not target.mask.any():
            raise DataError("the mask is empty", file=file, unit=self._unit, remedy="leave the object out")
        limited = Target(limit_mask(target.mask, self.longest), limit_mask(target.ignore, self.longest))
        if not limited.mask.any():
            what = f"nothing is left of the object at {self.longest} pixels"
            raise DataError(what, file=file, unit=self._unit, remedy="leave small objects out with a minimal area")
        return limited

    def size(self) -> Size:
        """Width and height of the image that `read` returns, from the file's header."""
        return limit_size(self._read_stored_size(), self.longest)

    def _read_stored_size(self) -> Size:
        return read_image_size(self.stored.path) if self.image is None else read_stored_size(self.image)

    @property
    def _unit(self) -> str:
        return f"{self.dataset}/{self.full_stem}"


def limit_size(size: Size, longest: int | None = MAX_SIDE) -> Size:
    """Width and height with the longest side at most `longest`; None keeps them."""
    width, height = size
    side = max(size)
    if longest is None or side <= longest:
        return size
    # Round half up in integers, so that sizes do not depend on floating-point rounding.
    return tuple(max(1, (2 * part * longest + side) // (2 * side)) for part in (width, height))  # type: ignore[return-value]


def limit_image(image: NDArray[np.uint8], longest: int | None = MAX_SIDE) -> NDArray[np.uint8]:
    """The image (H, W, 3) uint8, resized by area averaging if it is too large.

    >>> limit_image(np.zeros((4, 8, 3), np.uint8), 4).shape
    (2, 4, 3)
    """
    stored = (image.shape[1], image.shape[0])
    size = limit_size(stored, longest)
    if size == stored:
        return image
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def limit_mask(mask: NDArray[np.bool_], longest: int | None = MAX_SIDE) -> NDArray[np.bool_]:
    """The mask (H, W) bool, resized by nearest neighbour if it is too large.

    >>> limit_mask(np.array([[True, True, False, False]]), 2).tolist()
    [[True, False]]
    """
    height, width = mask.shape
    new_width, new_height = limit_size((width, height), longest)
    if (new_width, new_height) == (width, height):
        return mask
    # Pixel centres, unlike OpenCV's corners, keep the mask aligned with the averaged image.
    rows = (2 * np.arange(new_height) + 1) * height // (2 * new_height)
    columns = (2 * np.arange(new_width) + 1) * width // (2 * new_width)
    return np.ascontiguousarray(mask[np.ix_(rows, columns)])


def scale_points(
    points: NDArray[np.float64], clicked: Size, shown: Size, *, unit: str | None = None
) -> NDArray[np.float64]:
    """Points (n, 2) as x, y on an image of size `clicked`, moved to one of size `shown` (both width, height).

    Pixel centres are whole numbers, so the centre of an image stays its centre. Results lie in 0..side - 1. Sizes of
    different aspect ratios are a `DataError` that names `unit`: the image was rotated or cropped, or is another one.

    >>> scale_points(np.array([[3.5, 0.0]]), (8, 4), (4, 2)).tolist()
    [[1.5, 0.0]]
    """
    if clicked == shown:
        return points
    # Both may have been rounded from a third size, each by half a pixel.
    if abs(clicked[0] * shown[1] - shown[0] * clicked[1]) > max(*clicked, *shown):
        then, now = ("x".join(map(str, size)) for size in (clicked, shown))
        remedy = "give the image that was clicked on, neither rotated nor cropped, or correct w and h"
        raise DataError(f"clicks on an image of {then}, but here it has {now}", unit=unit, remedy=remedy)
    ratio = np.array(shown, np.float64) / np.array(clicked, np.float64)
    return np.asarray(np.clip((points + 0.5) * ratio - 0.5, 0.0, np.array(shown, np.float64) - 1.0))
