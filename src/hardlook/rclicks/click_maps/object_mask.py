"""The object in a mask file, whose values are brightness, integers, or places in a palette.

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

from hardlook.data.images import open_with_pillow, read_bytes
from hardlook.data.label_maps import read_label_map
from hardlook.data.object_instances.instance import Target
from hardlook.data.object_instances.isegm import IGNORE_GREY
from hardlook.errors import DataError
from hardlook.models.roles import Mask

Kind = Literal["brightness", "integers", "palette"]

VOID = 255  # what palettes of VOC's kind leave out

LISTED = 20

_PLAIN = "store it with 255 on the object and 0 elsewhere"

_LOSSY = ("JPEG", "MPO", "WEBP")


def read_object(path: Path, number: int | None, *, size: tuple[int, int]) -> Target:
    """The object of an image of `size` (width, height); `number` chooses an integer of the mask.

    A `DataError` lists the integers where one must be chosen and where there is none like it.
    """
    if number is None:
        stored = _read(path, size)
        if len(stored.numbers) > 1:
            remedy = f"choose one with --object N, or {_PLAIN}"
            raise DataError(f"the mask has several objects: {stored.list_numbers()}", file=path, remedy=remedy)
        target = stored.single()
        if not target.mask.any():
            raise DataError("the mask is empty", file=path, remedy="leave it out")
        return target
    labels = _check_size(read_label_map(path), path, size)
    stored = _StoredMask(labels, "palette" if _is_palette(path) else "integers")
    mask = labels == number
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
        """The integers in words."""
        numbers = self.numbers
        text = ", ".join(map(str, numbers[:LISTED])) or "none"
        text += f" and {len(numbers) - LISTED} more" if len(numbers) > LISTED else ""
        return f"{text} ({VOID} = ignore)" if self.void.any() else text

    def single(self) -> Target:
        """The only object there is, or none."""
        nothing = np.zeros(self.values.shape, bool)
        if self.kind != "brightness":
            return Target((self.values > 0) & ~self.void, self.void)
        bright = self.values > IGNORE_GREY
        if bright.any() or self.lossy:
            return Target(bright, self.values == IGNORE_GREY)
        return Target(self.values > 0, nothing)


def _read(path: Path, size: tuple[int, int]) -> _StoredMask:
    if path.suffix.lower() in (".npy", ".npz"):
        return _StoredMask(_check_size(read_label_map(path), path, size), "integers")
    image = open_with_pillow(path, read_bytes(path))
    if image.mode.startswith("I") or _is_palette(path):
        kind: Kind = "palette" if image.mode == "P" else "integers"
        return _StoredMask(_check_size(read_label_map(path), path, size), kind)
    lossy = image.format in _LOSSY
    colours = np.asarray(image.convert("RGB"))
    if not lossy and (colours != colours[..., :1]).any():
        # Colours without a palette say which pixels are objects and not which is which: any colour counts.
        return _StoredMask(_check_size((colours.max(axis=2) > 0).astype(np.int32), path, size), "integers")
    return _StoredMask(_check_size(np.asarray(image.convert("L")).astype(np.int32), path, size), "brightness", lossy)


def _is_palette(path: Path) -> bool:
    """Whether the file has a palette with colours; one of greys is a grey image."""
    if path.suffix.lower() in (".npy", ".npz"):
        return False
    image = open_with_pillow(path, read_bytes(path))
    if image.mode != "P":
        return False
    colours = np.asarray(image.convert("RGB"))
    return bool((colours != colours[..., :1]).any())


def _check_size(values: NDArray[np.int32], path: Path, size: tuple[int, int]) -> NDArray[np.int32]:
    if values.shape != (size[1], size[0]):
        had = f"{values.shape[1]}x{values.shape[0]}"
        remedy = "store masks at the image's own size"
        raise DataError(f"the mask is {had}, its image {size[0]}x{size[1]}", file=path, remedy=remedy)
    return values
