from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from pycocotools import mask as pycocotools_mask
from pycocotools.coco import COCO

from hardlook.data.class_masks import open_class_mask_folders, open_coco
from hardlook.errors import DataError, OptionError
from hardlook.world.layouts import write_world

SIZE = (40, 30)  # width, height


def annotation(number: int, image: int, category: int, segmentation: Any, crowd: int = 0) -> dict[str, Any]:
    return {
        "id": number, "image_id": image, "category_id": category, "segmentation": segmentation, "iscrowd": crowd,
        "bbox": [0, 0, 9, 9], "area": 81,
    }  # fmt: skip


def content() -> dict[str, Any]:
    band = np.zeros((30, 40), np.uint8)
    band[5:9, 2:30] = 1
    packed = pycocotools_mask.encode(np.asfortranarray(band))
    runs = {"size": [30, 40], "counts": [100, 60, 200, 40, 800]}
    return {
        "images": [
            {"id": number, "file_name": f"{number:012d}.jpg", "width": SIZE[0], "height": SIZE[1]}
            for number in (9, 25, 30)
        ],
        "categories": [{"id": 90, "name": "toothbrush"}, {"id": 1, "name": "person"}, {"id": 18, "name": "dog"}],
        "annotations": [
            annotation(1, 9, 18, [[3.2, 3.1, 20.5, 4, 18, 22.7, 5, 20]]),
            annotation(2, 9, 18, [[25, 2, 38, 2, 38, 12, 25, 12], [30, 20, 36, 20, 33, 27]]),
            annotation(3, 9, 1, {"size": packed["size"], "counts": packed["counts"].decode()}),
            annotation(4, 9, 90, runs, crowd=1),
            annotation(5, 25, 90, runs, crowd=1),
            annotation(6, 25, 90, [[1, 1, 6, 1, 6, 6, 1, 6]]),
        ],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "instances_val2014.json").write_text(json.dumps(content()))
    (tmp_path / "val2014").mkdir()
    PIL.Image.new("RGB", SIZE).save(tmp_path / "val2014" / "COCO_val2014_000000000009.jpg")
    PIL.Image.new("RGB", SIZE).save(tmp_path / "val2014" / "000000000025.jpg")
    return tmp_path


def test_masks_are_the_union_of_pycocotools_masks(folder: Path) -> None:
    source = open_coco(folder)
    theirs = COCO(folder / "annotations" / "instances_val2014.json")
    assert source.classes == ("person", "dog", "toothbrush")
    for number, category in enumerate((1, 18, 90), start=1):
        for image in (9, 25):
            expected = np.zeros((30, 40), bool)
            for found in theirs.loadAnns(theirs.getAnnIds([image], [category])):
                expected |= theirs.annToMask(found).astype(bool)
            truth = source.read_mask(f"{number}_{image}")
            assert np.array_equal(truth.mask, expected)
            assert not truth.void.any()
    assert source.tokens() == ("1_9", "2_9", "3_9", "3_25")
    assert source.read_image("1_9").shape == (30, 40, 3)
    assert (source.class_of("2_9"), source.image_of("2_9")) == ("dog", "9")


def test_the_label_map_has_the_smaller_object_in_front(folder: Path) -> None:
    source = open_coco(folder)
    theirs = COCO(folder / "annotations" / "instances_val2014.json")
    place = {1: 1, 18: 2, 90: 3}
    objects = [(theirs.annToMask(o), place[o["category_id"]]) for o in theirs.loadAnns(theirs.getAnnIds([9]))]
    labels = source.read_classes("9")
    for y, x in np.ndindex(labels.shape):
        here = [(int(mask.sum()), number) for mask, number in objects if mask[y, x]]
        assert labels[y, x] == (min(here)[1] if here else 0)


def test_what_is_not_there_is_named(folder: Path) -> None:
    source = open_coco(folder)
    PIL.Image.new("RGB", SIZE).save(folder / "val2014" / "000000000031.jpg")
    source = open_coco(folder)
    tokens = ("1_9", "1_25", "1_30", "1_31", "4_9")
    assert [source.missing(token) for token in tokens] == [
        "", "", "the image 30", "the annotations of image 31", "the class number 4 (there are 3 classes)",
    ]  # fmt: skip
    assert not source.read_mask("1_25").mask.any()
    for token, what in (("1_30", "no image 30"), ("1_31", "not annotated"), ("4_9", "class number 4"), ("1_x", "'x'")):
        with pytest.raises(DataError, match=what) as caught:
            source.read_mask(token)
        assert caught.value.unit == token


def test_an_image_of_another_size_is_refused(folder: Path) -> None:
    PIL.Image.new("RGB", (41, 30)).save(folder / "val2014" / "000000000025.jpg")
    with pytest.raises(DataError, match="is 40x30, its image 41x30") as caught:
        open_coco(folder).read_mask("3_25")
    assert caught.value.unit == "3_25"


def test_what_cannot_be_opened_is_named(folder: Path, tmp_path: Path) -> None:
    file = folder / "annotations" / "instances_val2014.json"
    assert open_coco({"images": folder / "val2014", "instances": file}).tokens() == open_coco(folder).tokens()
    with pytest.raises(OptionError, match="not COCO"):
        open_coco({"images": folder / "val2014"})
    with pytest.raises(DataError, match="no COCO images"):
        open_coco(folder / "val2014")
    with pytest.raises(DataError, match="no COCO images"):
        open_coco({"images": folder / "val2014", "instances": folder / "nowhere.json"})
    other = content()
    other["categories"][0]["name"] = "brush"
    (folder / "annotations" / "instances_train2014.json").write_text(json.dumps(other))
    with pytest.raises(DataError, match="categories differ"):
        _ = open_coco(folder).classes
    file.write_text("{")
    (folder / "annotations" / "instances_train2014.json").unlink()
    with pytest.raises(DataError, match="not JSON"):
        _ = open_coco(folder).classes


def test_a_pickled_source_is_small_and_answers_alike(folder: Path) -> None:
    source = open_coco(folder)
    before = source.read_mask("2_9").mask
    packed = pickle.dumps(source)
    assert len(packed) < 5000
    assert np.array_equal(pickle.loads(packed).read_mask("2_9").mask, before)


def test_the_planted_world_is_one_world_in_both_layouts(tmp_path: Path) -> None:
    coco = open_coco(write_world(tmp_path / "coco", "coco-panoptic", seed=5, count=4, size=(96, 72)))
    voc = open_class_mask_folders({"voc": write_world(tmp_path / "voc", "voc", seed=5, count=4, size=(96, 72))})
    assert coco.classes == voc.classes
    named = [f"{number}_2026_{int(image):06d}" for number, image in (token.split("_") for token in coco.tokens())]
    assert tuple(named) == voc.tokens()
    for ours, other in zip(coco.tokens(), named, strict=True):
        assert np.array_equal(coco.read_mask(ours).mask, voc.read_mask(other).mask)
