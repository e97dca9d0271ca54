"""detectron2's output files, written as its evaluators write them: with pycocotools' masks."""

import json
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco_mask

from hardlook.data.detectron2 import find_output, parse_semantic_predictions, read_semantic_predictions
from hardlook.errors import DataError


def encode(mask):
    encoded = coco_mask.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": list(encoded["size"]), "counts": encoded["counts"].decode("utf-8")}


def semantic_rows(label_map, file_name):
    """The rows of one image: a mask for each label that occurs."""
    return [
        {"file_name": file_name, "category_id": int(label), "segmentation": encode(label_map == label)}
        for label in np.unique(label_map)
    ]


CAT = np.array([[3, 3, 0], [3, 5, 5]])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9), st.integers(1, 6))
def test_label_maps_come_back_as_they_were(seed, height, width, labels):
    maps = np.random.default_rng(seed).integers(0, labels, (2, height, width)) * 300
    rows = [*semantic_rows(maps[0], "val/a.jpg"), *semantic_rows(maps[1], "val/b.c.jpg")]
    found = parse_semantic_predictions(rows)
    assert list(found) == ["a", "b.c"]
    for prediction, drawn in zip(found.values(), maps, strict=True):
        assert np.array_equal(prediction.draw(), drawn)


def test_pixels_without_a_mask_have_no_label(tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(semantic_rows(CAT, "C:\\images\\a.jpg")[1:]))
    assert read_semantic_predictions(tmp_path / "p.json")["a"].draw().tolist() == [[3, 3, -1], [3, 5, 5]]


MASK = encode(CAT == 3)

ROW = {"file_name": "a.jpg", "category_id": 3, "segmentation": MASK}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([7], "entries without a file_name, at positions: 0"),
        ([{**ROW, "file_name": None}], "entries without a file_name, at positions: 0"),
        ([{**ROW, "category_id": "3"}], "no category_id, at positions: 0"),
        ([{**ROW, "category_id": -1}], "no category_id, at positions: 0"),
        ([{**ROW, "category_id": 2**40}], "no category_id, at positions: 0"),
        ([{**ROW, "segmentation": [[0, 0, 1, 1]]}], "masks that cannot be read, at positions: 0"),
        ([{**ROW, "segmentation": {"size": [2, 3]}}], "masks that cannot be read, at positions: 0"),
        ([{**ROW, "segmentation": {**MASK, "size": 6}}], "masks that cannot be read, at positions: 0"),
        ([{**ROW, "segmentation": {**MASK, "size": [60_000, 60_000]}}], "masks that cannot be read, at positions: 0"),
        ([ROW, ROW], "images with two masks of one category: a"),
        ([ROW, {**ROW, "file_name": "other/a.jpg"}], "images of one name in two folders: a"),
        ([ROW, {**ROW, "category_id": 5, "segmentation": encode(CAT.T == 5)}], "masks of several sizes: a"),
    ],
)
def test_rows_that_cannot_be_used_are_listed(rows, message, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(rows))
    with pytest.raises(DataError, match=message) as caught:
        read_semantic_predictions(tmp_path / "p.json")
    assert str(caught.value.file).endswith("p.json")


def test_masks_that_overlap_are_an_error():
    found = parse_semantic_predictions([ROW, {**ROW, "category_id": 5}])
    with pytest.raises(DataError, match="category 5 overlaps"):
        found["a"].draw()


@pytest.mark.parametrize("content", ["{}", "[1", "nonsense", "[] []"])
def test_a_file_that_is_no_list_is_an_error(tmp_path, content):
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(DataError):
        read_semantic_predictions(tmp_path / "p.json")


class Bomb:
    """Unpickled, it makes a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_file_is_found_in_its_folder_and_nothing_is_unpickled(tmp_path):
    file = tmp_path / "coco_instances_results.json"
    with pytest.raises(DataError, match=r"has no coco_instances_results\.json or lvis"):
        find_output(tmp_path, "coco_instances_results.json", "lvis_instances_results.json")
    (tmp_path / "instances_predictions.pth").write_bytes(pickle.dumps(Bomb(tmp_path / "unpickled")))
    with pytest.raises(DataError, match=r"instances_predictions.pth is pickled, which can run code, and is not read"):
        find_output(tmp_path, "coco_instances_results.json")
    file.write_text("[]")
    assert find_output(tmp_path, file.name, "lvis_instances_results.json") == file == find_output(file, "other")
    (tmp_path / "lvis_instances_results.json").write_text("[]")
    with pytest.raises(DataError, match=r"has coco_instances_results\.json and lvis_instances"):
        find_output(tmp_path, file.name, "lvis_instances_results.json")
    assert not (tmp_path / "unpickled").exists()
