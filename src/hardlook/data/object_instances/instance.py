"""One object of one image, from whichever layout: the unit of interactive segmentation.

>>> import tempfile
>>> import PIL.Image
>>> from hardlook.data.object_instances.isegm import InteractiveObject
>>> folder = Path(tempfile.mkdtemp())
>>> PIL.Image.new("RGB", (4, 3)).save(folder / "cat.png")
>>> PIL.Image.fromarray(np.array([[0, 1, 1, 0]] * 3, np.uint8)).save(folder / "mask.png")
>>> stored = InteractiveInstance("cat", "1", folder / "cat.png", folder / "mask.png", "integers")
>>> cat = ObjectInstance("tetris", "cat", "1", "tetris/cat", stored)
>>> cat.full_stem, cat.read().shape, int(cat.read_target().mask.sum())
('cat_______1', (3, 4, 3), 6)

Objects as VOC, COCO's instances and COCO's panoptic format store them.

>>> from hardlook.data import rle
>>> encoded = rle.encode(np.array([[True, True, False]]))
>>> dog = CocoObject(Path("dog.jpg"), Path("instances.json"), 1, 3, encoded["counts"], 18)
>>> dog.read_target().mask.tolist()
[[True, True, False]]

Images whose longest side is limited, as TETRIS is benchmarked: image, mask and clicks made smaller alike.

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

from hardlook.data.class_masks.source import read_image_size
from hardlook.data.click_names import format_instance_stem
from hardlook.data.images import read_image
from hardlook.errors import DataError, HardlookError

MAX_SIDE = 2048

Size = tuple[int, int]


def limit_size(size: Size, longest: int | None = MAX_SIDE) -> Size:
    """Width and height with the longest side at most `longest`; None leaves them as they are."""
    width, height = size
    side = max(size)
    if longest is None or side <= longest:
        return size
    # Half up in integers, so that no rounding mode of floats decides a size.
    return tuple(max(1, (2 * part * longest + side) // (2 * side)) for part in (width, height))  # type: ignore[return-value]


def limit_image(image: NDArray[np.uint8], longest: int | None = MAX_SIDE) -> NDArray[np.uint8]:
    """The image (H, W, 3) uint8, averaged over areas where it is too large.

    >>> limit_image(np.zeros((4, 8, 3), np.uint8), 4).shape
    (2, 4, 3)
    """
    stored = (image.shape[1], image.shape[0])
    size = limit_size(stored, longest)
    if size == stored:
        return image
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def limit_mask(mask: NDArray[np.bool_], longest: int | None = MAX_SIDE) -> NDArray[np.bool_]:
    """The mask (H, W) bool, each pixel that of the nearest centre.

    >>> limit_mask(np.array([[True, True, False, False]]), 2).tolist()
    [[True, False]]
    """
    height, width = mask.shape
    new_width, new_height = limit_size((width, height), longest)
    if (new_width, new_height) == (width, height):
        return mask
    # Centres, and not OpenCV's corners, so that the mask does not move against the averaged image.
    rows = (2 * np.arange(new_height) + 1) * height // (2 * new_height)
    columns = (2 * np.arange(new_width) + 1) * width // (2 * new_width)
    return np.ascontiguousarray(mask[np.ix_(rows, columns)])


def scale_points(
    points: NDArray[np.float64], clicked: Size, shown: Size, *, unit: str | None = None
) -> NDArray[np.float64]:
    """Points (n, 2) as x, y on an image of size `clicked`, moved to one of size `shown` (both width, height).

    Pixel centres are whole numbers, so the middle of an image stays its middle. Results lie in 0..side - 1. Sizes of
    different proportions are a `DataError` that names `unit`: the image was turned or cut, or it is another one.

    >>> scale_points(np.array([[3.5, 0.0]]), (8, 4), (4, 2)).tolist()
    [[1.5, 0.0]]
    """
    if clicked == shown:
        return points
    # Both may be rounded from a third size, each by half a pixel.
    if abs(clicked[0] * shown[1] - shown[0] * clicked[1]) > max(*clicked, *shown):
        came, here = ("x".join(map(str, size)) for size in (clicked, shown))
        remedy = "give the image that was clicked on, neither turned nor cut, or correct w and h"
        raise DataError(f"clicks on an image of {came}, but here it has {here}", unit=unit, remedy=remedy)
    ratio = np.array(shown, np.float64) / np.array(clicked, np.float64)
    moved = (points + 0.5) * ratio - 0.5
    return np.asarray(np.clip(moved, 0.0, np.array(shown, np.float64) - 1.0))


class StoredObject(Protocol):
    """An object as its dataset stores it; small when pickled."""

    @property
    def path(self) -> Path:
        """The image's file."""

    def read_target(self, size: Size | None = None) -> Target:
        """The truth at the image's stored `size` (width, height); another one, or an empty mask, is a `DataError`."""

    def files(self) -> tuple[Path, ...]:
        """The image's file, then those of the truth."""


@dataclass(frozen=True)
class ObjectInstance:
    """One object of one image, read when asked for.

    `dataset` is spelt as `dataset_name` does. Instances with one `image_key` show the same image. `longest` limits
    the longest side in pixels of image and truth; None leaves them as stored.
    """

    dataset: str
    image_stem: str
    object_stem: str
    image_key: str
    stored: StoredObject
    longest: int | None = None

    @property
    def full_stem(self) -> str:
        """The name in files of clicks: the image's stem, and the object's where an image has several."""
        return format_instance_stem(self.image_stem, self.object_stem)

    def read(self) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        try:
            return limit_image(read_image(self.stored.path), self.longest)
        except HardlookError as error:
            raise error.at(unit=self._unit) from error

    def read_target(self) -> Target:
        """The object and what is to be ignored, at the size of `read`; an empty object is a `DataError`."""
        try:
            target = self.stored.read_target(read_image_size(self.stored.path))
        except HardlookError as error:
            raise error.at(unit=self._unit) from error
        limited = Target(limit_mask(target.mask, self.longest), limit_mask(target.ignore, self.longest))
        if not limited.mask.any():
            where, side = self.stored.files()[-1], self.longest
            remedy = "leave small objects out with a minimal area"
            raise DataError(
                f"nothing is left of the object at {side} pixels", file=where, unit=self._unit, remedy=remedy
            )
        return limited

    def size(self) -> Size:
        """Width and height of what `read` gives, from the file's header."""
        return limit_size(read_image_size(self.stored.path), self.longest)

    @property
    def scale(self) -> float:
        """The longest side of what `read` gives over the stored one: 1 unless the image was too large."""
        return max(self.size()) / max(read_image_size(self.stored.path))

    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        return self.stored.files()

    @property
    def _unit(self) -> str:
        return f"{self.dataset}/{self.full_stem}"


@dataclass(frozen=True)
class Target:
    """What is to be segmented: `mask` and `ignore` (H, W) bool, disjoint."""

    mask: NDArray[np.bool_]
    ignore: NDArray[np.bool_]
