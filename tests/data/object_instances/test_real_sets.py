"""The real GrabCut, VOC and COCO images, counted with other readers than ours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from hardlook.data.object_instances import list_instances

pytestmark = pytest.mark.real


def test_grabcut(shared_data: Path) -> None:
    folder = shared_data / "data" / "GrabCut"
    found = list_instances({"grabcut": folder}).instances
    assert [one.full_stem for one in found] == sorted(path.stem for path in (folder / "data_GT").iterdir())
    assert len({one.image_key for one in found}) == 7
    for one in found:
        target = one.read_target()
        grey = np.asarray(PIL.Image.open(one.stored.mask_path).convert("L"))
        assert np.array_equal(target.mask, grey == 255)
        assert np.array_equal(target.ignore, grey == 128)
        assert one.read().shape == (*grey.shape, 3)
        assert one.size() == (grey.shape[1], grey.shape[0])


def test_voc_objects(shared_data: Path) -> None:
    root = shared_data / "data" / "VOCdevkit"
    found = list_instances({"voc": root}, min_area=1000)
    stems = (root / "VOC2012" / "ImageSets" / "Segmentation" / "train.txt").read_text().split()
    large, small = [], 0
    for stem in stems:
        areas = dict(enumerate(PIL.Image.open(root / "VOC2012" / "SegmentationObject" / f"{stem}.png").histogram()))
        large += [f"{stem}_______{i}" for i, area in areas.items() if 0 < i < 255 and area >= 1000]
        small += sum(0 < i < 255 and 0 < area < 1000 for i, area in areas.items())
    assert [one.full_stem for one in found.instances] == large
    assert [(note.what, note.count) for note in found.left_out] == [("objects of voc below 1000 pixels", small)]
    drawn = list_instances({"voc": root}, at_most=10, min_area=1000).instances
    for one in drawn:
        target = one.read_target()
        assert target.mask.sum() >= 1000
        assert target.ignore.any()
        assert target.mask.shape == one.read().shape[:2]


def test_coco_things(shared_data: Path) -> None:
    folder = shared_data / "data" / "coco100"
    data = {"panoptic": folder / "panoptic.json", "segments": folder / "panoptic", "images": folder / "images"}
    found = list_instances(data)
    content = json.loads((folder / "panoptic.json").read_text())
    things = {category["id"] for category in content["categories"] if category["isthing"]}
    segments = [s for a in content["annotations"] for s in a["segments_info"] if s["category_id"] in things]
    assert [one.object_stem for one in found.instances] == [str(s["id"]) for s in segments if not s["iscrowd"]]
    assert sum(note.count for note in found.left_out) == sum(s["iscrowd"] for s in segments)
    areas = {str(s["id"]): s["area"] for s in segments}
    for one in list_instances(data, at_most=10).instances:
        target = one.read_target()
        assert target.mask.sum() == areas[one.object_stem]
        assert target.mask.shape == one.read().shape[:2]
        assert not (target.mask & target.ignore).any()
