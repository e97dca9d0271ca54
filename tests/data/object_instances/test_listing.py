from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from hardlook.data.object_instances import LeftOutNote, list_instances
from hardlook.errors import DataError, OptionError
from hardlook.world.planted import PlantedWorld
from hardlook.world.write import write_world


def _save(path: Path, array: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(array).save(path)
    return path


@pytest.fixture(scope="module")
def interactive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("isegm"), "isegm", seed=2, count=12)


def _folder(root: Path, images: str, masks: str, objects: dict[str, list]) -> Path:
    for i, (stem, mask) in enumerate(objects.items()):
        values = np.array(mask, np.uint8)
        _save(root / images / f"{stem}.png", np.full((*values.shape, 3), i, np.uint8))
        _save(root / masks / f"{stem}.png", values)
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
        ({}, "nothing: no instances"),
        ({"images": tmp_path}, "images: no instances"),
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
