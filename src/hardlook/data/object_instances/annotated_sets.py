"""Instances of VOC's devkit, of COCO's instances.json and of COCO's panoptic format.

>>> import json, tempfile
>>> import PIL.Image
>>> folder = Path(tempfile.mkdtemp())
>>> PIL.Image.new("RGB", (4, 3)).save(folder / "7.png")
>>> _ = (folder / "instances.json").write_text(json.dumps({
...     "images": [{"id": 7, "file_name": "7.png", "width": 4, "height": 3}],
...     "categories": [{"id": 18, "name": "dog"}],
...     "annotations": [{"id": 1, "image_id": 7, "category_id": 18, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": 0,
...                      "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]]}]}))
>>> (dog,) = coco_instances("instances", folder / "instances.json", folder, 0, LeftOutNotes("instances"))
>>> dog.full_stem, int(dog.read_target().mask.sum())
('7_______1', 4)
"""

from __future__ import annotations

from pathlib import Path

from hardlook.data import rle
from hardlook.data.coco_instances import read_instances
from hardlook.data.coco_panoptic import read_panoptic
from hardlook.data.isegm import object_areas
from hardlook.data.object_instances.left_out import LeftOutNotes
from hardlook.data.object_instances.object_instance import ObjectInstance
from hardlook.data.object_instances.stored_objects import CocoObject, PanopticThing, VocObject
from hardlook.data.voc import IGNORE, open_devkit
from hardlook.errors import DataError, OptionError

_CROWD_WHY = "a crowd is not one object"


def voc_instances(
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
        for number, area in object_areas(image.read_objects()).items():
            stored = VocObject(image.path, image.object_path, number)
            instance = ObjectInstance(dataset, image.id, str(number), f"{dataset}/{image.id}", stored)
            if number != IGNORE and notes.fits(area, min_area, instance.full_stem):
                found.append(instance)
    return found


def coco_instances(
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
                if notes.fits(rle.area(encoded), min_area, instance.full_stem):
                    found.append(instance)
    if missing:
        names = ", ".join(path.name for path in missing[:5]) + (", ..." if len(missing) > 5 else "")
        what = "1 image is missing" if len(missing) == 1 else f"{len(missing)} images are missing"
        raise DataError(f"{what}: {names}", file=images, remedy="check images=DIR")
    return found


def panoptic_instances(
    dataset: str, annotations: Path, segments: Path, images: Path, min_area: int, notes: LeftOutNotes
) -> list[ObjectInstance]:
    """The things in the file's order, crowds left out; an object's stem is its segment's id."""
    content = read_panoptic(annotations, segments, images)
    found = []
    for image in content.images:
        for segment in image.segments:
            stored = PanopticThing(image.path, image.segments_path, segment.id)
            instance = ObjectInstance(dataset, image.path.stem, str(segment.id), f"{dataset}/{image.id}", stored)
            if not content.categories[segment.category_id].thing:
                continue
            if segment.crowd:
                notes.add(f"crowds of {dataset}", _CROWD_WHY, instance.full_stem)
            elif notes.fits(segment.area, min_area, instance.full_stem):
                found.append(instance)
    return found


def _encoded(segmentation: object, height: int, width: int, file: Path, unit: str) -> rle.Rle:
    try:
        return rle.from_segmentation(segmentation, height, width)
    except DataError as error:
        raise error.at(file=file, unit=unit) from error
