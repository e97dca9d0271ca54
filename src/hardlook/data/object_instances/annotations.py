"""Object instances of annotated datasets: the Pascal VOC devkit, COCO's instances.json and COCO's panoptic format.

>>> import json, tempfile
>>> import PIL.Image
>>> folder = Path(tempfile.mkdtemp())
>>> PIL.Image.new("RGB", (4, 3)).save(folder / "7.png")
>>> _ = (folder / "instances.json").write_text(json.dumps({
...     "images": [{"id": 7, "file_name": "7.png", "width": 4, "height": 3}],
...     "categories": [{"id": 18, "name": "dog"}],
...     "annotations": [{"id": 1, "image_id": 7, "category_id": 18, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": 0,
...                      "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]]}]}))
>>> (dog,) = list_coco_instances("instances", folder / "instances.json", folder, 0, LeftOutNotes("instances"))
>>> dog.full_stem, int(dog.read_target().mask.sum())
('7_______1', 4)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hardlook.data import rle
from hardlook.data.coco_detection import ImageObjects, read_instances
from hardlook.data.coco_panoptic import decode_ids, read_panoptic
from hardlook.data.images import is_file, read_image
from hardlook.data.label_maps import read_label_map
from hardlook.data.left_out import LeftOutNotes
from hardlook.data.object_instances.instance import ObjectInstance, Target
from hardlook.data.object_instances.isegm import count_object_pixels
from hardlook.data.stored_files import Stored
from hardlook.data.stored_files.samples import ObjectSamples
from hardlook.data.voc import IGNORE, open_devkit
from hardlook.errors import DataError, OptionError

_CROWD_WHY = "a crowd is not one object"


@dataclass(frozen=True)
class VocObject:
    """One object number in an object map of VOC; 255 in the map is ignored."""

    path: Path
    mask_path: Path
    number: int

    def read_target(self) -> Target:
        """The target as stored."""
        labels = read_label_map(self.mask_path)
        return Target(labels == self.number, labels == IGNORE)


@dataclass(frozen=True)
class PanopticObject:
    """One segment of a panoptic PNG; unlabelled pixels are ignored."""

    path: Path
    mask_path: Path
    id: int

    def read_target(self) -> Target:
        """The target as stored."""
        ids = decode_ids(read_image(self.mask_path))
        return Target(ids == self.id, ids == 0)


@dataclass(frozen=True)
class CocoObject:
    """One annotation of the instances.json `mask_path`, run-length encoded; no pixel is ignored."""

    path: Path
    mask_path: Path
    height: int
    width: int
    counts: str
    id: int

    def read_target(self) -> Target:
        """The target as stored."""
        mask = rle.decode({"size": [self.height, self.width], "counts": self.counts})
        return Target(mask, np.zeros(mask.shape, bool))


def list_voc_instances(
    dataset: str, folder: Path, min_area: int, notes: LeftOutNotes, split: str | None
) -> list[ObjectInstance]:
    """The objects of a split's images in the split's order; `split` may be None if the devkit has only one."""
    devkit = open_devkit(folder)
    if split is None:
        splits = devkit.splits()
        if len(splits) != 1:
            remedy = f"choose a split: {', '.join(splits) or 'there are none'}"
            raise OptionError(f"the devkit {folder} has {len(splits)} splits", remedy=remedy)
        split = splits[0]
    found = []
    for image in devkit.images(split):
        if image.object_path is None:
            remedy = "unpack SegmentationObject, or choose a split whose images all have object masks"
            raise DataError(f"no object mask in split {split}", file=folder, unit=image.id, remedy=remedy)
        for number, area in count_object_pixels(read_label_map(image.object_path)).items():
            stored = VocObject(image.path, image.object_path, number)
            instance = ObjectInstance(dataset, image.id, str(number), f"{dataset}/{image.id}", stored)
            if number != IGNORE and notes.check_area(area, min_area, instance.full_stem):
                found.append(instance)
    return found


def list_coco_instances(
    dataset: str, annotations: Path, images: Path, min_area: int, notes: LeftOutNotes
) -> list[ObjectInstance]:
    """The annotated objects in the file's order without crowds; an object's stem is its annotation's id."""
    truth = read_instances(annotations)
    missing = [path for one in truth.images if len(one.ids) and not is_file(path := images / Path(one.file_name))]
    found = [
        instance
        for image in truth.images
        for instance in _list_objects(dataset, image, annotations, images / image.file_name, None, min_area, notes)
    ]
    if missing:
        names = ", ".join(path.name for path in missing[:5]) + (", ..." if len(missing) > 5 else "")
        what = "1 image is missing" if len(missing) == 1 else f"{len(missing)} images are missing"
        raise DataError(f"{what}: {names}", file=images, remedy="check images=DIR")
    return found


def list_stored_instances(
    dataset: str, samples: ObjectSamples, min_area: int, notes: LeftOutNotes
) -> list[ObjectInstance]:
    """The objects of a dataset whose images lie inside of files or objects, as `list_coco_instances` gives them."""
    return [
        instance
        for image in samples.truth.images
        for file in (samples.files[image.id],)
        for instance in _list_objects(dataset, image, samples.file, file.path, file, min_area, notes)
    ]


def _list_objects(
    dataset: str,
    image: ImageObjects,
    annotations: Path,
    path: Path,
    file: Stored | None,
    min_area: int,
    notes: LeftOutNotes,
) -> Iterator[ObjectInstance]:
    """The objects of an image that have masks, without crowds."""
    stem = Path(image.file_name).stem
    for i, crowd, segmentation in zip(image.ids.tolist(), image.crowd, image.segmentations, strict=True):
        unit = f"image {image.id}, annotation {i}"
        if crowd:
            notes.add(f"crowds of {dataset}", _CROWD_WHY, unit)
        elif segmentation is None:
            notes.add(f"objects of {dataset} without a mask", "the annotation has a box alone", unit)
        else:
            try:
                encoded = rle.from_segmentation(segmentation, image.height, image.width)
            except DataError as error:
                raise error.at(file=annotations, unit=unit) from error
            stored = CocoObject(path, annotations, image.height, image.width, encoded["counts"], i)
            instance = ObjectInstance(dataset, stem, str(i), f"{dataset}/{image.id}", stored, image=file)
            if notes.check_area(rle.area(encoded), min_area, instance.full_stem):
                yield instance


def list_panoptic_instances(
    dataset: str, annotations: Path, segments: Path, images: Path, min_area: int, notes: LeftOutNotes
) -> list[ObjectInstance]:
    """The things in the file's order without crowds; an object's stem is its segment's id."""
    content = read_panoptic(annotations, segments, images)
    found = []
    for image in content.images:
        for segment in image.segments:
            if not content.categories[segment.category_id].thing:
                continue
            stored = PanopticObject(image.path, image.segments_path, segment.id)
            instance = ObjectInstance(dataset, image.path.stem, str(segment.id), f"{dataset}/{image.id}", stored)
            if segment.crowd:
                notes.add(f"crowds of {dataset}", _CROWD_WHY, instance.full_stem)
            elif notes.check_area(segment.area, min_area, instance.full_stem):
                found.append(instance)
    return found
