"""COCO's panoptic JSON as an evaluation takes it: of a prediction it needs little more than segment and category ids.

`hardlook.data.coco_panoptic` reads whole datasets and wants all of their fields and files; results written by models
have neither images nor boxes, and a PNG that is missing is one unit's fault.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "results.json"
>>> _ = path.write_text('{"annotations": [{"image_id": 9, "segments_info": [{"id": 5, "category_id": 1}]}]}')
>>> read_annotations(path).tables
(SegmentTable(image='9', png='', picture='', size=None, ids=(5,), categories=(1,), crowd=(False,)),)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardlook.data.coco_panoptic import Category
from hardlook.data.images import read_bytes
from hardlook.data.misfits import Misfits
from hardlook.errors import DataError

_NEEDS = "it needs annotations with image_id and segments_info of id and category_id; truth also categories"


@dataclass(frozen=True)
class SegmentTable:
    """One image's row: file names of its PNG and picture (empty where not said), size as (width, height).

    `ids`, `categories` and `crowd` have one entry a segment.
    """

    image: str
    png: str
    picture: str
    size: tuple[int, int] | None
    ids: tuple[int, ...]
    categories: tuple[int, ...]
    crowd: tuple[bool, ...]


@dataclass(frozen=True)
class PanopticAnnotations:
    """Categories by id, in the file's order (none where the file has none), and one table an image."""

    categories: Mapping[int, Category]
    tables: tuple[SegmentTable, ...]


def read_annotations(path: Path | str) -> PanopticAnnotations:
    """The JSON's content; what cannot be is refused with a list of where."""
    path = Path(path)
    try:
        content = json.loads(read_bytes(path))
        content = {"annotations": content} if isinstance(content, list) else content
        images = {str(row["id"]): row for row in content.get("images", ())}
        tables = tuple(_table(row, images) for row in content["annotations"])
        categories = [Category(int(c["id"]), str(c["name"]), bool(c["isthing"])) for c in content.get("categories", ())]
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"not JSON: {error}", file=path, remedy="write or download it again") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"not COCO's panoptic format: {error!r}", file=path, remedy=_NEEDS) from error
    found = PanopticAnnotations({category.id: category for category in categories}, tables)
    _refuse_doubles(found, [category.id for category in categories], path)
    return found


def refuse_unknown(tables: tuple[SegmentTable, ...], known: Mapping[int, int], path: Path, remedy: str) -> None:
    """Refuse segments of categories that are not in `known`, with the images that have them."""
    misfits = Misfits()
    for table in tables:
        for category in table.categories:
            if category not in known:
                misfits.add(f"category {category}, of which nobody says what it is, in images", table.image)
    misfits.refuse("segments of unknown categories", file=path, remedy=remedy)


def _table(row: Any, images: Mapping[str, Any]) -> SegmentTable:
    image = images.get(str(row["image_id"]), {})
    segments = row["segments_info"]
    size = (int(image["width"]), int(image["height"])) if {"width", "height"} <= image.keys() else None
    return SegmentTable(
        str(row["image_id"]),
        str(row.get("file_name", "")),
        str(image.get("file_name", "")),
        size,
        tuple(int(segment["id"]) for segment in segments),
        tuple(int(segment["category_id"]) for segment in segments),
        tuple(bool(segment.get("iscrowd", False)) for segment in segments),
    )


def _refuse_doubles(found: PanopticAnnotations, categories: list[int], path: Path) -> None:
    misfits = Misfits()
    images, files = set(), set()
    for table in found.tables:
        if table.image in images:
            misfits.add("image ids that come twice", table.image)
        if table.png and table.png in files:
            misfits.add("PNG files that come twice", table.png)
        images.add(table.image)
        files.add(table.png)
        if len(set(table.ids)) < len(table.ids):
            misfits.add("images with two segments of one id", table.image)
        if any(one <= 0 for one in table.ids):
            misfits.add("images with a segment whose id is not above 0 (0 is void)", table.image)
    for category in {one for one in categories if categories.count(one) > 1}:
        misfits.add("category ids that come twice", category)
    misfits.refuse("the file contradicts itself", file=path, remedy="one row an image, one id a segment and category")
