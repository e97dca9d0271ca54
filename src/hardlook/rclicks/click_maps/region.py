"""The region that `hardlook clicks show` draws: an image, an object from a mask file, and what is to be clicked.

A grey mask has its object brighter than 128, and 128 is ignored; where nothing is brighter, all above 0 is the object.
Integers and palettes (VOC's SegmentationObject) may hold several objects: then one must be chosen.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "objects.npy"
>>> np.save(path, np.array([[0, 3, 3], [0, 0, 7]], np.uint8))
>>> read_object(path, 3, size=(3, 2)).mask.tolist()
[[False, True, True], [False, False, False]]
>>> read_object(path, None, size=(3, 2))
Traceback (most recent call last):
...
hardlook.errors.DataError: the mask has several objects: 3, 7
...
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import read_image
from hardlook.data.label_maps import open_mask, read_label_map
from hardlook.data.object_instances.instance import Target
from hardlook.data.object_instances.isegm import IGNORE_GREY
from hardlook.data.previous_masks import compute_error_mask
from hardlook.errors import DataError
from hardlook.models.roles import Image, Mask
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

    `number` chooses an integer of the mask; `auto` is the error to correct first, with an empty `previous` the object.
    """
    picture = read_image(image)
    size = (picture.shape[1], picture.shape[0])
    target = read_object(mask, number, size=size)
    before = None if previous is None else read_previous_mask(previous, size=size)
    if previous is None or before is None or (kind == "auto" and not before.any()):
        return ClickRegion(image.stem, picture, target.mask, target.mask, "first")
    click_type: ClickType = kind if kind != "auto" else _first_error(target, before, previous)
    error = compute_error_mask(target.mask, before, click_type) & ~target.ignore
    if not error.any():
        what = f"the previous mask has no error of type {click_type}"
        raise DataError(what, file=previous, remedy="take another mask")
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


Kind = Literal["brightness", "integers", "palette"]
VOID = 255  # what palettes of VOC's kind leave out
LISTED = 20
_PLAIN = "store it with 255 on the object and 0 elsewhere"


def read_object(path: Path, number: int | None, *, size: tuple[int, int]) -> Target:
    """The object of an image of `size` (width, height); an error lists the integers where `number` must choose one."""
    if number is None:
        stored = _read(path, size)
        if len(stored.numbers) > 1:
            remedy = f"choose one with --object N, or {_PLAIN}"
            raise DataError(f"the mask has several objects: {stored.list_numbers()}", file=path, remedy=remedy)
        target = stored.single()
        if not target.mask.any():
            raise DataError("the mask is empty", file=path, remedy="leave it out")
        return target
    stored = _read(path, size, integers=True)
    mask = stored.values == number
    if number not in stored.numbers:
        what = f"there is no object {number} in the mask: it has {stored.list_numbers()}"
        raise DataError(what, file=path, remedy="choose one of them with --object")
    return Target(mask, stored.void & ~mask)


def read_previous_mask(path: Path, *, size: tuple[int, int]) -> Mask:
    """A segmentation (H, W) bool of one object, read like a mask; it may be empty."""
    stored = _read(path, size)
    if len(stored.numbers) > 1:
        raise DataError(f"the previous mask has several objects: {stored.list_numbers()}", file=path, remedy=_PLAIN)
    return stored.single().mask


@dataclass(frozen=True)
class _StoredMask:
    """The values (H, W) of a file, and what they are."""

    values: NDArray[np.int32] = field(repr=False)
    kind: Kind
    lossy: bool = False

    @property
    def void(self) -> Mask:
        """What a palette leaves out; where it has nothing else, that is the object."""
        void = self.values == VOID
        alone = not ((self.values > 0) & ~void).any()
        return np.zeros_like(void) if self.kind != "palette" or alone else void

    @property
    def numbers(self) -> list[int]:
        """The objects' integers, ascending; of a soft grey mask none but the brightest."""
        if self.kind != "brightness":
            found = self.values[~self.void]
        elif self.lossy:
            return []
        elif self.values.max() <= IGNORE_GREY:
            found = self.values
        else:
            # The values of a soft edge change from pixel to pixel; those of objects lie in patches.
            square = np.ones((3, 3), np.uint8)
            grey = self.values.astype(np.uint8)
            patches = self.values[cv2.erode(grey, square) == cv2.dilate(grey, square)]
            found = np.append(patches[patches != IGNORE_GREY], self.values.max())
        return [int(number) for number in np.unique(found) if number > 0]

    def list_numbers(self) -> str:
        """The integers as a text."""
        numbers = self.numbers
        text = ", ".join(map(str, numbers[:LISTED])) or "none"
        text += f" and {len(numbers) - LISTED} more" if len(numbers) > LISTED else ""
        return f"{text} ({VOID} = ignore)" if self.void.any() else text

    def single(self) -> Target:
        """The only object there is, or none."""
        if self.kind != "brightness":
            return Target((self.values > 0) & ~self.void, self.void)
        bright = self.values > IGNORE_GREY
        if bright.any() or self.lossy:
            return Target(bright, self.values == IGNORE_GREY)
        return Target(self.values > 0, np.zeros(self.values.shape, bool))


def _read(path: Path, size: tuple[int, int], *, integers: bool = False) -> _StoredMask:
    """The values of a file; with `integers`, a grey image has integers, too."""
    kind: Kind = "integers"
    values: NDArray[np.int32] | None = None
    lossy = False
    image = None if path.suffix.lower() in (".npy", ".npz") else open_mask(path)
    if image is not None and not image.mode.startswith("I"):
        colours = np.asarray(image.convert("RGB"))
        coloured = bool((colours != colours[..., :1]).any())
        # A palette of greys is a grey image.
        if image.mode == "P" and coloured:
            kind = "palette"
        elif not integers:
            lossy = image.format in ("JPEG", "MPO", "WEBP")
            if coloured and not lossy:
                # Colours without a palette say which pixels are objects and not which is which: any colour counts.
                values = (colours.max(axis=2) > 0).astype(np.int32)
            else:
                kind, values = "brightness", np.asarray(image.convert("L")).astype(np.int32)
    if values is None:
        values = read_label_map(path)
    if values.shape != (size[1], size[0]):
        had = f"{values.shape[1]}x{values.shape[0]}"
        remedy = "store masks at the image's own size"
        raise DataError(f"the mask is {had}, its image {size[0]}x{size[1]}", file=path, remedy=remedy)
    return _StoredMask(values, kind, lossy)
