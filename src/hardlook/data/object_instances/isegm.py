"""The folders of interactive segmentation: GrabCut, Berkeley, DAVIS, COCO_MVal, TETRIS.

A layout is recognised by its two folders. Where 128 means "ignore", brighter means object; elsewhere any channel
above 0 does; TETRIS has one integer an object, and each is an instance of its own.

>>> [layout.masks for layout in LAYOUTS if layout.rule == "integers"]
['masks']
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook import fingerprints
from hardlook.data.images import find_image, is_image_name, open_with_pillow, read_bytes, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.left_out import LeftOutNotes
from hardlook.data.object_instances.instance import MAX_SIDE, ObjectInstance, Target
from hardlook.errors import DataError

IGNORE_GREY = 128


@dataclass(frozen=True)
class Layout:
    """Two folder names, and how a mask's values are meant: "grey", "any" or "integers"."""

    images: str
    masks: str
    rule: str


GRABCUT = Layout("data_GT", "boundary_GT", "grey")

BERKELEY = Layout("images", "masks", "grey")

DAVIS = Layout("img", "gt", "any")  # COCO_MVal too

TETRIS = Layout("img", "masks", "integers")

LAYOUTS = (GRABCUT, BERKELEY, DAVIS, TETRIS)


@dataclass(frozen=True)
class InteractiveObject:
    """One object of one image; `object_stem` is "" where an image has a single object.

    `area` is the object's number of pixels where listing had to count them (TETRIS), else None.
    """

    image_stem: str
    object_stem: str
    path: Path
    mask_path: Path
    rule: str
    area: int | None = None

    def read(self) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        return read_image(self.path)

    def read_target(self, size: tuple[int, int] | None = None) -> Target:
        """The object and what is to be ignored; an empty object or another `size` (w, h) is a `DataError`."""
        target = self.stored_target()
        if size is not None and target.mask.shape != (size[1], size[0]):
            had = f"{target.mask.shape[1]}x{target.mask.shape[0]}"
            raise DataError(
                f"the mask is {had}, its image {size[0]}x{size[1]}",
                file=self.mask_path,
                unit=self.image_stem,
                remedy="store masks at the image's own size",
            )
        if not target.mask.any():
            raise DataError("the mask is empty", file=self.mask_path, unit=self.image_stem, remedy="leave it out")
        return target

    def stored_target(self) -> Target:
        """The object and what is to be ignored as they are stored; the object may be empty."""
        if self.rule == "integers":
            labels = read_label_map(self.mask_path)
            return Target(labels == int(self.object_stem), np.zeros(labels.shape, bool))
        return _from_brightness(self.mask_path, self.rule)

    def files(self) -> tuple[Path, ...]:
        """Image and mask."""
        return self.path, self.mask_path


def list_objects(folder: Path | str, layout: Layout | None = None) -> tuple[InteractiveObject, ...]:
    """All instances of a dataset's folder, sorted by stem; a mask without an image, or the reverse, is an error.

    Without a `layout` the folder's own is taken, by the names of its folders.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError("there is no such folder", file=folder, remedy="check the path given as --data")
    expected = LAYOUTS if layout is None else (layout,)
    layout = next((a for a in expected if (folder / a.images).is_dir() and (folder / a.masks).is_dir()), None)
    if layout is None:
        known = ", ".join(f"{a.images} + {a.masks}" for a in expected)
        raise DataError("no interactive dataset here", file=folder, remedy=f"two folders are expected: {known}")
    masks = {path.stem: path for path in sorted((folder / layout.masks).iterdir()) if is_image_name(path)}
    images = {path.stem for path in (folder / layout.images).iterdir() if is_image_name(path)}
    if lonely := sorted(masks.keys() ^ images):
        names = ", ".join(lonely[:5]) + (", ..." if len(lonely) > 5 else "")
        raise DataError(
            f"{len(lonely)} stems have an image or a mask but not both: {names}",
            file=folder,
            remedy="unpack both folders of the dataset fully",
        )
    if not masks:
        raise DataError("the folders are empty", file=folder, remedy="unpack the dataset")
    found = []
    for stem, mask in sorted(masks.items()):
        image = find_image(folder / layout.images, stem)
        objects: dict[str, int | None] = {"": None}
        if layout.rule == "integers":
            objects = {str(label): area for label, area in count_object_pixels(read_label_map(mask)).items()}
        if not objects:
            raise DataError("the mask is empty", file=mask, unit=stem, remedy="leave image and mask out")
        found += [InteractiveObject(stem, name, image, mask, layout.rule, area) for name, area in objects.items()]
    return tuple(found)


def count_object_pixels(labels: NDArray[np.int32]) -> dict[int, int]:
    """The pixels of each label above 0, by label, ascending.

    >>> count_object_pixels(np.array([[0, 7, 7], [3, 0, 7]], np.int32))
    {3: 1, 7: 3}
    """
    # With counts np.unique sorts, which on 2048x1365 takes half the time of np.bincount and a quarter of its hashing.
    numbers, amounts = np.unique(labels, return_counts=True)
    return {int(label): int(area) for label, area in zip(numbers, amounts, strict=True) if label > 0}


def _from_brightness(path: Path, rule: str) -> Target:
    stored = np.asarray(open_with_pillow(path, read_bytes(path)).convert("RGB" if rule == "any" else "L"))
    if rule == "any":
        mask = stored.max(axis=2) > 0
        return Target(mask, np.zeros(mask.shape, bool))
    if 0 < stored.max() < IGNORE_GREY:
        values = np.unique(stored)
        if values.tolist() == [0, 1]:
            return Target(stored == 1, np.zeros(stored.shape, bool))
        listed = ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
        remedy = "store 255 on the object, 128 where nothing is to be judged and 0 elsewhere; or 1 and 0"
        raise DataError(f"no pixel of the mask is brighter than 128; its values are {listed}", file=path, remedy=remedy)
    return Target(stored > IGNORE_GREY, stored == IGNORE_GREY)


LAYOUT_OF: Mapping[str, Layout] = {
    "grabcut": GRABCUT,
    "berkeley": BERKELEY,
    "davis": DAVIS,
    "coco-mval": DAVIS,
    "tetris": TETRIS,
}


def list_interactive_instances(dataset: str, folder: Path, min_area: int, notes: LeftOutNotes) -> list[ObjectInstance]:
    """The instances of a folder, by stem; a dataset that is not known by name is known by its folders' names.

    Images with equal bytes share a key: Berkeley's 100 instances are of 96 images (189011, 189011a, 189011b).
    """
    stored = list_objects(folder, LAYOUT_OF.get(dataset))
    first = map_to_first_copy([instance.path for instance in stored])
    found = []
    for one in stored:
        key = f"{dataset}/{first[one.path].stem}"
        longest = MAX_SIDE if one.rule == TETRIS.rule else None
        instance = ObjectInstance(dataset, one.image_stem, one.object_stem, key, one, longest)
        if min_area < 1 or notes.check_area(_area(one), min_area, instance.full_stem):
            found.append(instance)
    return found


def map_to_first_copy(paths: Sequence[Path]) -> dict[Path, Path]:
    """For each file the first with the same bytes, often itself; only files of equal length are read."""
    by_length: defaultdict[int, list[Path]] = defaultdict(list)
    for path in dict.fromkeys(paths):
        by_length[path.stat().st_size].append(path)
    first: dict[Path, Path] = {}
    for alike in by_length.values():
        seen: dict[str, Path] = {}
        for path in alike:
            first[path] = seen.setdefault(fingerprints.of_file(path), path) if len(alike) > 1 else path
    return first


def _area(instance: InteractiveObject) -> int:
    return int(instance.stored_target().mask.sum()) if instance.area is None else instance.area
