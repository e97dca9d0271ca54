"""hardlook.data.object_instances.annotations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data import rle
from hardlook.data.coco_detection import read_instances
from hardlook.data.coco_panoptic import decode_ids, read_panoptic
from hardlook.data.images import read_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.left_out import LeftOutNotes
from hardlook.data.object_instances.instance import ObjectInstance, Target
from hardlook.data.object_instances.isegm import count_object_pixels
from hardlook.data.voc import IGNORE, open_devkit
from hardlook.errors import DataError, OptionError


@dataclass(frozen=True)
class VocObject:
    """One number of an object map of VOC; the map's 255 is ignored."""

    path: Path
    object_path: Path
    number: int

    def read_target(self, size: tuple[int, int] | None = None) -> Target:
        """The truth (H, W)."""
        labels = read_label_map(self.object_path, size=size)
        return _target(labels == self.number, labels == IGNORE, self.object_path)

    def files(self) -> tuple[Path, ...]:
        """Image and object map."""
        return self.path, self.object_path


@dataclass(frozen=True)
class PanopticObject:
    """One segment of a panoptic PNG; pixels of no segment are ignored, since the truth leaves them open."""

    path: Path
    segments_path: Path
    id: int

    def read_target(self, size: tuple[int, int] | None = None) -> Target:
        """The truth (H, W)."""
        ids = decode_ids(read_image(self.segments_path))
        _refuse_other_size(ids.shape, size, self.segments_path)
        return _target(ids == self.id, ids == 0, self.segments_path)

    def files(self) -> tuple[Path, ...]:
        """Image and PNG."""
        return self.path, self.segments_path


@dataclass(frozen=True)
class CocoObject:
    """One annotation of an instances.json, run-length encoded; nothing is ignored."""

    path: Path
    annotations: Path
    height: int
    width: int
    counts: str
    id: int

    def read_target(self, size: tuple[int, int] | None = None) -> Target:
        """The truth (H, W)."""
        _refuse_other_size((self.height, self.width), size, self.annotations)
        mask = rle.decode({"size": [self.height, self.width], "counts": self.counts})
        return _target(mask, np.zeros(mask.shape, bool), self.annotations)

    def files(self) -> tuple[Path, ...]:
        """Image and annotations."""
        return self.path, self.annotations


def _target(mask: NDArray[np.bool_], ignore: NDArray[np.bool_], path: Path) -> Target:
    if not mask.any():
        raise DataError("the object has no pixels", file=path, remedy="take images and truth of one release")
    return Target(mask, ignore)


def _refuse_other_size(truth: tuple[int, ...], size: tuple[int, int] | None, path: Path) -> None:
    if size is not None and truth != (size[1], size[0]):
        what = f"the truth is {truth[1]}x{truth[0]}, its image {size[0]}x{size[1]}"
        raise DataError(what, file=path, remedy="take images and truth of one release")


_CROWD_WHY = "a crowd is not one object"


def list_voc_instances(
    dataset: str, folder: Path, min_area: int, notes: LeftOutNotes, split: str | None
) -> list[ObjectInstance]:
    """The objects of a split's images in the list's order; the split may be left open where there is one list."""
    devkit = open_devkit(folder)
    if split is None:
        lists = devkit.splits()
        if len(lists) != 1:
            known = ", ".join(lists) or "none at all"
            raise OptionError(
                f"the devkit {folder} has {len(lists)} lists of images", remedy=f"choose a split: {known}"
            )
        split = lists[0]
    found = []
    for image in devkit.images(split):
        if image.object_path is None:
            remedy = "unpack SegmentationObject, or choose a split whose images all have object masks"
            raise DataError(f"no object mask in split {split}", file=folder, unit=image.id, remedy=remedy)
        for number, area in count_object_pixels(image.read_objects()).items():
            stored = VocObject(image.path, image.object_path, number)
            instance = ObjectInstance(dataset, image.id, str(number), f"{dataset}/{image.id}", stored)
            if number != IGNORE and notes.check_area(area, min_area, instance.full_stem):
                found.append(instance)
    return found


def list_coco_instances(
    dataset: str, annotations: Path, images: Path, min_area: int, notes: LeftOutNotes
) -> list[ObjectInstance]:
    """The annotated objects in the file's order, crowds left out; an object's stem is its annotation's id."""
    found, missing = [], []
    for image in read_instances(annotations).images:
        name = Path(image.file_name)
        path = images / name
        if len(image.ids) and not path.is_file():
            missing.append(path)
        for i, crowd, segmentation in zip(image.ids.tolist(), image.crowd, image.segmentations, strict=True):
            unit = f"image {image.id}, annotation {i}"
            if crowd:
                notes.add(f"crowds of {dataset}", _CROWD_WHY, unit)
            elif segmentation is None:
                notes.add(f"objects of {dataset} without a mask", "the annotation has a box alone", unit)
            else:
                encoded = _encoded(segmentation, image.height, image.width, annotations, unit)
                stored = CocoObject(path, annotations, image.height, image.width, encoded["counts"], i)
                instance = ObjectInstance(dataset, name.stem, str(i), f"{dataset}/{image.id}", stored)
                if notes.check_area(rle.area(encoded), min_area, instance.full_stem):
                    found.append(instance)
    if missing:
        names = ", ".join(path.name for path in missing[:5]) + (", ..." if len(missing) > 5 else "")
        what = "1 image is missing" if len(missing) == 1 else f"{len(missing)} images are missing"
        raise DataError(f"{what}: {names}", file=images, remedy="check images=DIR")
    return found


def list_panoptic_instances(
    dataset: str, annotations: Path, segments: Path, images: Path, min_area: int, notes: LeftOutNotes
) -> list[ObjectInstance]:
    """The things in the file's order, crowds left out; an object's stem is its segment's id."""
    content = read_panoptic(annotations, segments, images)
    found = []
    for image in content.images:
        for segment in image.segments:
            stored = PanopticObject(image.path, image.segments_path, segment.id)
            instance = ObjectInstance(dataset, image.path.stem, str(segment.id), f"{dataset}/{image.id}", stored)
            if not content.categories[segment.category_id].thing:
                continue
            if segment.crowd:
                notes.add(f"crowds of {dataset}", _CROWD_WHY, instance.full_stem)
            elif notes.check_area(segment.area, min_area, instance.full_stem):
                found.append(instance)
    return found


def _encoded(segmentation: object, height: int, width: int, file: Path, unit: str) -> rle.Rle:
    try:
        return rle.from_segmentation(segmentation, height, width)
    except DataError as error:
        raise error.at(file=file, unit=unit) from error
