"""COCO's detection format: instances.json with annotated objects, and results json with detections. LVIS's is the same.

An LVIS json lists for each image the categories that are known to be absent and those whose objects are not all
annotated; about the others it says nothing.

Masks are decoded on demand. A results file is parsed one detection at a time into columns, so that a large file is
never in memory as Python objects. All problems of a file are listed in one error.

>>> truth = parse_instances({
...     "images": [{"id": 7, "file_name": "a.jpg", "width": 4, "height": 3}],
...     "categories": [{"id": 18, "name": "dog"}],
...     "annotations": [{"id": 1, "image_id": 7, "category_id": 18, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": 0,
...                      "segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]]}],
... })
>>> (image,) = truth.images
>>> image.boxes.tolist(), int(image.masks().sum())
([[0.0, 0.0, 2.0, 2.0]], 4)
>>> rows = [{"image_id": 7, "category_id": 18, "score": 0.5, "bbox": [0, 0, 2, 2]}]
>>> parse_results(rows, truth, "bbox")[7].area("bbox")
array([4.])
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.data import rle
from hardlook.data.problems import ProblemList
from hardlook.errors import DataError
from hardlook.reading import get_max_pixels, is_flag, read_bytes, read_id, read_json, read_name, reading

FORMAT = "expected images (id, width, height), annotations (id, image_id, category_id, bbox), categories (id, name)"
IouType = Literal["segm", "bbox"]
LVIS_KEYS = ("neg_category_ids", "not_exhaustive_category_ids")
FREQUENCIES = {"r": "rare", "c": "common", "f": "frequent"}
_MAX_ID = 10**18
_LARGEST_SIDE = 1e100  # pixels: areas of such boxes and their sums are finite
_SEPARATORS = re.compile(r"[\s,]*")
_REMEDY = "expected a list of {image_id, category_id, score, bbox or segmentation} for images of the ground truth"

_PHRASE_REMEDY = "free words: expected a list of {image_id, phrase, score, bbox or segmentation}"


@dataclass(frozen=True, eq=False)
class ImageObjects:
    """One annotated image with n objects in the file's order.

    `ids`, `category_ids` (n,); `boxes` (n, 4) as x, y, width, height; `area` (n,) pixels; `crowd` (n,) bool;
    `segmentations` as in the file (polygons or runs), None if missing; `file` is where they come from. In LVIS,
    `negative_ids` are the categories that are known to be absent, `not_exhaustive_ids` those with further objects;
    both are None in COCO.
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
    file: str = ""
    negative_ids: NDArray[np.int64] | None = None
    not_exhaustive_ids: NDArray[np.int64] | None = None

    @cached_property
    def encoded(self) -> tuple[rle.Rle, ...]:
        """The masks run-length encoded, as `rle.iou` takes them; cached."""
        masks = []
        for annotation, segmentation in zip(self.ids, self.segmentations, strict=True):
            if segmentation is None:
                what = f"annotation {annotation} has no segmentation"
                raise DataError(what, file=self.file or None, unit=str(self.id), remedy="score boxes")
            try:
                masks.append(rle.from_segmentation(segmentation, self.height, self.width))
            except DataError as error:
                raise error.at(file=self.file, unit=f"image {self.id}, annotation {annotation}") from error
        return tuple(masks)

    def masks(self) -> NDArray[np.bool_]:
        """The masks (n, H, W) bool."""
        with reading(self.file or None, f"the masks of image {self.id} cannot be read"):
            return np.array([rle.decode(mask) for mask in self.encoded], bool).reshape(-1, self.height, self.width)


@dataclass(frozen=True, eq=False)
class InstanceDataset:
    """Category names by id, ascending, and images in the file's order.

    `frequencies` are LVIS's groups by category id: r (rare), c (common), f (frequent); `synsets` the senses in WordNet
    that LVIS states, such as `cat.n.01`; both are empty where the file has none. `image_names` are the ids of images
    that are texts, as in ADE20K's converted json, with the numbers that stand for them here: 1 for the first by name.
    """

    categories: Mapping[int, str]
    images: tuple[ImageObjects, ...]
    frequencies: Mapping[int, str] = field(default_factory=dict)
    synsets: Mapping[int, str] = field(default_factory=dict)
    image_names: Mapping[str, int] = field(default_factory=dict)


def read_instances(path: Path | str) -> InstanceDataset:
    """The dataset of an instances.json."""
    return parse_instances(read_json(path, remedy="download it again"), path)


def parse_instances(content: Any, file: Path | str | None = None) -> InstanceDataset:
    """The dataset from the content of an instances.json; errors name `file`."""
    with reading(file, "not COCO's instance format", remedy=FORMAT):
        names = {read_id(category["id"]): read_name(category["name"]) for category in content["categories"]}
        image_names = _number_named_images(content["images"])
        images = {image_names.get(image["id"]) or read_id(image["id"]): image for image in content["images"]}
        sizes = {i: (read_id(image["height"]), read_id(image["width"])) for i, image in images.items()}
        problems = ProblemList()
        for i, (height, width) in sizes.items():
            if height < 1 or width < 1 or height * width > get_max_pixels():
                problems.add(f"images whose sides are not above 0, or of more than {get_max_pixels()} pixels", i)
        for i in (i for i in (*images, *names) if not _is_stored_id(i)):
            problems.add("ids of images or categories with more than 18 digits", i)
        if len(images) < len(content["images"]):
            problems.add("duplicate image ids", len(content["images"]) - len(images))
        if len(names) < len(content["categories"]):
            times = Counter(read_id(category["id"]) for category in content["categories"])
            for i in sorted(i for i, count in times.items() if count > 1):
                problems.add("duplicate category ids", i)
        federated = any(key in image for image in images.values() for key in LVIS_KEYS)
        objects = _group_by_image(content["annotations"], sizes, names, image_names, problems, federated=federated)
        if federated:
            _check_lvis_lists(images, names, problems)
        groups = {int(c["id"]): c["frequency"] for c in content["categories"] if "frequency" in c}
        for i, group in groups.items():
            if group not in FREQUENCIES:
                problems.add(f"frequencies other than {', '.join(FREQUENCIES)}, of categories", i)
        problems.raise_if_any("invalid annotations", file=file, remedy="correct or remove these entries")
        made = [_make_image(i, image, objects.get(i, []), file, federated) for i, image in images.items()]
        _check_pixels_of_boxes([image.boxes for image in made])
        synsets = {int(c["id"]): str(c["synset"]) for c in content["categories"] if c.get("synset")}
    return InstanceDataset(dict(sorted(names.items())), tuple(made), groups, synsets, image_names)


def _number_named_images(images: Any) -> dict[str, int]:
    """A number from 1 for each image whose id is a name, in their alphabetical order; empty where ids are numbers.

    >>> _number_named_images([{"id": "ADE_val_00000002"}, {"id": "ADE_val_00000001"}])
    {'ADE_val_00000001': 1, 'ADE_val_00000002': 2}
    """
    ids = [image["id"] for image in images]
    if all(isinstance(one, str) for one in ids) and not all(one.isdigit() for one in ids):
        return {name: number for number, name in enumerate(sorted(set(ids)), 1)}
    return {}


def _check_lvis_lists(images: Mapping[int, Any], names: Mapping[int, str], problems: ProblemList) -> None:
    for i, image in images.items():
        for key in LVIS_KEYS:
            listed = image.get(key)
            if not isinstance(listed, list):
                problems.add(f"no list {key}, which other images have, in images", i)
            elif not all(isinstance(one, int) and one in names for one in listed):
                problems.add(f"unknown category ids in {key}, in images", i)


def _group_by_image(
    annotations: Any,
    sizes: Mapping[int, tuple[int, int]],
    names: Mapping[int, str],
    image_names: Mapping[str, int],
    problems: ProblemList,
    *,
    federated: bool,
) -> dict[int, list[Any]]:
    grouped: defaultdict[int, list[Any]] = defaultdict(list)
    seen = set()
    for annotation in annotations:
        i, image = read_id(annotation["id"]), annotation["image_id"]
        image = image_names.get(image, image)
        if i in seen:
            problems.add("duplicate annotation ids", i)
        if not _is_stored_id(i):
            problems.add("annotation ids with more than 18 digits", i)
        seen.add(i)
        if image not in sizes:
            problems.add("unknown image ids", image)
            continue
        if annotation["category_id"] not in names:
            problems.add("unknown category ids", annotation["category_id"])
        if not _is_box(annotation["bbox"]):
            problems.add("boxes that are not x, y, width, height, of annotations", i)
        if (area := annotation.get("area")) is not None and not (_is_finite(area) and area >= 0):
            problems.add("areas that are not numbers of pixels, of annotations", i)
        if not (federated or annotation.get("iscrowd") is None or is_flag(annotation["iscrowd"])):
            problems.add("iscrowd that is neither 1 nor 0, of annotations", i)
        if not _has_image_size(annotation.get("segmentation"), sizes[image]):
            problems.add("masks of another size than their image, of annotations", i)
        grouped[image].append(annotation)
    return grouped


def _make_image(
    i: int, image: Mapping[str, Any], objects: list[Any], file: Path | str | None, federated: bool
) -> ImageObjects:
    lists = [np.array(image[key], np.int64) if federated else None for key in LVIS_KEYS]
    # LVIS 1 has no file_name; its images are in COCO's folders train2017 and val2017.
    file_name = str(image.get("file_name") or "/".join(str(image.get("coco_url", "")).split("/")[-2:]))
    boxes = np.array([o["bbox"] for o in objects], np.float64).reshape(-1, 4)
    areas = [o.get("area") for o in objects]
    return ImageObjects(
        i, file_name, read_id(image["width"]), read_id(image["height"]),
        np.array([read_id(o["id"]) for o in objects], np.int64),
        np.array([o["category_id"] for o in objects], np.int64),
        boxes, np.array([b[2] * b[3] if a is None else a for a, b in zip(areas, boxes, strict=True)], np.float64),
        np.array([not federated and bool(o.get("iscrowd")) for o in objects], bool),  # LVIS has no crowds
        tuple(o.get("segmentation") or None for o in objects), str(file or ""), *lists,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ImageDetections:
    """Detections of one image, n of them in the file's order.

    `category_ids`, `scores` (n,); `boxes` (n, 4) as x, y, width, height if boxes were read, else (0, 4);
    `counts` n run-length strings of masks of the image's size if masks were read, else none.
    """

    id: int
    width: int
    height: int
    category_ids: NDArray[np.int64]
    scores: NDArray[np.float64]
    boxes: NDArray[np.float64]
    counts: tuple[str, ...]
    file: str = ""

    @cached_property
    def encoded(self) -> tuple[rle.Rle, ...]:
        """The masks run-length encoded, as `rle.iou` takes them."""
        return tuple({"size": [self.height, self.width], "counts": text} for text in self.counts)

    def area(self, iou_type: IouType) -> NDArray[np.float64]:
        """(n,) areas in pixels of the masks or the boxes."""
        if iou_type == "bbox":
            return np.asarray(self.boxes[:, 2] * self.boxes[:, 3])
        return np.array([self._measure(rle.area, mask) for mask in self.encoded], np.float64)

    def mask_overlap(self, truth: ImageObjects) -> NDArray[np.float64]:
        """(n, objects) IoU of the masks with the image's objects; for a crowd, the share of the detection inside it."""
        return np.asarray(self._measure(rle.iou, self.encoded, truth.encoded, truth.crowd.tolist()))

    def _measure(self, measure: Any, *masks: Any) -> Any:
        """`measure(*masks)`; a `DataError` that names the image if a mask is damaged."""
        try:
            return measure(*masks)
        except DataError as error:
            raise error.at(file=self.file, unit=f"image {self.id}") from error


@dataclass
class _Columns:
    category_ids: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    boxes: list[list[float]] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)


def read_results(path: Path | str, truth: InstanceDataset, iou_type: IouType) -> dict[int, ImageDetections]:
    """Detections of every image of the ground truth, by image id, from a results json: boxes or masks by `iou_type`."""
    with reading(path, "not a JSON list", remedy=_REMEDY):
        return parse_results(iterate_elements(read_bytes(Path(path)).decode("utf-8-sig")), truth, iou_type, path)


def read_phrased_results(
    path: Path | str, truth: InstanceDataset, iou_type: IouType
) -> tuple[dict[int, str], dict[int, ImageDetections]]:
    """The phrases of a results json whose detections have a `phrase` each, by numbers that stand for them; detections.

    The phrases are numbered in alphabetical order, whatever the order of the file; a `category_id` is not read.
    """
    with reading(path, "not a JSON list", remedy=_PHRASE_REMEDY):
        text = read_bytes(Path(path)).decode("utf-8-sig")
        problems, phrases = ProblemList(), set()
        for position, row in enumerate(iterate_elements(text)):
            phrase = row.get("phrase") if isinstance(row, dict) else None
            if isinstance(phrase, str):
                phrases.add(phrase)
            else:
                problems.add("no phrase, at positions", position)
        problems.raise_if_any("detections without words", file=path, remedy=_PHRASE_REMEDY)
        numbers = {phrase: number for number, phrase in enumerate(sorted(phrases))}
        rows = ({**row, "category_id": numbers[row["phrase"]]} for row in iterate_elements(text))
        categories = {number: phrase for phrase, number in numbers.items()}
        return categories, parse_results(rows, replace(truth, categories=categories), iou_type, path)


def parse_results(
    rows: Iterable[Any], truth: InstanceDataset, iou_type: IouType, file: Path | str | None = None
) -> dict[int, ImageDetections]:
    """Detections by image id from a results json's content; a missing box is made from the mask; errors name `file`."""
    sizes = {image.id: (image.height, image.width) for image in truth.images}
    columns = {image: _Columns() for image in sizes}
    problems = ProblemList()
    for position, row in enumerate(rows):
        if not isinstance(row, dict):
            problems.add("entries that are not detections, at positions", position)
        elif not isinstance(image := _find_image(row, truth), int) or image not in sizes:
            problems.add("image ids that are not in the ground truth", repr(row.get("image_id")))
        elif not isinstance(category := row.get("category_id"), int) or category not in truth.categories:
            problems.add("category ids that are not in the ground truth", repr(category))
        elif not isinstance(score := row.get("score"), int | float) or isinstance(score, bool):
            problems.add("no score, at positions", position)
        elif not _is_finite(score):
            kind = "scores that are not numbers (NaN)" if score != score else "infinite scores"
            problems.add(f"{kind}, at positions", position)
        elif not _has_image_size(row.get("segmentation"), sizes[image]):
            problems.add("masks of another size than their image, at positions", position)
        else:
            detections = columns[image]
            _add_box_or_mask(detections, row, sizes[image], iou_type, position, problems)
            detections.category_ids.append(category)
            detections.scores.append(score)
    problems.raise_if_any("detections that do not match the ground truth", file=file, remedy=_REMEDY)
    with reading(file):
        _check_pixels_of_boxes([np.array(c.boxes, np.float64).reshape(-1, 4) for c in columns.values()])
    return {
        i: ImageDetections(
            i, sizes[i][1], sizes[i][0], np.array(c.category_ids, np.int64), np.array(c.scores, np.float64),
            np.array(c.boxes, np.float64).reshape(-1, 4), tuple(c.counts), str(file or ""),
        )
        for i, c in columns.items()
    }  # fmt: skip


def _find_image(row: Mapping[str, Any], truth: InstanceDataset) -> Any:
    """The id of a detection's image; a name as the number that stands for it."""
    image = row.get("image_id")
    return truth.image_names.get(image) if isinstance(image, str) else image


def _add_box_or_mask(
    detections: _Columns,
    row: dict[str, Any],
    size: tuple[int, int],
    iou_type: IouType,
    position: int,
    problems: ProblemList,
) -> None:
    segmentation, box = row.get("segmentation"), row.get("bbox")
    if iou_type == "bbox" and box:
        if not _is_box(box):
            problems.add("boxes that are not x, y, width, height, at positions", position)
        else:
            detections.boxes.append(box)
        return
    if not segmentation:
        problems.add(f"no {'segmentation' if iou_type == 'segm' else 'bbox'}, at positions", position)
        return
    try:
        encoded = rle.from_segmentation(segmentation, *size)
        if iou_type == "bbox":
            detections.boxes.append(list(rle.to_box(encoded)))
        else:
            detections.counts.append(encoded["counts"])
    except DataError:
        problems.add("masks that cannot be read, at positions", position)


def _check_pixels_of_boxes(boxes: Sequence[NDArray[np.float64]]) -> None:
    """Raise an error where all boxes (n, 4) lie in the first pixel, as those do that are shares of the image.

    >>> _check_pixels_of_boxes([np.array([[0.0, 0.0, 1.0, 1.0]])])
    """
    together = np.concatenate([np.zeros((0, 4)), *boxes])
    if len(together) and together.max() <= 1 and (together % 1).any():
        what = f"all numbers of the {len(together)} boxes are between 0 and 1"
        raise DataError(what, remedy="boxes are in pixels: multiply shares by the width and height of their image")


def iterate_elements(text: str) -> Iterator[Any]:
    """The elements of a JSON list, parsed one at a time."""
    position = _skip_separators(text, 0)
    if text[position : position + 1] != "[":
        raise json.JSONDecodeError("expected a list", text, position)
    decode = json.JSONDecoder().raw_decode
    position = _skip_separators(text, position + 1)
    while text[position : position + 1] != "]":
        element, position = decode(text, position)
        yield element
        position = _skip_separators(text, position)
    if text[position + 1 :].strip():
        raise json.JSONDecodeError("unexpected text after the list", text, position + 1)


def _skip_separators(text: str, position: int) -> int:
    match = _SEPARATORS.match(text, position)
    return match.end() if match else position


def _has_image_size(segmentation: Any, size: tuple[int, int]) -> bool:
    """Whether a segmentation has the image's size (height, width); polygons always do."""
    if not isinstance(segmentation, Mapping):
        return True
    mask_size = segmentation.get("size")
    return isinstance(mask_size, list | tuple) and tuple(mask_size) == size


def _is_stored_id(number: int) -> bool:
    """Whether records can hold it, with 64 bits."""
    return abs(number) < _MAX_ID


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number beyond the largest float
        return False


def _is_box(box: Any) -> bool:
    """Whether this is x, y, width, height: four numbers of pixels, the sides not negative."""
    if not isinstance(box, list | tuple) or len(box) != 4 or not all(isinstance(v, int | float) for v in box):
        return False
    return all(abs(v) <= _LARGEST_SIDE for v in box) and box[2] >= 0 and box[3] >= 0
