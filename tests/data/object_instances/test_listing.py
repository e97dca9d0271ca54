from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from pycocotools import mask as coco_mask

from hardlook.data.coco_panoptic import encode_ids
from hardlook.data.object_instances import LeftOutNote, list_instances
from hardlook.errors import DataError, OptionError
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld

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
    with pytest.raises(DataError, match="mask is 6x4, its image 7x4") as caught:
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
    with pytest.raises(OptionError, match="2 splits") as caught:
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
    with pytest.raises(DataError, match="the mask is empty") as caught:
        found.instances[1].read_target()
    assert caught.value.unit == "panoptic/a_______5"


def _listing_save(path: Path, array: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(array).save(path)
    return path


@pytest.fixture(scope="module")
def interactive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("isegm"), "isegm", seed=2, count=12)


def _folder(root: Path, images: str, masks: str, objects: dict[str, list]) -> Path:
    for i, (stem, mask) in enumerate(objects.items()):
        values = np.array(mask, np.uint8)
        _listing_save(root / images / f"{stem}.png", np.full((*values.shape, 3), i, np.uint8))
        _listing_save(root / masks / f"{stem}.png", values)
    return root


def test_any_name_is_a_folder_known_by_its_layout(interactive: Path) -> None:
    found = list_instances({"My_Own": interactive})
    assert [one.full_stem for one in found.instances] == [f"{i:06d}" for i in range(1, 13)]
    assert {one.dataset for one in found.instances} == {"my-own"}
    assert found.left_out == ()
    for one, rendered in zip(found.instances, PlantedWorld(seed=2, count=12), strict=True):
        assert np.array_equal(one.read(), rendered.image)
        assert np.array_equal(one.read_target().mask, rendered.target_mask)
    assert pickle.loads(pickle.dumps(found)) == found


def test_tetris_has_an_instance_an_integer_and_images_are_shared(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "img", "masks", {"b": [[0, 7, 7, 2]], "a": [[5, 5, 5, 0]]})
    found = list_instances({"TETRIS": folder}).instances
    assert [one.full_stem for one in found] == ["a_______5", "b_______2", "b_______7"]
    assert [one.image_key for one in found] == ["tetris/a", "tetris/b", "tetris/b"]
    assert found[2].read_target().mask.tolist() == [[False, True, True, False]]
    assert all(one.longest == 2048 for one in found)
    noted = list_instances({"tetris": folder}, min_area=2)
    assert [one.full_stem for one in noted.instances] == ["a_______5", "b_______7"]
    assert noted.left_out == (
        LeftOutNote("objects of tetris below 2 pixels", 1, "the minimal area asked for", ("b_______2",)),
    )


def test_an_empty_mask_is_noted_where_areas_are_asked_for(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "data_GT", "boundary_GT", {"a": [[255, 255]], "b": [[0, 128]], "c": [[255, 0]]})
    listed = list_instances({"grabcut": folder}, min_area=2)
    assert [one.full_stem for one in listed.instances] == ["a"]
    assert {note.what: note.examples for note in listed.left_out} == {
        "objects of grabcut without a pixel": ("b",),
        "objects of grabcut below 2 pixels": ("c",),
    }
    empty = list_instances({"grabcut": folder}).instances[1]
    with pytest.raises(DataError, match="the mask is empty"):
        empty.read_target()


def test_images_of_equal_bytes_share_a_key(tmp_path: Path) -> None:
    mask = [[255, 0, 128]]
    folder = _folder(tmp_path, "images", "masks", {"1": mask, "1a": mask, "2": mask})
    (folder / "images" / "1a.png").write_bytes((folder / "images" / "1.png").read_bytes())
    found = list_instances({"berkeley": folder}).instances
    assert [(one.full_stem, one.image_key) for one in found] == [
        ("1", "berkeley/1"), ("1a", "berkeley/1"), ("2", "berkeley/2"),
    ]  # fmt: skip
    assert found[0].read_target().ignore.tolist() == [[False, False, True]]
    assert found[0].longest is None


def test_a_name_that_is_known_wants_its_own_layout(tmp_path: Path) -> None:
    folder = _folder(tmp_path, "img", "gt", {"a": [[1]]})
    assert len(list_instances({"davis": folder, "coco_mval": folder}).instances) == 2
    with pytest.raises(DataError, match="no interactive dataset") as caught:
        list_instances({"tetris": folder})
    assert "img + masks" in str(caught.value.remedy)
    _folder(tmp_path, "img", "masks", {"a": [[0]]})
    with pytest.raises(DataError, match="mask is empty"):
        list_instances({"tetris": folder})


def test_a_draw_is_keyed_by_dataset_and_keeps_the_order(interactive: Path) -> None:
    everything = [one.full_stem for one in list_instances({"a": interactive}).instances]

    def drawn(data: dict[str, Path], seed: int = 0) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {name: [] for name in data}
        for one in list_instances(data, at_most=5, seed=seed).instances:
            names[one.dataset].append(one.full_stem)
        return names

    alone = drawn({"a": interactive})["a"]
    assert len(set(alone)) == 5
    assert alone == sorted(alone)
    assert set(alone) < set(everything)
    together = drawn({"b": interactive, "a": interactive})
    assert together["a"] == alone
    assert together["b"] != alone
    assert drawn({"a": interactive}, seed=1)["a"] != alone
    (note,) = list_instances({"a": interactive}, at_most=5).left_out
    assert (note.what, note.count, len(note.examples)) == ("instances of a not drawn", 7, 5)
    assert list_instances({"a": interactive}, at_most=12).left_out == ()


def test_options_that_do_not_fit(tmp_path: Path, interactive: Path) -> None:
    for data, told in (
        ({}, "nothing: no dataset with object instances"),
        ({"images": tmp_path}, "images: no dataset with object instances"),
        ({"a": interactive, "segments": tmp_path}, "segments without panoptic"),
        ({"a": interactive, "images": tmp_path}, "images without instances or panoptic"),
        ({"instances": tmp_path}, "instances without images"),
        ({"panoptic": tmp_path, "images": tmp_path}, "panoptic without segments"),
        ({"coco": interactive, "COCO_MVal": interactive}, "two spellings"),
    ):
        with pytest.raises(OptionError, match=told) as caught:
            list_instances(data)
        assert caught.value.remedy
    with pytest.raises(OptionError, match="split 'val' without voc"):
        list_instances({"a": interactive}, split="val")
    with pytest.raises(OptionError, match="at most 0"):
        list_instances({"a": interactive}, at_most=0)
    with pytest.raises(DataError, match="no such folder"):
        list_instances({"a": tmp_path / "none"})
    with pytest.raises(DataError, match=r"no instance of a .*objects of a below 1000000 pixels: 12"):
        list_instances({"a": interactive}, min_area=10**6)
    with pytest.raises(DataError, match="no folder of images"):
        list_instances({"instances": tmp_path / "a.json", "images": tmp_path / "none"})
