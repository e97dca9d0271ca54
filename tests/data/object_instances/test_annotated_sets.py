from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from pycocotools import mask as coco_mask

from hardlook.data.coco_panoptic import encode_ids
from hardlook.data.object_instances import list_instances
from hardlook.errors import DataError, OptionError

SQUARE = [[1, 1, 4, 1, 4, 3, 1, 3]]


def _save(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(array).save(path)


def _annotation(i: int, image: int, segmentation: Any, crowd: int = 0) -> dict[str, Any]:
    return {"id": i, "image_id": image, "category_id": 1, "bbox": [0, 0, 2, 2], "area": 4, "iscrowd": crowd,
            "segmentation": segmentation}  # fmt: skip


def _coco(folder: Path, annotations: list[dict[str, Any]]) -> dict[str, Path]:
    images = [{"id": i, "file_name": f"{i:03d}.png", "width": 6, "height": 4} for i in (7, 8)]
    for image in images:
        _save(folder / "images" / str(image["file_name"]), np.zeros((4, 6, 3), np.uint8))
    content = {"images": images, "categories": [{"id": 1, "name": "dog"}], "annotations": annotations}
    (folder / "instances.json").write_text(json.dumps(content))
    return {"instances": folder / "instances.json", "images": folder / "images"}


def test_coco_s_objects(tmp_path: Path) -> None:
    runs = {"size": [4, 6], "counts": [20, 4]}
    data = _coco(tmp_path, [
        _annotation(3, 8, SQUARE), _annotation(1, 7, runs), _annotation(2, 7, runs, crowd=1), _annotation(4, 7, None),
        _annotation(5, 7, [[0, 0, 0, 0, 0, 0]]),
    ])  # fmt: skip
    found = list_instances(data)
    assert [(one.full_stem, one.image_key) for one in found.instances] == [
        ("007_______1", "instances/7"), ("008_______3", "instances/8"),
    ]  # fmt: skip
    whole, square = (one.read_target() for one in found.instances)
    assert np.argwhere(whole.mask).tolist() == [[0, 5], [1, 5], [2, 5], [3, 5]]
    assert not whole.ignore.any()
    polygons = coco_mask.merge(coco_mask.frPyObjects(SQUARE, 4, 6))
    assert np.array_equal(square.mask, coco_mask.decode(polygons).astype(bool))
    assert {note.what: note.count for note in found.left_out} == {
        "crowds of instances": 1, "objects of instances without a mask": 1, "objects of instances without a pixel": 1,
    }  # fmt: skip
    assert [one.object_stem for one in list_instances(data, min_area=5).instances] == ["3"]


def test_coco_s_faults(tmp_path: Path) -> None:
    data = _coco(tmp_path, [_annotation(1, 7, SQUARE), _annotation(2, 8, SQUARE)])
    _save(tmp_path / "images" / "007.png", np.zeros((4, 7, 3), np.uint8))
    with pytest.raises(DataError, match="truth is 6x4, its image 7x4") as caught:
        list_instances(data).instances[0].read_target()
    assert caught.value.unit == "instances/007_______1"
    (tmp_path / "images" / "008.png").unlink()
    with pytest.raises(DataError, match=r"1 image is missing: 008\.png"):
        list_instances(data)


def _voc(folder: Path, lists: dict[str, list[str]]) -> Path:
    maps = np.zeros((4, 6), np.uint8)
    maps[0] = 255
    maps[1, :2], maps[2:] = 3, 1
    for name in {name for names in lists.values() for name in names}:
        _save(folder / "JPEGImages" / f"{name}.jpg", np.zeros((4, 6, 3), np.uint8))
        for kind in ("SegmentationClass", "SegmentationObject"):
            _save(folder / kind / f"{name}.png", maps)
    (folder / "ImageSets" / "Segmentation").mkdir(parents=True)
    for name, ids in lists.items():
        (folder / "ImageSets" / "Segmentation" / f"{name}.txt").write_text("\n".join(ids))
    return folder


def test_voc_s_objects(tmp_path: Path) -> None:
    folder = _voc(tmp_path, {"train": ["b", "a"], "val": ["a"]})
    with pytest.raises(OptionError, match="2 lists") as caught:
        list_instances({"voc": folder})
    assert "train, val" in str(caught.value.remedy)
    found = list_instances({"voc": folder}, split="train").instances
    assert [one.full_stem for one in found] == ["b_______1", "b_______3", "a_______1", "a_______3"]
    assert [one.image_key for one in found] == ["voc/b", "voc/b", "voc/a", "voc/a"]
    target = found[1].read_target()
    assert np.argwhere(target.mask).tolist() == [[1, 0], [1, 1]]
    assert target.ignore.sum() == 6
    assert target.ignore[0].all()
    assert len(list_instances({"voc": folder}, split="val", min_area=3).instances) == 1
    (folder / "ImageSets" / "Segmentation" / "train.txt").unlink()
    assert len(list_instances({"voc": folder}).instances) == 2
    (folder / "SegmentationObject" / "a.png").unlink()
    with pytest.raises(DataError, match="no object mask in split val") as missing:
        list_instances({"voc": folder})
    assert missing.value.unit == "a"


def test_panoptic_things(tmp_path: Path) -> None:
    ids = np.array([[0, 300, 300, 70000], [9, 9, 9, 5]], np.int32)
    _save(tmp_path / "images" / "a.png", np.zeros((2, 4, 3), np.uint8))
    _save(tmp_path / "panoptic" / "a.png", encode_ids(ids))
    segments = [
        {"id": i, "category_id": category, "area": area, "bbox": [0, 0, 1, 1], "iscrowd": crowd}
        for i, category, area, crowd in ((300, 1, 2, 0), (70000, 1, 1, 1), (9, 2, 3, 0), (5, 1, 1, 0))
    ]
    content = {
        "images": [{"id": 4, "file_name": "a.png", "width": 4, "height": 2}],
        "annotations": [{"image_id": 4, "file_name": "a.png", "segments_info": segments}],
        "categories": [{"id": 1, "name": "dog", "isthing": 1}, {"id": 2, "name": "sky", "isthing": 0}],
    }
    (tmp_path / "panoptic.json").write_text(json.dumps(content))
    names = {"panoptic": "panoptic.json", "segments": "panoptic", "images": "images"}
    data = {name: tmp_path / where for name, where in names.items()}
    found = list_instances(data)
    assert [one.full_stem for one in found.instances] == ["a_______300", "a_______5"]
    target = found.instances[0].read_target()
    assert target.mask.tolist() == [[False, True, True, False], [False] * 4]
    assert np.argwhere(target.ignore).tolist() == [[0, 0]]
    assert [(note.what, note.count, note.examples) for note in found.left_out] == [
        ("crowds of panoptic", 1, ("a_______70000",))
    ]
    assert len(list_instances(data, min_area=2).instances) == 1
    _save(tmp_path / "panoptic" / "a.png", encode_ids(np.zeros((2, 4), np.int32)))
    with pytest.raises(DataError, match="the object has no pixels") as caught:
        found.instances[1].read_target()
    assert caught.value.unit == "panoptic/a_______5"
