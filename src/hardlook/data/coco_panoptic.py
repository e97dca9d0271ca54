"""COCO's panoptic format: one JSON with segments, and one PNG per image whose colours are segment ids.

>>> int(decode_ids(np.array([[[1, 2, 0]]], np.uint8))[0, 0]), encode_ids(np.array([[513]], np.int32))[0, 0].tolist()
(513, [1, 2, 0])
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data.images import is_file
from hardlook.errors import DataError, shorten
from hardlook.reading import is_flag, read_json, reading


@dataclass(frozen=True)
class Category:
    """A class of the dataset; `thing` says whether it is countable."""

    id: int
    name: str
    thing: bool


@dataclass(frozen=True)
class Segment:
    """One segment; `area` in pixels, `box` as x, y, width, height."""

    id: int
    category_id: int
    area: int
    box: tuple[float, float, float, float]
    crowd: bool


@dataclass(frozen=True)
class PanopticImage:
    """One annotated image: its file, and the PNG of its segment ids."""

    id: int
    path: Path
    segments_path: Path
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class PanopticDataset:
    """Categories by id and images in the JSON's order."""

    categories: Mapping[int, Category]
    images: tuple[PanopticImage, ...]


def decode_ids(colours: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Segment ids (H, W), 0 where unlabelled, of colours (H, W, 3): red + 256 green + 65536 blue."""
    ids = colours[..., 2].astype(np.int32)
    for channel in (1, 0):
        ids <<= 8
        ids |= colours[..., channel]
    return ids


def encode_ids(ids: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Colours (H, W, 3) of segment ids (H, W) below 2 ** 24."""
    return np.stack([ids & 255, ids >> 8 & 255, ids >> 16 & 255], axis=-1).astype(np.uint8)


def read_flag(row: Mapping[str, Any], key: str) -> bool:
    """The yes or no of a category or segment; a `ValueError` for what is neither 1 nor 0.

    >>> read_flag({"id": 7, "isthing": "0"}, "isthing")
    Traceback (most recent call last):
    ...
    ValueError: isthing of 7 is '0', neither 1 nor 0
    """
    if not is_flag(row[key]):
        raise ValueError(f"{key} of {row['id']} is {row[key]!r}, neither 1 nor 0")
    return bool(row[key])


def read_panoptic(annotations: Path | str, segments: Path | str, images: Path | str) -> PanopticDataset:
    """The dataset of a panoptic JSON, its folder of PNGs and its folder of images."""
    path, segments, images = Path(annotations), Path(segments), Path(images)
    content = read_json(path, remedy="download it again")
    remedy = "expected images, annotations with segments_info, and categories with isthing"
    with reading(path, "not COCO's panoptic format", remedy=remedy):
        categories = {c["id"]: Category(c["id"], c["name"], read_flag(c, "isthing")) for c in content["categories"]}
        records = {record["id"]: record for record in content["images"]}
        found = [_image(annotation, records, segments, images) for annotation in content["annotations"]]
        if unknown := {s.category_id for image in found for s in image.segments} - categories.keys():
            listed = ", ".join(shorten(repr(one), 40) for one in sorted(unknown, key=str)[:20])
            raise DataError(f"segments of unknown categories {listed}", file=path, remedy="list every category")
        missing = [p for image in found for p in (image.path, image.segments_path) if not is_file(p)]
    if missing:
        names = ", ".join(shorten(str(p)) for p in missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise DataError(f"{len(missing)} files are missing: {names}", file=path, remedy="check the two folders")
    return PanopticDataset(categories, tuple(found))


def _image(annotation: Any, records: Mapping[int, Any], segments: Path, images: Path) -> PanopticImage:
    record = records[annotation["image_id"]]
    parts = []
    for info in annotation["segments_info"]:
        x, y, width, height = info["bbox"]
        box = (float(x), float(y), float(width), float(height))
        parts.append(
            Segment(operator.index(info["id"]), info["category_id"], int(info["area"]), box, read_flag(info, "iscrowd"))
        )
    path, segments_path = images / record["file_name"], segments / annotation["file_name"]
    return PanopticImage(record["id"], path, segments_path, tuple(parts))
