"""The region that `hardlook clicks show` draws: an image, an object, and what is to be clicked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from hardlook.data.images import read_image
from hardlook.data.object_instances.instance import Target
from hardlook.data.previous_masks import compute_error_mask
from hardlook.errors import DataError
from hardlook.models.roles import Image, Mask
from hardlook.rclicks.click_maps.object_mask import read_object, read_previous_mask
from hardlook.rclicks.clicks.error_regions import GroundTruth, choose_error, compare_masks
from hardlook.rclicks.user_clicks.stems import ClickType
from hardlook.world.planted import PlantedWorld

ErrorKind = Literal["auto", "fn", "fp"]


@dataclass(frozen=True)
class ClickRegion:
    """An image (H, W, 3), the object's mask and the region's (H, W) bool, and which type of click it is for."""

    name: str
    image: Image = field(repr=False)
    target: Mask = field(repr=False)
    error: Mask = field(repr=False)
    click_type: ClickType

    @property
    def positive(self) -> bool:
        """Whether clicks in the region add to a segmentation."""
        return self.click_type != "fp"


def load_region(
    image: Path, mask: Path, *, number: int | None = None, previous: Path | None = None, kind: ErrorKind = "auto"
) -> ClickRegion:
    """The object of a mask's file, or what `previous` gets wrong of it: of the two errors the chosen `kind`.

    `number` chooses an integer of the mask. `auto` is the error that the benchmark would correct first; with an
    empty `previous` that is the object.
    """
    picture = read_image(image)
    size = (picture.shape[1], picture.shape[0])
    target = read_object(mask, number, size=size)
    if previous is None:
        return ClickRegion(image.stem, picture, target.mask, target.mask, "first")
    before = read_previous_mask(previous, size=size)
    if kind == "auto" and not before.any():
        return ClickRegion(image.stem, picture, target.mask, target.mask, "first")
    click_type: ClickType = kind if kind != "auto" else _first_error(target, before, previous)
    error = compute_error_mask(target.mask, before, click_type) & ~target.ignore
    if not error.any():
        raise DataError(
            f"the previous mask has no error of type {click_type}", file=previous, remedy="take another mask"
        )
    return ClickRegion(image.stem, picture, target.mask, error, click_type)


def planted_region(seed: int) -> ClickRegion:
    """The object of the first scene of the planted world."""
    rendered = PlantedWorld(seed=seed, count=1)[0]
    return ClickRegion(f"scene-{seed}-0", rendered.image, rendered.target_mask, rendered.target_mask, "first")


def _first_error(target: Target, before: Mask, file: Path) -> ClickType:
    choice = choose_error(compare_masks(GroundTruth.of(target.mask, target.ignore), before), np.empty((0, 2), np.int64))
    if choice is None:
        raise DataError("the previous mask is perfect: there is nothing to click", file=file, remedy="take another")
    return "fn" if choice.positive else "fp"
