"""What a study of clicks is made of: an image, and the region of it that people are to click on.

>>> frame = np.zeros((4, 6), bool)
>>> frame[1:3, 2:5] = True
>>> cat = Region("mine", "cat", "", "cat", np.zeros((4, 6, 3), np.uint8), frame, frame, subject="mine/cat")
>>> cat.size, cat.unit, cat.click_type
((6, 4), 'mine/cat', 'first')
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hardlook.data.full_stem import CLICK_TYPES, ClickType
from hardlook.errors import DataError
from hardlook.models.roles import Image, Mask


@dataclass(frozen=True, eq=False)
class Region:
    """An object, or an error of a prediction, that people will be asked to click on.

    `image` (H, W, 3) uint8 RGB; `target` (H, W) bool, the object; `region` (H, W) bool, what is to be clicked: the
    object at first, later what the `previous` mask (H, W) bool lacks (fn) or has too much (fp). `subject` is the
    image's key: a participant sees each subject once. `full_stem` names the row of a file of clicks, `model_type` the
    method of the previous mask. `description` is what the text mode says. `exact` keeps every pixel of the image.
    """

    dataset: str
    image_stem: str
    object_stem: str
    full_stem: str
    image: Image = field(repr=False)
    target: Mask = field(repr=False)
    region: Mask = field(repr=False)
    subject: str
    description: str = ""
    model_type: str = ""
    click_type: ClickType = "first"
    previous: Mask | None = field(default=None, repr=False)
    exact: bool = False

    def __post_init__(self) -> None:
        if self.image.ndim != 3 or self.image.shape[2] != 3 or self.image.dtype != np.uint8 or not self.image.size:
            came = f"{self.image.shape} of {self.image.dtype}"
            raise DataError(f"expected an image (H, W, 3) of uint8, got {came}", unit=self.unit)
        masks = {"target": self.target, "region": self.region, "previous": self.previous}
        for name, mask in masks.items():
            if mask is not None and (mask.shape != self.image.shape[:2] or mask.dtype != np.bool_):
                what = f"expected a {name} mask {self.image.shape[:2]} of bool, got {mask.shape} of {mask.dtype}"
                raise DataError(what, unit=self.unit, remedy="store masks at the image's own size")
        if self.click_type not in CLICK_TYPES:
            raise DataError(f"a click of type {self.click_type!r}", unit=self.unit, remedy="first, fn or fp")
        if not self.region.any():
            raise DataError("there is nothing to click on", unit=self.unit, remedy="leave it out")

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.image.shape[1], self.image.shape[0]

    @property
    def unit(self) -> str:
        """Its name in errors."""
        return f"{self.dataset}/{self.full_stem}"
