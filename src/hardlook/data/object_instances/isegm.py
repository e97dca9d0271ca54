"""Object instances of interactive segmentation datasets: GrabCut, Berkeley, DAVIS, COCO-MVal and TETRIS.

A dataset is two folders, images and masks, whose names identify the layout. In "grey" masks values above 128 are the
object and 128 is ignored; in "any" masks every pixel with a channel above 0 is the object; "integers" masks (TETRIS)
hold one positive integer per object, each an instance of its own.

>>> [layout.masks for layout in LAYOUTS if layout.rule == "integers"]
['masks']
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook import fingerprints
from hardlook.data.images import index_images
from hardlook.data.label_maps import open_mask, read_label_map
from hardlook.data.left_out import LeftOutNotes
from hardlook.data.object_instances.instance import MAX_SIDE, ObjectInstance, Target
from hardlook.errors import DataError

IGNORE_GREY = 128


@dataclass(frozen=True)
class Layout:
    """The names of the two folders, and the meaning of a mask's values: "grey", "any" or "integers"."""

    images: str
    masks: str
    rule: str


GRABCUT = Layout("data_GT", "boundary_GT", "grey")
BERKELEY = Layout("images", "masks", "grey")
DAVIS = Layout("img", "gt", "any")  # COCO-MVal too
TETRIS = Layout("img", "masks", "integers")
LAYOUTS = (GRABCUT, BERKELEY, DAVIS, TETRIS)
LAYOUT_OF = {"grabcut": GRABCUT, "berkeley": BERKELEY, "davis": DAVIS, "coco-mval": DAVIS, "tetris": TETRIS}


@dataclass(frozen=True)
class InteractiveObject:
    """One object of one image; `object_stem` is "" if each image has one object; `area` in pixels, None if unknown."""

    image_stem: str
    object_stem: str
    path: Path
    mask_path: Path
    rule: str
    area: int | None = None

    def read_target(self) -> Target:
        """The target as stored; its mask may be empty."""
        if self.rule == "integers":
            labels = read_label_map(self.mask_path)
            return Target(labels == int(self.object_stem), np.zeros(labels.shape, bool))
        stored = open_mask(self.mask_path)
        if self.rule == "any":
            stored = stored if stored.mode == "RGB" else stored.convert("RGB")
            mask = np.asarray(stored).max(axis=2) > 0
            return Target(mask, np.zeros(mask.shape, bool))
        grey = np.asarray(stored.convert("L"))
        if not 0 < grey.max() < IGNORE_GREY:
            return Target(grey > IGNORE_GREY, grey == IGNORE_GREY)
        values = np.unique(grey)
        if values.tolist() == [0, 1]:
            return Target(grey == 1, np.zeros(grey.shape, bool))
        listed = ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
        remedy = "store 255 on the object, 128 on pixels to ignore and 0 elsewhere; or 1 and 0"
        what = f"no pixel of the mask is brighter than 128; its values are {listed}"
        raise DataError(what, file=self.mask_path, remedy=remedy)


def list_interactive_instances(dataset: str, folder: Path, min_area: int, notes: LeftOutNotes) -> list[ObjectInstance]:
    """The instances of a folder, sorted by stem; the layout of an unknown dataset follows from its folder names.

    Images with equal bytes share a key: Berkeley's 100 instances are of 96 images (189011, 189011a, 189011b).
    """
    stored = list_objects(folder, LAYOUT_OF.get(dataset))
    first = _map_to_first_copy([one.path for one in stored])
    found = []
    for one in stored:
        longest = MAX_SIDE if one.rule == TETRIS.rule else None
        key = f"{dataset}/{first[one.path].stem}"
        instance = ObjectInstance(dataset, one.image_stem, one.object_stem, key, one, longest)
        if min_area >= 1:
            area = int(one.read_target().mask.sum()) if one.area is None else one.area
            if not notes.check_area(area, min_area, instance.full_stem):
                continue
        found.append(instance)
    return found


def list_objects(folder: Path | str, layout: Layout | None = None) -> tuple[InteractiveObject, ...]:
    """All objects, sorted by stem; without `layout` the folder names decide; an image or mask alone is an error."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError("no such folder", file=folder, remedy="check the path given as --data")
    expected = LAYOUTS if layout is None else (layout,)
    layout = next((a for a in expected if (folder / a.images).is_dir() and (folder / a.masks).is_dir()), None)
    if layout is None:
        known = ", ".join(f"{a.images} + {a.masks}" for a in expected)
        raise DataError("no interactive dataset here", file=folder, remedy=f"two folders are expected: {known}")
    masks, images = index_images(folder / layout.masks), index_images(folder / layout.images)
    if unpaired := sorted(masks.keys() ^ images.keys()):
        names = ", ".join(unpaired[:5]) + (", ..." if len(unpaired) > 5 else "")
        what = f"{len(unpaired)} stems have an image or a mask but not both: {names}"
        raise DataError(what, file=folder, remedy="unpack both folders of the dataset completely")
    if not masks:
        raise DataError("the folders are empty", file=folder, remedy="unpack the dataset")
    found = []
    for stem, mask in masks.items():
        objects: dict[str, int | None] = {"": None}
        if layout.rule == "integers":
            objects = {str(label): area for label, area in count_object_pixels(read_label_map(mask)).items()}
        if not objects:
            raise DataError("the mask is empty", file=mask, unit=stem, remedy="leave image and mask out")
        found += [
            InteractiveObject(stem, name, images[stem], mask, layout.rule, area) for name, area in objects.items()
        ]
    return tuple(found)


def count_object_pixels(labels: NDArray[np.int32]) -> dict[int, int]:
    """The number of pixels of each label above 0, by label, ascending.

    >>> count_object_pixels(np.array([[0, 7, 7], [3, 0, 7]], np.int32))
    {3: 1, 7: 3}
    """
    # With counts np.unique sorts: on 2048x1365 twice as fast as np.bincount, four times as fast as np.unique's hashing.
    numbers, amounts = np.unique(labels, return_counts=True)
    return {int(label): int(area) for label, area in zip(numbers, amounts, strict=True) if label > 0}


def _map_to_first_copy(paths: Sequence[Path]) -> dict[Path, Path]:
    """For each file the first one with the same bytes, often itself; only files of equal length are read."""
    by_length: defaultdict[int, list[Path]] = defaultdict(list)
    for path in dict.fromkeys(paths):
        by_length[path.stat().st_size].append(path)
    first: dict[Path, Path] = {}
    for candidates in by_length.values():
        seen: dict[str, Path] = {}
        for path in candidates:
            first[path] = seen.setdefault(fingerprints.hash_file(path), path) if len(candidates) > 1 else path
    return first
