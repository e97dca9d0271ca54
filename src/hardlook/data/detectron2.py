"""Predictions as detectron2's evaluators write them into their output folder. Only JSON is read; nothing is unpickled.

| file in the folder | content |
|---|---|
| `sem_seg_predictions.json` | a list of {file_name, category_id, segmentation}: a mask per image and class |
| `coco_instances_results.json`, `lvis_instances_results.json` | COCO's results, see `hardlook.data.coco_detection` |
| `predictions.json` | COCO's panoptic results; the PNGs lie beside it |

>>> mask = rle.encode(np.array([[True, False]]))
>>> rows = [{"file_name": "val/a.jpg", "category_id": 7, "segmentation": mask}]
>>> parse_semantic_predictions(rows)["a"].draw()
array([[ 7, -1]], dtype=int32)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data import rle
from hardlook.data.coco_detection import iterate_elements
from hardlook.data.problems import ProblemList
from hardlook.errors import DataError
from hardlook.reading import read_bytes, reading

SEMANTIC = "sem_seg_predictions.json"
INSTANCES = ("coco_instances_results.json", "lvis_instances_results.json")
PANOPTIC = "predictions.json"
NO_LABEL = -1
_MAX_NUMBER = 2**31
_REMEDY = "expected a list of {file_name, category_id, segmentation: {size, counts}}, as detectron2 writes it"


def find_output(path: Path, *names: str) -> Path:
    """The file itself or, where `path` is a folder, the one of `names` in it; a `DataError` where none or two are."""
    if not path.is_dir():
        return path
    found = [path / name for name in names if (path / name).is_file()]
    if len(found) == 1:
        return found[0]
    if found:
        what = f"the folder has {' and '.join(one.name for one in found)}"
        raise DataError(what, file=path, remedy="give the one to score, not the folder")
    pickled = ", ".join(sorted(one.name for one in path.iterdir() if one.suffix in (".pth", ".pkl")))
    hint = f" ({pickled} is pickled, which can run code, and is not read)" if pickled else ""
    raise DataError(f"the folder has no {' or '.join(names)}{hint}", file=path, remedy="give a file or its folder")


@dataclass(frozen=True)
class SemanticPrediction:
    """The prediction of one image: n category ids, and for each the mask of its pixels, all of one size."""

    category_ids: tuple[int, ...]
    masks: tuple[rle.Rle, ...] = field(repr=False)

    def draw(self) -> NDArray[np.int32]:
        """The label map (H, W) of category ids, -1 where there is no mask; masks that overlap are a `DataError`."""
        drawn = np.full(self.masks[0]["size"], NO_LABEL, np.int32)
        for category, mask in zip(self.category_ids, self.masks, strict=True):
            pixels = rle.decode(mask)
            if (drawn[pixels] != NO_LABEL).any():
                what = f"the mask of category {category} overlaps another one"
                raise DataError(what, remedy="write one label per pixel")
            drawn[pixels] = category
        return drawn


def read_semantic_predictions(path: Path | str) -> dict[str, SemanticPrediction]:
    """The predictions of a `sem_seg_predictions.json`, by the stem of their image."""
    with reading(path, "not a JSON list", remedy=_REMEDY):
        return parse_semantic_predictions(iterate_elements(read_bytes(path).decode("utf-8-sig")), path)


def parse_semantic_predictions(rows: Iterable[Any], file: Path | str | None = None) -> dict[str, SemanticPrediction]:
    """The predictions from the content of a `sem_seg_predictions.json`; errors name `file` and list all problems."""
    masks: defaultdict[str, dict[int, rle.Rle]] = defaultdict(dict)
    folders: dict[str, str] = {}
    problems = ProblemList()
    for position, row in enumerate(rows):
        if not isinstance(row, Mapping) or not isinstance(name := row.get("file_name"), str):
            problems.add("entries without a file_name, at positions", position)
            continue
        path = PurePosixPath(name.replace("\\", "/"))
        category, segmentation = row.get("category_id"), row.get("segmentation")
        mask = _read_mask(segmentation)
        if folders.setdefault(path.stem, str(path)) != str(path):
            problems.add("images of one name in two folders", path.stem)
        elif not isinstance(category, int) or not 0 <= category < _MAX_NUMBER:
            problems.add("no category_id, at positions", position)
        elif mask is None:
            problems.add("masks that cannot be read, at positions", position)
        elif category in masks[path.stem]:
            problems.add("images with two masks of one category", path.stem)
        else:
            masks[path.stem][category] = mask
    for stem, by_category in masks.items():
        if len({tuple(mask["size"]) for mask in by_category.values()}) > 1:
            problems.add("images with masks of several sizes", stem)
    problems.raise_if_any("predictions that cannot be used", file=file, remedy=_REMEDY)
    return {stem: SemanticPrediction(tuple(found), tuple(found.values())) for stem, found in masks.items()}


def _read_mask(segmentation: Any) -> rle.Rle | None:
    if not isinstance(segmentation, Mapping):
        return None
    try:
        return rle.from_segmentation(segmentation, *segmentation.get("size", (0, 0)))
    except (DataError, TypeError):
        return None
