"""What `hardlook clicks show` looks at: an image, an object, and the region to click, from files or a planted scene."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from hardlook.clicks.clicked_stem import ClickType
from hardlook.clicks.error_regions import Truth, compare
from hardlook.clicks.next_click import choose_error
from hardlook.commands.clicks.object_mask import read_answer, read_object
from hardlook.data.images import read_image
from hardlook.data.isegm import Target
from hardlook.data.previous_masks import error_mask
from hardlook.errors import DataError
from hardlook.models.roles import Image, Mask
from hardlook.world.planted import PlantedWorld

ErrorKind = Literal["auto", "fn", "fp"]


@dataclass(frozen=True)
class ShownRegion:
    """An image (H, W, 3), the object's mask and the region's (H, W) bool, and which click the region asks for."""

    name: str
    image: Image = field(repr=False)
    target: Mask = field(repr=False)
    error: Mask = field(repr=False)
    click_type: ClickType

    @property
    def positive(self) -> bool:
        """Whether clicks in the region add to a segmentation."""
        return self.click_type != "fp"


def region_of_files(
    image: Path, mask: Path, *, number: int | None = None, previous: Path | None = None, kind: ErrorKind = "auto"
) -> ShownRegion:
    """The object of a mask's file, or what `previous` gets wrong of it: of the two errors the chosen `kind`.

    `number` chooses an integer of the mask. `auto` is the error that the benchmark would correct first; an empty
    `previous` is the round before any click, which asks for the object.
    """
    picture = read_image(image)
    size = (picture.shape[1], picture.shape[0])
    target = read_object(mask, number, size=size)
    if previous is None:
        return ShownRegion(image.stem, picture, target.mask, target.mask, "first")
    before = read_answer(previous, size=size)
    if kind == "auto" and not before.any():
        return ShownRegion(image.stem, picture, target.mask, target.mask, "first")
    found: ClickType = kind if kind != "auto" else _first_error(target, before, previous)
    error = error_mask(target.mask, before, found) & ~target.ignore
    if not error.any():
        raise DataError(f"the previous mask has no error of type {found}", file=previous, remedy="take another mask")
    return ShownRegion(image.stem, picture, target.mask, error, found)


def planted_region(seed: int) -> ShownRegion:
    """The object of the first scene of the planted world."""
    rendered = PlantedWorld(seed=seed, count=1)[0]
    return ShownRegion(f"scene-{seed}-0", rendered.image, rendered.target_mask, rendered.target_mask, "first")


def _first_error(target: Target, before: Mask, file: Path) -> ClickType:
    choice = choose_error(compare(Truth.of(target.mask, target.ignore), before), np.empty((0, 2), np.int64))
    if choice is None:
        raise DataError("the previous mask is perfect: there is nothing to click", file=file, remedy="take another")
    return "fn" if choice.positive else "fp"
