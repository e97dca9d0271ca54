from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.data.images import read_image
from hardlook.data.object_instances import list_instances
from hardlook.data.object_instances.isegm import TETRIS, count_object_pixels, list_objects
from hardlook.errors import DataError
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld


def _save(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(array).save(path)


def test_round_trip_of_the_planted_world(tmp_path: Path) -> None:
    instances = list_objects(write_world(tmp_path, "isegm", seed=2, count=12))
    assert [instance.image_stem for instance in instances] == [f"{i:06d}" for i in range(1, 13)]
    for instance, rendered in zip(instances, PlantedWorld(seed=2, count=12), strict=True):
        assert instance.object_stem == ""
        assert np.array_equal(read_image(instance.path), rendered.image)
        target = instance.read_target()
        assert np.array_equal(target.mask, rendered.target_mask)
        assert target.ignore.any()
        assert not (target.ignore & target.mask).any()


def test_values_of_each_layout(tmp_path: Path) -> None:
    image = np.zeros((2, 3, 3), np.uint8)
    grey = np.array([[0, 127, 128], [129, 200, 255]], np.uint8)
    colours = np.zeros((2, 3, 3), np.uint8)
    colours[0, 1, 2] = colours[1, 2, 0] = 1
    numbers = np.array([[0, 1, 1], [0, 7, 7]], np.uint8)
    for name, images, masks, mask in (
        ("GrabCut", "data_GT", "boundary_GT", grey), ("Berkeley", "images", "masks", grey),
        ("DAVIS", "img", "gt", colours), ("TETRIS", "img", "masks", numbers),
    ):  # fmt: skip
        _save(tmp_path / name / images / "a.bmp", image)
        _save(tmp_path / name / masks / "a.png", mask)
    for name in ("GrabCut", "Berkeley"):
        target = list_objects(tmp_path / name)[0].read_target()
        assert target.mask.tolist() == [[False, False, False], [True, True, True]]
        assert target.ignore.tolist() == [[False, False, True], [False, False, False]]
    davis = list_objects(tmp_path / "DAVIS")[0].read_target()
    assert davis.mask.tolist() == [[False, True, False], [False, False, True]]
    tetris = list_objects(tmp_path / "TETRIS")
    assert [instance.object_stem for instance in tetris] == ["1", "7"]
    assert tetris[1].read_target().mask.tolist() == [[False, False, False], [False, True, True]]


@given(arrays(np.int32, (3, 5), elements=st.integers(0, 4) | st.just(70000)))
def test_areas_of_objects(labels: np.ndarray) -> None:
    expected = {n: int((labels == n).sum()) for n in (1, 2, 3, 4, 70000)}
    assert count_object_pixels(labels) == {n: area for n, area in expected.items() if area}


def test_a_layout_that_is_asked_for_goes_before_the_first_that_fits(tmp_path: Path) -> None:
    numbers = np.array([[0, 2, 2], [5, 0, 2]], np.uint8)
    for folder, array in (("img", np.zeros((2, 3, 3), np.uint8)), ("gt", numbers), ("masks", numbers)):
        _save(tmp_path / folder / "a.png", array)
    assert [instance.area for instance in list_objects(tmp_path)] == [None]
    asked = list_objects(tmp_path, TETRIS)
    assert [(instance.object_stem, instance.area) for instance in asked] == [("2", 3), ("5", 1)]
    assert (asked[0].path, asked[0].mask_path) == (tmp_path / "img" / "a.png", tmp_path / "masks" / "a.png")


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no interactive dataset") as caught:
        list_objects(tmp_path)
    assert "data_GT + boundary_GT" in str(caught.value.remedy)
    (tmp_path / "img").mkdir()
    (tmp_path / "gt").mkdir()
    with pytest.raises(DataError, match="folders are empty"):
        list_objects(tmp_path)
    _save(tmp_path / "img" / "a.png", np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(DataError, match="not both: a"):
        list_objects(tmp_path)
    _save(tmp_path / "gt" / "a.png", np.zeros((4, 5), np.uint8))
    with pytest.raises(DataError, match="mask is 5x4, its image 4x4"):
        list_instances({"davis": tmp_path}).instances[0].read_target()
    _save(tmp_path / "img" / "a.png", np.zeros((4, 5, 3), np.uint8))
    with pytest.raises(DataError, match="mask is empty"):
        list_instances({"davis": tmp_path}).instances[0].read_target()


@pytest.mark.parametrize("folder", ["img", "gt"])
def test_two_files_of_one_stem_are_an_error_that_names_both(tmp_path: Path, folder: str) -> None:
    for name in ("img/ok0.png", "gt/ok0.png", "img/ok1.png", "gt/ok1.png", f"{folder}/ok0.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        _save(tmp_path / name, np.full((4, 4, 3), 255, np.uint8))
    with pytest.raises(DataError, match=r"two images are called 'ok0': ok0\.jpg and ok0\.png") as caught:
        list_instances({"davis": tmp_path})
    assert Path(str(caught.value.file)).name == folder


@pytest.mark.real
def test_real_grabcut(shared_data: Path) -> None:
    instances = list_objects(shared_data / "data" / "GrabCut")
    assert len(instances) == 7
    for instance in instances:
        target = instance.read_target()
        assert target.mask.shape == read_image(instance.path).shape[:2]
        assert 0.01 < target.mask.mean() < 0.9


def berkeley_like(folder, values):
    (folder / "images").mkdir(parents=True)
    (folder / "masks").mkdir()
    PIL.Image.fromarray(np.zeros((4, 6, 3), np.uint8)).save(folder / "images" / "cat.png")
    mask = np.resize(np.array(values, np.uint8), (4, 6))
    PIL.Image.fromarray(mask).save(folder / "masks" / "cat.png")
    return mask


def test_a_mask_of_zeros_and_ones_is_what_it_looks_like(tmp_path):
    mask = berkeley_like(tmp_path, [0, 1, 1])
    (instance,) = list_objects(tmp_path)
    target = instance.read_target()
    assert (target.mask == (mask == 1)).all()
    assert not target.ignore.any()


def test_dark_labels_are_refused_with_their_values(tmp_path):
    berkeley_like(tmp_path, [0, 1, 2])
    (instance,) = list_objects(tmp_path)
    with pytest.raises(DataError, match="brighter than 128; its values are 0, 1, 2"):
        instance.read_target()


def test_a_folder_that_is_not_there_is_called_that(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        list_objects(tmp_path / "nowhere")


@pytest.mark.parametrize("folders", [("images", "masks"), ("img", "gt")])
@pytest.mark.parametrize("grey", [0, 255])
def test_a_mask_in_the_transparency_of_one_colour_is_refused(
    tmp_path: Path, folders: tuple[str, str], grey: int
) -> None:
    pixels = np.full((4, 6, 4), grey, np.uint8)
    _save(tmp_path / folders[0] / "cat.png", pixels[..., :3])
    pixels[:2, 2:, 3], pixels[2:, :, 3], pixels[:, :2, 3] = 255, 0, 0
    _save(tmp_path / folders[1] / "cat.png", pixels)
    [found] = list_objects(tmp_path)
    with pytest.raises(DataError, match="what differs is its transparency"):
        found.read_target()


def test_transparency_beside_colours_does_not_count(tmp_path: Path) -> None:
    pixels = np.zeros((4, 6, 4), np.uint8)
    pixels[1:3, 2:4] = (255, 255, 255, 9)
    _save(tmp_path / "images" / "cat.png", pixels[..., :3])
    _save(tmp_path / "masks" / "cat.png", pixels)
    [found] = list_objects(tmp_path)
    assert np.array_equal(found.read_target().mask, pixels[..., 0] > 0)
