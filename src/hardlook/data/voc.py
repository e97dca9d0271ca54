"""The Pascal VOC devkit: images, class masks, object masks and splits.

>>> VOC_CLASSES[0], VOC_CLASSES[19], IGNORE
('aeroplane', 'tvmonitor', 255)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import find_image, is_file, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.errors import DataError
from hardlook.reading import reading

IGNORE = 255

VOC_CLASSES = (
    "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow",
    "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor",
)  # fmt: skip


@dataclass(frozen=True)
class VocImage:
    """One image and its masks' paths; an object mask, or None, holds 0 background, 1 and up objects, 255 ignored."""

    id: str
    path: Path
    class_path: Path
    object_path: Path | None

    def read(self) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        return read_image(self.path)

    def read_classes(self) -> NDArray[np.int32]:
        """Class indices (H, W): 0 background, 1 and up the classes in order, 255 ignored."""
        return read_label_map(self.class_path)


@dataclass(frozen=True)
class VocDevkit:
    """A devkit folder (the one with JPEGImages) and its class names; class index i is `classes[i - 1]`."""

    root: Path
    classes: tuple[str, ...] = VOC_CLASSES
    masks: str = "SegmentationClass"

    def splits(self) -> tuple[str, ...]:
        """The names of the splits, sorted."""
        return tuple(sorted(path.stem for path in (self.root / "ImageSets" / "Segmentation").glob("*.txt")))

    def ids(self, split: str) -> tuple[str, ...]:
        """The ids of a split in order; a duplicate id is a `DataError`."""
        path = self.root / "ImageSets" / "Segmentation" / f"{split}.txt"
        if not path.is_file():
            known = ", ".join(self.splits()) or "none"
            raise DataError(f"no split {split!r}", file=path, remedy=f"the splits of the devkit are: {known}")
        return read_image_ids(path)

    def image(self, name: str) -> VocImage:
        """The image of an id; a `DataError` when the image or its class mask is missing."""
        objects = self.root / "SegmentationObject" / f"{name}.png"
        labels = self.root / self.masks / f"{name}.png"
        if not is_file(labels):
            raise DataError("no class mask", file=labels, unit=name, remedy=f"unpack the devkit's {self.masks} folder")
        image = find_image(self.root / "JPEGImages", name)
        return VocImage(name, image, labels, objects if is_file(objects) else None)

    def images(self, split: str) -> tuple[VocImage, ...]:
        """All images of a split in order."""
        return tuple(self.image(name) for name in self.ids(split))


def read_image_ids(path: Path) -> tuple[str, ...]:
    """The first word of each line of a list of images; a duplicate id is a `DataError`."""
    with reading(path, "not a list of images", remedy="write one id per line"):
        ids = tuple(line.split()[0] for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip())
    if len(set(ids)) < len(ids):
        twice = next(name for i, name in enumerate(ids) if name in ids[:i])
        raise DataError("duplicate id", file=path, unit=twice, remedy="list every image once")
    return ids


def open_devkit(folder: Path | str) -> VocDevkit:
    """The devkit at `folder`, or the only one that is one level or two below it (`VOCdevkit/VOC2012`).

    The folder of class masks is SegmentationClass where it exists, else SegmentationClassAug. A file `classes.txt` (one
    name per line, index 1 first) replaces VOC's twenty classes.
    """
    root = find_devkit_root(Path(folder), "JPEGImages", "ImageSets/Segmentation")
    if root is None:
        remedy = "pass the folder that holds JPEGImages, SegmentationClass and ImageSets/Segmentation"
        raise DataError("no VOC devkit here", file=folder, remedy=remedy)
    masks = next((name for name in ("SegmentationClass", "SegmentationClassAug") if (root / name).is_dir()), None)
    if masks is None:
        raise DataError("no folder SegmentationClass", file=root, remedy="unpack the devkit's class masks")
    names = root / "classes.txt"
    if not names.is_file():
        return VocDevkit(root, masks=masks)
    with reading(names, "not a list of classes", remedy="write one name per line, index 1 first"):
        classes = tuple(line.strip() for line in names.read_text(encoding="utf-8-sig").splitlines() if line.strip())
    return VocDevkit(root, classes, masks)


def find_devkit_root(folder: Path, *parts: str) -> Path | None:
    """The one folder of `list_devkit_roots` with these folders in it, None without one; `folder` itself comes first.

    Two years below it are a `DataError`.
    """
    found = [root for root in list_devkit_roots(folder) if all((root / part).is_dir() for part in parts)]
    if len(found) > 1 and found[0] != folder:
        years = ", ".join(root.relative_to(folder).as_posix() for root in found)
        raise DataError(f"there are {len(found)} devkits here: {years}", file=folder, remedy="pass the folder of one")
    return found[0] if found else None


def list_devkit_roots(folder: Path) -> tuple[Path, ...]:
    """The folders that may be the devkit: `folder`, and those of VOC's years one or two levels below."""
    return (folder, *sorted(folder.glob("VOC20*")), *sorted(folder.glob("VOCdevkit/VOC20*")))
