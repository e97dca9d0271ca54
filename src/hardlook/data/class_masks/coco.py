"""Class masks of COCO, from instances json files.

Tokens are `C_image`: C counts the file's categories from 1 in the order of their ids (1-80 in COCO), `image` is the
image's number without leading zeros. The mask of a class is the union of its objects, crowds included, since a class
mask does not distinguish objects. No pixel is void.

>>> import json, tempfile
>>> import PIL.Image
>>> folder = Path(tempfile.mkdtemp())
>>> (folder / "images").mkdir()
>>> PIL.Image.new("RGB", (4, 3)).save(folder / "images" / "COCO_val2014_000000000007.jpg")
>>> _ = (folder / "instances.json").write_text(json.dumps({
...     "images": [{"id": 7, "file_name": "COCO_val2014_000000000007.jpg", "width": 4, "height": 3}],
...     "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "car"}],
...     "annotations": [{"id": 1, "image_id": 7, "category_id": 18, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": 0,
...                      "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]]}],
... }))
>>> source = open_coco(folder)
>>> source.tokens(), source.class_of("2_7"), int(source.read_mask("2_7").mask.sum())
(('2_7',), 'dog', 4)
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data import rle
from hardlook.data.class_masks.source import (
    ClassMask,
    ClassMaskSource,
    FolderListing,
    PickledByFields,
    check_mask_size,
    read_image_size,
)
from hardlook.data.class_tokens import parse_numbered_token
from hardlook.data.coco_detection import ImageObjects, read_instances
from hardlook.data.images import read_image
from hardlook.errors import DataError, OptionError
from hardlook.file_hashes import file_version

FOLDERS = ("train2014", "val2014", "train2017", "val2017", "images")
_NUMBER = re.compile(r"(?:.*\D)?(\d+)")


@dataclass(frozen=True)
class CocoClassMasks(PickledByFields):
    """Class masks of `instances` files over the images in `folders`."""

    folders: tuple[Path, ...]
    instances: tuple[Path, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The categories' names in the order of their ids."""
        return self._annotations[0]

    def paths(self) -> Mapping[str, Path]:
        """Every folder and file by its name."""
        return {path.name: path for path in (*self.folders, *self.instances)}

    def class_of(self, token: str) -> str:
        """The class name; a `DataError` for a class number beyond the categories."""
        return self.classes[self._parse(token)[0] - 1]

    def image_of(self, token: str) -> str:
        """The image's number as text."""
        return str(_parse_token(token)[1])

    def missing(self, token: str) -> str:
        """What is missing; empty if nothing is."""
        class_number, number = _parse_token(token)
        if class_number > len(self.classes):
            return f"the class number {class_number} (there are {len(self.classes)} classes)"
        if number not in self._images:
            return f"the image {number}"
        return "" if number in self._annotations[1] else f"the annotations of image {number}"

    def read_image(self, token: str) -> NDArray[np.uint8]:
        """The image (H, W, 3) uint8 RGB."""
        return read_image(self._image_path(_parse_token(token)[1], token))

    def read_mask(self, token: str) -> ClassMask:
        """The union of the class's objects; empty if the image has none."""
        class_number, image = self._parse(token)
        objects = self._objects(image, token)
        mask = np.zeros((objects.height, objects.width), bool)
        for own_number, encoded in self._list_masks(objects):
            if own_number == class_number:
                mask |= rle.decode(encoded)
        return ClassMask(mask, np.zeros_like(mask))

    def read_classes(self, image: str) -> NDArray[np.int32]:
        """The label map (H, W); where objects of two classes overlap, the smaller object is in front."""
        objects = self._objects(_parse_token(f"1_{image}")[1], image)
        labels = np.zeros((objects.height, objects.width), np.int32)
        masks = sorted(self._list_masks(objects), key=lambda pair: rle.area(pair[1]), reverse=True)
        for class_number, encoded in masks:
            labels[rle.decode(encoded)] = class_number
        return labels

    def tokens(self) -> tuple[str, ...]:
        """Every class with pixels in every existing image, by class, then image number."""
        objects = self._annotations[1]
        found = {
            (class_number, image)
            for image in set(objects) & set(self._images)
            for class_number, encoded in self._list_masks(objects[image])
            if rle.area(encoded)
        }
        return tuple(f"{class_number}_{image}" for class_number, image in sorted(found))

    def unreadable(self) -> Mapping[str, str]:
        """Always empty: tokens come from the annotations, not from the image files."""
        return {}

    def _parse(self, token: str) -> tuple[int, int]:
        class_number, number = _parse_token(token)
        if class_number > len(self.classes):
            what = f"class number {class_number} where there are {len(self.classes)} classes"
            raise DataError(what, unit=token, remedy="pass the instances file that the tokens were made with")
        return class_number, number

    def _list_masks(self, objects: ImageObjects) -> list[tuple[int, rle.Rle]]:
        """Class number and encoded mask of each object."""
        numbers = self._annotations[2]
        return [(numbers[i], mask) for i, mask in zip(objects.category_ids.tolist(), objects.encoded, strict=True)]

    @cached_property
    def _images(self) -> Mapping[int, Path]:
        return _list_images(self.folders, tuple(map(file_version, self.folders)))

    @cached_property
    def _annotations(self) -> tuple[tuple[str, ...], Mapping[int, ImageObjects], Mapping[int, int]]:
        return _read_annotations(self.instances, tuple(map(file_version, self.instances)))

    def _image_path(self, number: int, unit: str) -> Path:
        if number not in self._images:
            remedy = "unpack the images, or evaluate the existing ones with --subset available"
            raise DataError(f"no image {number}", file=self.folders[0], unit=unit, remedy=remedy)
        return self._images[number]

    def _objects(self, number: int, unit: str) -> ImageObjects:
        if (found := self._annotations[1].get(number)) is None:
            remedy = "add the instances file of its split"
            raise DataError(f"image {number} is not annotated", file=self.instances[0], unit=unit, remedy=remedy)
        path = self._image_path(number, unit)
        try:
            check_mask_size((found.width, found.height), read_image_size(path), path)
        except DataError as error:
            raise error.at(unit=unit) from error
        return found


def open_coco(data: Path | Mapping[str, Path]) -> ClassMaskSource:
    """The source at COCO's folder, or of `{"images": DIR, "instances": FILE}`.

    A folder has `annotations/instances_*.json` (or `instances*.json`) and the images in `train2014`, `val2014`,
    `train2017`, `val2017` or `images`, also below `images`. If there are files of 2014, only they are read, since those
    of 2017 hold the same images. A file is read with the first mask, once per process.
    """
    if isinstance(data, Mapping):
        if set(data) != {"images", "instances"}:
            names = ", ".join(sorted(data))
            raise OptionError(f"--data {names}: not COCO", remedy="pass images=DIR instances=FILE")
        folders, files = [Path(data["images"])], [Path(data["instances"])]
        root = folders[0]
    else:
        root = Path(data)
        nested = [root / name for name in FOLDERS] + [root / "images" / name for name in FOLDERS[:-1]]
        folders = [path for path in nested if path.is_dir()]
        found = [*sorted(root.glob("annotations/instances*.json")), *sorted(root.glob("instances*.json"))]
        files = [path for path in found if path.stem.endswith("2014")] or found
    if not files or not folders or not files[0].is_file() or not folders[0].is_dir():
        remedy = "pass COCO's folder, for example with annotations/instances_val2014.json and val2014/"
        raise DataError("no COCO images with an instances json here", file=root, remedy=remedy)
    return CocoClassMasks(tuple(folders), tuple(files))


def _parse_token(token: str) -> tuple[int, int]:
    """Class number (from 1) and image number of `C_image`."""
    class_number, image = parse_numbered_token(token)
    if not image.isdecimal() or len(image) > 18:
        raise DataError(f"{image!r} is not an image number of COCO", unit=token, remedy="write C_image, as in 4_11149")
    return class_number, int(image)


@lru_cache(maxsize=4)
def _list_images(folders: tuple[Path, ...], _versions: tuple[Hashable, ...]) -> Mapping[int, Path]:
    found: dict[int, Path] = {}
    for folder in folders:
        listing = FolderListing(folder)
        for stem in listing:
            if number := _NUMBER.fullmatch(stem):
                found.setdefault(int(number[1]), listing.path(stem))
    return found


# A process parses these hundreds of megabytes once, however many pickled sources it receives.
@lru_cache(maxsize=2)
def _read_annotations(
    files: tuple[Path, ...], _versions: tuple[Hashable, ...]
) -> tuple[tuple[str, ...], Mapping[int, ImageObjects], Mapping[int, int]]:
    """Class names, objects by image number, and class number by category id."""
    sets = [read_instances(path) for path in files]
    categories = dict(sets[0].categories)
    for path, other in zip(files[1:], sets[1:], strict=True):
        if dict(other.categories) != categories:
            raise DataError("the categories differ from the first file", file=path, remedy="use files of one dataset")
    objects: dict[int, ImageObjects] = {}
    for dataset in sets:
        for image in dataset.images:
            objects.setdefault(image.id, image)
    return tuple(categories.values()), objects, {category: n for n, category in enumerate(categories, start=1)}
