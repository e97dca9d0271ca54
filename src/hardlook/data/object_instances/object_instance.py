"""One object of one image, from whichever layout: the unit of interactive segmentation.

>>> import tempfile
>>> import PIL.Image
>>> from hardlook.data.isegm import InteractiveInstance
>>> folder = Path(tempfile.mkdtemp())
>>> PIL.Image.new("RGB", (4, 3)).save(folder / "cat.png")
>>> PIL.Image.fromarray(np.array([[0, 1, 1, 0]] * 3, np.uint8)).save(folder / "mask.png")
>>> stored = InteractiveInstance("cat", "1", folder / "cat.png", folder / "mask.png", "integers")
>>> cat = ObjectInstance("tetris", "cat", "1", "tetris/cat", stored)
>>> cat.full_stem, cat.read().shape, int(cat.read_target().mask.sum())
('cat_______1', (3, 4, 3), 6)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks.mask_files import image_size
from hardlook.data.full_stem import instance_stem
from hardlook.data.images import read_image
from hardlook.data.isegm import Target
from hardlook.data.object_instances.longest_side import Size, limited_image, limited_mask, limited_size
from hardlook.errors import DataError, HardlookError


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
        return instance_stem(self.image_stem, self.object_stem)

    def read(self) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        try:
            return limited_image(read_image(self.stored.path), self.longest)
        except HardlookError as error:
            raise error.at(unit=self._unit) from error

    def read_target(self) -> Target:
        """The object and what is to be ignored, at the size of `read`; an empty object is a `DataError`."""
        try:
            target = self.stored.read_target(image_size(self.stored.path))
        except HardlookError as error:
            raise error.at(unit=self._unit) from error
        limited = Target(limited_mask(target.mask, self.longest), limited_mask(target.ignore, self.longest))
        if not limited.mask.any():
            where, side = self.stored.files()[-1], self.longest
            remedy = "leave small objects out with a minimal area"
            raise DataError(
                f"nothing is left of the object at {side} pixels", file=where, unit=self._unit, remedy=remedy
            )
        return limited

    def size(self) -> Size:
        """Width and height of what `read` gives, from the file's header."""
        return limited_size(image_size(self.stored.path), self.longest)

    @property
    def scale(self) -> float:
        """The longest side of what `read` gives over the stored one: 1 unless the image was too large."""
        return max(self.size()) / max(image_size(self.stored.path))

    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        return self.stored.files()

    @property
    def _unit(self) -> str:
        return f"{self.dataset}/{self.full_stem}"
