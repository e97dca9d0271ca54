"""COCO's results json: a list of detections with image_id, category_id, score, and bbox or segmentation.

The list is read one detection at a time into columns, so that a large file is never a tree of objects in memory.

>>> from hardlook.data.coco_instances import instances_from
>>> image = {"id": 7, "width": 4, "height": 3}
>>> truth = instances_from({"images": [image], "categories": [{"id": 1, "name": "cat"}], "annotations": []})
>>> rows = [{"image_id": 7, "category_id": 1, "score": 0.5, "bbox": [0, 0, 2, 2]}]
>>> results_from(rows, truth, "bbox")[7].area("bbox")
array([4.])
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.data import rle
from hardlook.data.coco_instances import ImageObjects, InstanceDataset, fits_image, is_box, stack_masks
from hardlook.data.images import read_bytes
from hardlook.data.misfits import Misfits
from hardlook.errors import DataError

IouType = Literal["segm", "bbox"]
_BETWEEN = re.compile(r"[\s,]*")
_REMEDY = "a results file is a list of {image_id, category_id, score, bbox or segmentation} for the truth's images"


@dataclass(frozen=True, eq=False)
class ImageDetections:
    """Detections of one image, n of them in the file's order.

    `category_ids`, `scores` (n,); `boxes` (n, 4) as x, y, width, height, when boxes were read, else (0, 4);
    `counts` n run-length strings of masks of the image's size, when masks were read, else none.
    """

    id: int
    width: int
    height: int
    category_ids: NDArray[np.int64]
    scores: NDArray[np.float64]
    boxes: NDArray[np.float64]
    counts: tuple[str, ...]

    @cached_property
    def encoded(self) -> tuple[rle.Rle, ...]:
        """The masks run-length encoded, as `rle.iou` takes them."""
        return tuple({"size": [self.height, self.width], "counts": text} for text in self.counts)

    def masks(self) -> NDArray[np.bool_]:
        """The masks (n, H, W) bool."""
        return stack_masks(self.encoded, self.height, self.width)

    def area(self, iou_type: IouType) -> NDArray[np.float64]:
        """(n,) pixels of the masks or the boxes, whichever is scored."""
        if iou_type == "bbox":
            return np.asarray(self.boxes[:, 2] * self.boxes[:, 3])
        return np.array([self._whole(rle.area, mask) for mask in self.encoded], np.float64)

    def mask_overlap(self, truth: ImageObjects) -> NDArray[np.float64]:
        """(n, objects) overlap of the masks with the image's objects; of a crowd, the detection's share in it."""
        return np.asarray(self._whole(rle.iou, self.encoded, truth.encoded, truth.crowd.tolist()))

    def _whole(self, measure: Any, *masks: Any) -> Any:
        try:
            return measure(*masks)
        except (ValueError, TypeError) as error:
            remedy = "write masks as {'size': [H, W], 'counts': str}"
            raise DataError(f"a mask's runs are damaged: {error}", unit=f"image {self.id}", remedy=remedy) from error


@dataclass
class _Columns:
    category_ids: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    boxes: list[list[float]] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)


def read_results(path: Path | str, truth: InstanceDataset, iou_type: IouType) -> dict[int, ImageDetections]:
    """Detections by image id, for every image of the truth, from a results json; boxes or masks, as they are scored."""
    try:
        text = read_bytes(Path(path)).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"not JSON: {error}", file=path, remedy=_REMEDY) from error
    try:
        return results_from(_elements(text), truth, iou_type, path)
    except json.JSONDecodeError as error:
        raise DataError(f"not a JSON list: {error}", file=path, remedy=_REMEDY) from error


def results_from(
    rows: Iterable[Any], truth: InstanceDataset, iou_type: IouType, file: Path | str | None = None
) -> dict[int, ImageDetections]:
    """Detections by image id from what a results json holds; `file` is what errors name.

    A box that is missing is taken from the mask; a mask that is missing is an error.
    """
    sizes = {image.id: (image.height, image.width) for image in truth.images}
    columns = {image: _Columns() for image in sizes}
    misfits = Misfits()
    for position, row in enumerate(rows):
        if not isinstance(row, dict):
            misfits.add("entries that are no detections, at positions", position)
        elif not isinstance(image := row.get("image_id"), int) or image not in sizes:
            misfits.add("image ids that the truth has not", repr(image))
        elif not isinstance(category := row.get("category_id"), int) or category not in truth.categories:
            misfits.add("category ids that the truth has not", repr(category))
        elif not isinstance(score := row.get("score"), int | float):
            misfits.add("no score, at positions", position)
        elif not math.isfinite(score):
            misfits.add("scores that are no numbers (NaN), at positions", position)
        elif not fits_image(row.get("segmentation"), sizes[image]):
            misfits.add("masks of another size than their image, at positions", position)
        else:
            kept = columns[image]
            _add_region(kept, row, sizes[image], iou_type, position, misfits)
            kept.category_ids.append(category)
            kept.scores.append(score)
    misfits.refuse("detections that do not fit the truth", file=file, remedy=_REMEDY)
    return {
        i: ImageDetections(
            i, sizes[i][1], sizes[i][0], np.array(c.category_ids, np.int64), np.array(c.scores, np.float64),
            np.array(c.boxes, np.float64).reshape(-1, 4), tuple(c.counts),
        )
        for i, c in columns.items()
    }  # fmt: skip


def _add_region(
    kept: _Columns, row: dict[str, Any], size: tuple[int, int], iou_type: IouType, position: int, misfits: Misfits
) -> None:
    segmentation, box = row.get("segmentation"), row.get("bbox")
    if iou_type == "bbox" and box:
        if not is_box(box):
            misfits.add("boxes that are not x, y, width, height, at positions", position)
        else:
            kept.boxes.append(box)
        return
    if not segmentation:
        misfits.add(f"no {'segmentation' if iou_type == 'segm' else 'bbox'}, at positions", position)
        return
    try:
        encoded = rle.from_segmentation(segmentation, *size)
        if iou_type == "bbox":
            kept.boxes.append(list(rle.to_box(encoded)))
        else:
            kept.counts.append(encoded["counts"])
    except (DataError, ValueError, TypeError):
        misfits.add("masks that cannot be read, at positions", position)


def _elements(text: str) -> Iterator[Any]:
    """The elements of a JSON list, each parsed when its turn comes."""
    place = _after_gap(text, 0)
    if text[place : place + 1] != "[":
        raise json.JSONDecodeError("expected a list", text, place)
    decode = json.JSONDecoder().raw_decode
    place = _after_gap(text, place + 1)
    while text[place : place + 1] != "]":
        element, place = decode(text, place)
        yield element
        place = _after_gap(text, place)
    if text[place + 1 :].strip():
        raise json.JSONDecodeError("more after the list's end", text, place + 1)


def _after_gap(text: str, place: int) -> int:
    gap = _BETWEEN.match(text, place)
    return gap.end() if gap else place
