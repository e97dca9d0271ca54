"""The world as COCO: panoptic segments, instances and semantic label maps.

`images/`, `panoptic/` (PNG, id = R + 256 G + 65536 B) with `panoptic.json`, `instances.json` (things only, compressed
run lengths), `semantic/` (grey PNG of category ids, 0 unlabelled) with `semantic_classes.yaml`. Category ids are
the vocabulary's codes; void pixels belong to no segment.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_coco_panoptic(PlantedWorld(seed=0, count=2), folder, "png")
>>> sorted(json.loads((folder / "panoptic.json").read_text()))
['annotations', 'categories', 'images', 'info']
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.world.layouts.pictures import save_image, save_labels
from hardlook.world.layouts.run_lengths import compressed
from hardlook.world.planted import VERSION, PlantedWorld
from hardlook.world.render import Rendered
from hardlook.world.vocabulary import BY_CODE, LABELS, VOID

ENTRIES = ("images", "panoptic", "semantic", "panoptic.json", "instances.json", "semantic_classes.yaml")
_INFO = {"description": f"planted world, version {VERSION}", "year": 2026}


def segment_id(code: int, instance: int) -> int:
    """The id of a segment: one to one with class and instance, and apart from its neighbours as a colour."""
    return 7 * code + 256 * (30 + 60 * instance) + 65536 * (53 * code % 256)


def write_coco_panoptic(world: PlantedWorld, directory: Path, image_format: str) -> None:
    """Write all scenes, both JSON files and the list of semantic classes."""
    for folder in ("images", "panoptic", "semantic"):
        (directory / folder).mkdir()
    images: list[dict[str, Any]] = []
    panoptic: list[dict[str, Any]] = []
    instances: list[dict[str, Any]] = []
    for index, rendered in enumerate(world):
        name, number = f"{index + 1:012d}", index + 1
        height, width = rendered.classes.shape
        ids, segments = _segments(rendered)
        save_image(directory / "images" / f"{name}.{image_format}", rendered.image)
        save_image(directory / "panoptic" / f"{name}.png", ids)
        save_labels(directory / "semantic" / f"{name}.png", rendered.classes)
        images.append({"id": number, "file_name": f"{name}.{image_format}", "width": width, "height": height})
        panoptic.append({"image_id": number, "file_name": f"{name}.png", "segments_info": segments})
        for thing in rendered.scene.objects:
            mask = rendered.mask_of(thing)
            category = int(rendered.classes[mask][0])
            instances.append({
                "id": len(instances) + 1, "image_id": number, "category_id": category,
                "segmentation": compressed(mask), "area": int(mask.sum()), "bbox": _box(mask), "iscrowd": 0,
            })  # fmt: skip
    shared = {"info": _INFO, "images": images}
    _write_json(directory / "panoptic.json", {**shared, "annotations": panoptic, "categories": _categories()})
    things = [category for category in _categories() if category["isthing"]]
    _write_json(directory / "instances.json", {**shared, "annotations": instances, "categories": things})
    lines = ["classes:", f"  {VOID}: unlabeled", *(f"  {label.code}: {label.name}" for label in LABELS)]
    (directory / "semantic_classes.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _segments(rendered: Rendered) -> tuple[NDArray[np.uint8], list[dict[str, Any]]]:
    """The id picture (H, W, 3) and its `segments_info`."""
    keys = rendered.classes.astype(np.int32) * 4 + rendered.instances
    picture = np.zeros((*keys.shape, 3), np.uint8)
    segments = []
    for key in np.unique(keys):
        code, instance = divmod(int(key), 4)
        if code == VOID:
            continue
        mask = keys == key
        number = segment_id(code, instance)
        picture[mask] = (number & 255, number >> 8 & 255, number >> 16)
        box, area = _box(mask), int(mask.sum())
        segments.append({"id": number, "category_id": code, "iscrowd": 0, "bbox": box, "area": area})
    return picture, segments


def _box(mask: NDArray[np.bool_]) -> list[int]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    left, top = int(columns[0]), int(rows[0])
    return [left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top]


def _categories() -> list[dict[str, Any]]:
    return [
        {"id": code, "name": label.name, "isthing": int(label.thing), "supercategory": label.family}
        for code, label in sorted(BY_CODE.items())
    ]


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")
