"""COCO's panoptic format written by tests: one JSON, one PNG an image."""

import json
from dataclasses import dataclass

import cv2
import numpy as np

from hardlook.data.coco_panoptic import encode_ids


@dataclass(frozen=True)
class Drawn:
    """One image: its map of segment ids and {segment id: category id}; `crowd` lists ids of crowds."""

    map: np.ndarray
    segments: dict
    crowd: tuple = ()


def write_png(path, segment_map):
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), encode_ids(np.asarray(segment_map, np.int32))[..., ::-1])


def write_panoptic(folder, name, images, categories):
    """Write `name.json` and `name/`; `images` is {image id: Drawn}, `categories` {id: (name, is thing)} or empty."""
    rows, pictures = [], []
    for image, drawn in images.items():
        write_png(folder / name / f"{image}.png", drawn.map)
        segments = [
            {
                "id": one, "category_id": category, "iscrowd": int(one in drawn.crowd),
                "area": int((np.asarray(drawn.map) == one).sum()), "bbox": [0, 0, 1, 1],
            }
            for one, category in drawn.segments.items()
        ]  # fmt: skip
        rows.append({"image_id": image, "file_name": f"{image}.png", "segments_info": segments})
        height, width = np.asarray(drawn.map).shape
        pictures.append({"id": image, "file_name": f"{image}.jpg", "width": width, "height": height})
    document = {"images": pictures, "annotations": rows}
    if categories:
        document["categories"] = [
            {"id": one, "name": label, "isthing": int(thing)} for one, (label, thing) in categories.items()
        ]
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    return path
