"""What datasets give: images with label maps, images with annotated objects, images with labels.

Objects of every source become COCO's format, and pass its checks (`hardlook.data.coco_detection`).

>>> from hardlook.data.stored_files import FolderFile
>>> rows = ObjectRows(Path("val.parquet"), names=["cat", "dog"])
>>> rows.add_image("0001", (6, 4), FolderFile(Path("0001.jpg")))
>>> rows.add_object(1, bbox=[0, 0, 2, 3])
>>> (image,) = rows.build().truth.images
>>> image.file_name, image.category_ids.tolist(), image.area.tolist()
('0001', [1], [6.0])
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np

from hardlook.data import rle
from hardlook.data.coco_detection import InstanceDataset, parse_instances
from hardlook.data.label_maps import decode_label_map
from hardlook.data.stored_files import Stored
from hardlook.errors import DataError, shorten
from hardlook.reading import reading

BoxFormat = Literal["xywh", "xyxy"]
ANY_CONTEXT = "any"
"""The context of images of which the dataset names none."""

# Words for the fields of an object, the usual one first.
BOX_WORDS = ("bbox", "bboxes", "box", "boxes")
CATEGORY_WORDS = (
    "category", "categories", "category_name", "category_id", "category_ids", "label", "labels", "class", "classes",
    "name",
)  # fmt: skip
MASK_WORDS = ("segmentation", "segmentations", "mask", "masks", "rle")
CROWD_WORDS = ("iscrowd", "is_crowd", "crowd")
_MIN_OUTSIDE = 0.5  # share of boxes that end outside of their image, beyond which corners are suspected
_OUTSIDE_PIXELS = 2


@dataclass(frozen=True)
class MapSample:
    """An image with its label map."""

    id: str
    image: Stored
    mask: Stored


@dataclass(frozen=True)
class LabelledSample:
    """An image with its label, where it has one its context, and its split."""

    id: str
    image: Stored
    label: str
    context: str = ANY_CONTEXT
    split: str | None = None


@dataclass(frozen=True)
class ObjectSamples:
    """Images with objects, as COCO's json would hold them, and the image files by image id."""

    truth: InstanceDataset
    files: Mapping[int, Stored] = field(repr=False)
    file: Path

    def has_masks(self) -> bool:
        """Whether any object has a mask."""
        return any(one is not None for image in self.truth.images for one in image.segmentations)


class ObjectRows:
    """Collects images and their objects: `add_image`, then `add_object` for each of its objects, then `build`.

    `names` are the categories where objects have numbers, in their order or by number; None where objects have names.
    `box_format` is xywh (COCO's x, y, width, height) or xyxy (two corners).
    """

    def __init__(
        self, file: Path, names: Sequence[str] | Mapping[int, str] | None, box_format: BoxFormat = "xywh"
    ) -> None:
        self.file, self.box_format = file, box_format
        self.names = None if names is None else dict(names) if isinstance(names, Mapping) else dict(enumerate(names))
        self._images: list[dict[str, Any]] = []
        self._objects: list[dict[str, Any]] = []
        self._files: dict[int, Stored] = {}
        self._ids: list[Any] = []
        self._outside = 0

    def add_image(self, name: str, size: tuple[int, int], file: Stored, image_id: int | None = None) -> None:
        """An image of this width and height; its id is its number from 1 where none is given."""
        i = len(self._images) + 1 if image_id is None else image_id
        self._images.append({"id": i, "file_name": name, "width": size[0], "height": size[1]})
        self._files[i] = file

    def add_object(
        self,
        category: Any,
        *,
        bbox: Any = None,
        segmentation: Any = None,
        area: Any = None,
        crowd: Any = False,
        object_id: Any = None,
    ) -> None:
        """An object of the last image: its category, its box or mask or both, its area in pixels where it is known.

        Objects without ids of their own have numbers from 1.
        """
        image = self._images[-1]
        number = len(self._objects) + 1
        try:
            with reading(self.file, "the object cannot be read"):
                mask = _read_mask(segmentation, image)
                box = self._read_box(bbox, mask, image)
                if area is None and mask is not None:
                    area = rle.area(mask)
                called = self._check_category(category)
        except DataError as error:
            raise error.at(unit=f"object {number}, in the image {image['file_name']}") from error
        row = {"id": number, "image_id": image["id"], "category_id": called, "bbox": box}
        row |= {"segmentation": mask, "area": area, "iscrowd": int(bool(crowd))}
        self._objects.append(row)
        self._ids.append(object_id)

    def build(self) -> ObjectSamples:
        """All images and objects; a `DataError` lists what is wrong with them."""
        if not self._images:
            raise DataError("the dataset has no images", file=self.file, remedy="check the path and the split")
        if len(self._files) < len(self._images):
            twice = next(i for i, count in Counter(image["id"] for image in self._images).items() if count > 1)
            raise DataError("two images have one id", file=self.file, unit=str(twice), remedy="give each its own id")
        if self._outside > _MIN_OUTSIDE * len(self._objects):
            what = f"{self._outside} of {len(self._objects)} boxes end outside of their image, read as x, y, w, h"
            raise DataError(what, file=self.file, remedy="if they are corners x1, y1, x2, y2, pass --columns box=xyxy")
        if all(isinstance(i, int) for i in self._ids) and len(set(self._ids)) == len(self._ids):
            for row, i in zip(self._objects, self._ids, strict=True):
                row["id"] = i
        names = self.names
        if names is None:
            names = dict(enumerate(sorted({row["category_id"] for row in self._objects}), start=1))
            numbers = {name: number for number, name in names.items()}
            for row in self._objects:
                row["category_id"] = numbers[row["category_id"]]
        categories = [{"id": number, "name": name} for number, name in names.items()]
        content = {"images": self._images, "annotations": self._objects, "categories": categories}
        return ObjectSamples(parse_instances(content, self.file), self._files, self.file)

    def _read_box(self, bbox: Any, mask: rle.Rle | None, image: Mapping[str, Any]) -> list[float]:
        if bbox is None:
            if mask is None:
                raise DataError("neither a box nor a mask", remedy="give each object a bbox or a segmentation")
            return list(rle.to_box(mask))
        box = [float(value) for value in bbox]
        if len(box) != 4:
            raise DataError(f"a box of {len(box)} numbers", remedy="give x, y, width, height")
        if self.box_format == "xyxy":
            box = [box[0], box[1], box[2] - box[0], box[3] - box[1]]
        right, bottom = box[0] + box[2], box[1] + box[3]
        far = right > image["width"] + _OUTSIDE_PIXELS or bottom > image["height"] + _OUTSIDE_PIXELS
        self._outside += far and math.isfinite(right) and math.isfinite(bottom)
        return box

    def _check_category(self, category: Any) -> int | str:
        if isinstance(category, bytes):
            category = category.decode()
        if self.names is None:
            if isinstance(category, str) and category:
                return category
            what = f"the category {shorten(repr(category), 40)} has no name"
            raise DataError(what, remedy="store names, or numbers of the feature ClassLabel, which has the names")
        if isinstance(category, str):
            number = next((i for i, name in self.names.items() if name == category), None)
            if number is not None:
                return number
            raise DataError(f"the category {shorten(category, 40)!r} is none of the dataset's", remedy="add its name")
        return int(category)


def take_first(row: Mapping[str, Any], words: Sequence[str], default: Any = None) -> Any:
    """The value of the first of these keys that has one."""
    return next((row[word] for word in words if row.get(word) is not None), default)


def take_names(paths: Sequence[str | None]) -> list[str] | None:
    """The stems of file names where every image has one of its own; None where some have none or share one.

    >>> take_names(["val/a.jpg", "b.png"]), take_names(["a/0.jpg", "b/0.jpg"])
    (['a', 'b'], None)
    """
    names = [PurePosixPath(str(path or "").replace("\\", "/")).stem for path in paths]
    return names if all(names) and len(set(names)) == len(names) else None


def _read_mask(segmentation: Any, image: Mapping[str, Any]) -> rle.Rle | None:
    """The mask of an object: polygons, run lengths, a binary picture (its file's bytes) or array; None for none."""
    height, width = image["height"], image["width"]
    if segmentation is None or (isinstance(segmentation, Sequence | Mapping) and not len(segmentation)):
        return None
    if isinstance(segmentation, Mapping) and "counts" in segmentation:
        counts = segmentation["counts"]
        text = counts.decode("ascii") if isinstance(counts, bytes) else counts
        size = [int(side) for side in segmentation["size"]]
        return rle.from_segmentation({"size": size, "counts": text}, height, width)
    if isinstance(segmentation, Mapping):
        if not segmentation.get("bytes"):
            return None
        return _encode_array(decode_label_map(segmentation["bytes"], Path("mask.png")), height, width)
    if isinstance(segmentation, np.ndarray):
        return _encode_array(segmentation, height, width)
    if isinstance(segmentation[0], int | float):
        segmentation = [segmentation]
    if len(segmentation) == height and all(len(row) == width for row in segmentation):
        values = np.array(segmentation)
        if np.isin(values, (0, values.max(initial=1))).all():  # a picture of 0 and 1, or of 0 and 255
            return _encode_array(values, height, width)
    return rle.from_segmentation(segmentation, height, width)


def _encode_array(mask: Any, height: int, width: int) -> rle.Rle:
    values = np.asarray(mask)
    if values.shape != (height, width):
        what = f"a mask of shape {values.shape} for an image of {width}x{height} pixels (width x height)"
        raise DataError(what, remedy="store masks at the size of their image")
    return rle.encode(values > 0)
