"""One object of one image, the unit of interactive segmentation.

>>> frame = np.zeros((4, 6), bool)
>>> frame[1:3, 2:5] = True
>>> Instance("mine", "cat_1", np.zeros((4, 6, 3), np.uint8), frame, ~frame & False).shape
(4, 6)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hardlook.errors import DataError
from hardlook.models.roles import Image, Mask


@dataclass(frozen=True)
class Instance:
    """An object to be segmented.

    `image` (H, W, 3) uint8 RGB; `target` (H, W) bool, the object; `ignore` (H, W) bool, pixels that count neither
    way. `dataset` and `name` key its random numbers, so `name` is its own within the dataset.
    """

    dataset: str
    name: str
    image: Image = field(repr=False)
    target: Mask = field(repr=False)
    ignore: Mask = field(repr=False)

    def __post_init__(self) -> None:
        sizes = {"image": self.image.shape[:2], "target": self.target.shape, "ignore": self.ignore.shape}
        if len(set(sizes.values())) != 1:
            listed = ", ".join(f"{part} {size}" for part, size in sizes.items())
            raise DataError(f"expected image, target and ignore of one size, got {listed}", unit=self.name)
        if self.target.dtype != np.bool_ or self.ignore.dtype != np.bool_:
            raise DataError(
                f"expected bool masks, got target {self.target.dtype} and ignore {self.ignore.dtype}", unit=self.name
            )
        if not (self.target & ~self.ignore).any():
            raise DataError("the target has no pixel that counts", unit=self.name, remedy="leave the instance out")

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width in pixels."""
        height, width = self.target.shape
        return height, width
