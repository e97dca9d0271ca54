"""COCO's instances.json: images, objects with boxes and masks, categories.

Masks are decoded when asked for. Everything that does not fit is listed in one error.

>>> content = {
...     "images": [{"id": 7, "file_name": "a.jpg", "width": 4, "height": 3}],
...     "categories": [{"id": 18, "name": "dog"}],
...     "annotations": [{"id": 1, "image_id": 7, "category_id": 18, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": 0,
...                      "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]]}],
... }
>>> (image,) = instances_from(content).images
>>> image.boxes.tolist(), int(image.masks().sum())
([[0.0, 0.0, 2.0, 2.0]], 4)
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data import rle
from hardlook.data.images import read_bytes
from hardlook.data.misfits import Misfits
from hardlook.errors import DataError

FORMAT = "it needs images (id, width, height), annotations (id, image_id, category_id, bbox), categories (id, name)"


@dataclass(frozen=True, eq=False)
class ImageObjects:
    """One annotated image with n objects in the file's order.

    `ids`, `category_ids` (n,); `boxes` (n, 4) as x, y, width, height; `area` (n,) pixels; `crowd` (n,) bool;
    `segmentations` as the file has them (polygons or runs), None where there is none.
    """

    id: int
    file_name: str
    width: int
    height: int
    ids: NDArray[np.int64]
    category_ids: NDArray[np.int64]
    boxes: NDArray[np.float64]
    area: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    segmentations: tuple[Any, ...]

    @cached_property
    def encoded(self) -> tuple[rle.Rle, ...]:
        """The masks run-length encoded, as `rle.iou` takes them; made once, then kept."""
        return tuple(map(self._encoded, self.ids.tolist(), self.segmentations))

    def masks(self) -> NDArray[np.bool_]:
        """The masks (n, H, W) bool."""
        return stack_masks(self.encoded, self.height, self.width)

    def _encoded(self, annotation: int, segmentation: Any) -> rle.Rle:
        if segmentation is None:
            raise DataError(f"annotation {annotation} has no segmentation", unit=str(self.id), remedy="score boxes")
        try:
            return rle.from_segmentation(segmentation, self.height, self.width)
        except DataError as error:
            raise error.at(unit=f"image {self.id}, annotation {annotation}") from error


@dataclass(frozen=True, eq=False)
class InstanceDataset:
    """Category names by id, ascending, and images in the file's order."""

    categories: Mapping[int, str]
    images: tuple[ImageObjects, ...]

    def class_indices(self, category_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) places 0..K-1 of known category ids in ascending order.

        >>> InstanceDataset({3: "cat", 18: "dog"}, ()).class_indices(np.array([18, 3]))
        array([1, 0])
        """
        return np.searchsorted(np.array(list(self.categories), np.int64), category_ids)


def stack_masks(encoded: tuple[rle.Rle, ...], height: int, width: int) -> NDArray[np.bool_]:
    """The masks (n, height, width) bool of n encodings, also when n is 0."""
    return np.stack([rle.decode(mask) for mask in encoded]) if encoded else np.zeros((0, height, width), bool)


def read_instances(path: Path | str) -> InstanceDataset:
    """The dataset of an instances.json."""
    try:
        content = json.loads(read_bytes(Path(path)))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"not JSON: {error}", file=path, remedy="download it again") from error
    return instances_from(content, path)


def instances_from(content: Any, file: Path | str | None = None) -> InstanceDataset:
    """The dataset of what an instances.json holds; `file` is what errors name."""
    try:
        names = {int(category["id"]): str(category["name"]) for category in content["categories"]}
        images = {int(image["id"]): image for image in content["images"]}
        sizes = {i: (int(image["height"]), int(image["width"])) for i, image in images.items()}
        misfits = Misfits()
        if len(images) < len(content["images"]):
            misfits.add("image ids that come twice", len(content["images"]) - len(images))
        objects = _by_image(content["annotations"], sizes, names, misfits)
        remedy = "correct or remove these entries; nothing is left out silently"
        misfits.refuse("annotations that do not fit", file=file, remedy=remedy)
        found = [_image(i, image, objects.get(i, [])) for i, image in images.items()]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"not COCO's instance format: {error!r}", file=file, remedy=FORMAT) from error
    return InstanceDataset(dict(sorted(names.items())), tuple(found))


def fits_image(segmentation: Any, size: tuple[int, int]) -> bool:
    """Whether a segmentation is of the image's size (height, width); polygons always are."""
    if not isinstance(segmentation, Mapping):
        return True
    stated = segmentation.get("size")
    return isinstance(stated, list | tuple) and tuple(stated) == size


def is_box(box: Any) -> bool:
    """Whether this is x, y, width, height: four finite numbers, the sides not negative."""
    if not isinstance(box, list | tuple) or len(box) != 4 or not all(isinstance(v, int | float) for v in box):
        return False
    return all(map(math.isfinite, box)) and box[2] >= 0 and box[3] >= 0


def _by_image(
    annotations: Any, sizes: Mapping[int, tuple[int, int]], names: Mapping[int, str], misfits: Misfits
) -> dict[int, list[Any]]:
    grouped: defaultdict[int, list[Any]] = defaultdict(list)
    seen = set()
    for annotation in annotations:
        i, image = annotation["id"], annotation["image_id"]
        if i in seen:
            misfits.add("annotation ids that come twice", i)
        seen.add(i)
        if image not in sizes:
            misfits.add("unknown image ids", image)
            continue
        if annotation["category_id"] not in names:
            misfits.add("category ids that are not listed", annotation["category_id"])
        if not is_box(annotation["bbox"]):
            misfits.add("boxes that are not x, y, width, height, of annotations", i)
        if not fits_image(annotation.get("segmentation"), sizes[image]):
            misfits.add("masks of another size than their image, of annotations", i)
        grouped[image].append(annotation)
    return grouped


def _image(i: int, image: Mapping[str, Any], objects: list[Any]) -> ImageObjects:
    boxes = np.array([o["bbox"] for o in objects], np.float64).reshape(-1, 4)
    stated = [o.get("area") for o in objects]
    return ImageObjects(
        i, str(image.get("file_name", "")), int(image["width"]), int(image["height"]),
        np.array([o["id"] for o in objects], np.int64), np.array([o["category_id"] for o in objects], np.int64),
        boxes, np.array([b[2] * b[3] if a is None else a for a, b in zip(stated, boxes, strict=True)], np.float64),
        np.array([bool(o.get("iscrowd", 0)) for o in objects], bool),
        tuple(o.get("segmentation") or None for o in objects),
    )  # fmt: skip
