"""Clicked stems: one object in one state of its segmentation, with the clicks that people made on it.

>>> target = np.zeros((6, 8), bool)
>>> target[1:4, 2:7] = True
>>> stem = ClickedStem("cup_______1", "TETRIS", np.zeros((6, 8, 3), np.uint8), target, target, np.array([[3, 2]]))
>>> stem.box, stem.positive, stem.key
((5, 3), True, ('TETRIS', 'cup_______1', 'first', '', ''))
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.metrics.regions import find_bounding_box
from hardlook.models.roles import Image, Mask

ClickType = Literal["first", "fn", "fp"]
DEVICES = ("pc", "mobile")


@dataclass(frozen=True)
class ClickedStem:
    """A stem and its clicks.

    `image` (H, W, 3) uint8; `target` (H, W) bool, the object; `error` (H, W) bool, the region that people were asked
    to click: the object itself at first, later what is missing (fn) or too much (fp); `clicks` (n, 2), each (x, y)
    in pixels. `device` and `display_mode` are empty where clicks of all kinds are together. `image_key` names the
    picture where several stems share one.
    """

    full_stem: str
    dataset: str
    image: Image = field(repr=False)
    target: Mask = field(repr=False)
    error: Mask = field(repr=False)
    clicks: NDArray[np.number] = field(repr=False)
    click_type: ClickType = "first"
    device: str = ""
    display_mode: str = ""
    image_key: str = ""

    def __post_init__(self) -> None:
        sizes = {"image": self.image.shape[:2], "target": self.target.shape, "error": self.error.shape}
        if len(set(sizes.values())) != 1:
            listed = ", ".join(f"{part} {size}" for part, size in sizes.items())
            raise DataError(f"expected image, target and error of one size, got {listed}", unit=self.full_stem)
        if self.clicks.ndim != 2 or self.clicks.shape[1] != 2 or not len(self.clicks):
            what = f"expected clicks of shape (n, 2) with at least one, got {self.clicks.shape}"
            raise DataError(what, unit=self.full_stem, remedy="leave stems without clicks out, and count them")
        height, width = self.error.shape
        if not ((self.clicks >= 0) & (self.clicks < [width, height])).all():
            what = f"clicks lie outside the {width} x {height} pixels of the image"
            remedy = "move them to its edge, as reading clicks.csv does, or give the image that was clicked on"
            raise DataError(what, unit=self.full_stem, remedy=remedy)

    @property
    def positive(self) -> bool:
        """Whether the clicks add to the segmentation."""
        return self.click_type != "fp"

    @property
    def box(self) -> tuple[int, int]:
        """Width and height in pixels of the object's box."""
        box = find_bounding_box(self.target)
        if box is None:
            raise DataError("the object's mask is empty", unit=self.full_stem, remedy="leave the stem out")
        return box.width, box.height

    @property
    def key(self) -> tuple[str, ...]:
        """What random numbers of this stem are drawn by: the same for every model that is evaluated on it."""
        return self.dataset, self.full_stem, self.click_type, self.device, self.display_mode


@dataclass(frozen=True)
class StemWithDevices:
    """A stem with the clicks of all devices, and the device (n,) that each was made on."""

    stem: ClickedStem
    devices: NDArray[np.str_]

    def by_device(self) -> list[ClickedStem]:
        """The stem once per device that has clicks, with its clicks alone."""
        found = []
        for device in DEVICES:
            chosen = self.devices == device
            if chosen.any():
                found.append(replace(self.stem, clicks=self.stem.clicks[chosen], device=device))
        return found


class ClickedSource(Protocol):
    """Where a clicked stem is read from: files, or the planted world."""

    @property
    def key(self) -> str:
        """A name that no other source has."""

    @property
    def display_mode(self) -> str:
        """How the object was shown before people clicked; empty outside of previews."""

    def read(self) -> StemWithDevices:
        """Image, masks and clicks."""
