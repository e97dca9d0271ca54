from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from hardlook.data.isegm import InteractiveInstance
from hardlook.data.object_instances.longest_side import LONGEST
from hardlook.data.object_instances.object_instance import ObjectInstance
from hardlook.errors import DataError


def _instance(folder: Path, image: np.ndarray, mask: np.ndarray, longest: int | None = LONGEST) -> ObjectInstance:
    PIL.Image.fromarray(image).save(folder / "a.png")
    PIL.Image.fromarray(mask).save(folder / "mask.png")
    stored = InteractiveInstance("a", "7", folder / "a.png", folder / "mask.png", "integers")
    return ObjectInstance("tetris", "a", "7", "tetris/a", stored, longest)


def test_image_and_truth_are_made_smaller_alike(tmp_path: Path) -> None:
    image = np.zeros((20, 4096, 3), np.uint8)
    mask = np.zeros((20, 4096), np.uint8)
    image[4:12, 100:300] = 200
    mask[4:12, 100:300] = 7
    instance = _instance(tmp_path, image, mask)
    assert (instance.size(), instance.scale) == ((2048, 10), 0.5)
    shown, target = instance.read(), instance.read_target()
    assert shown.shape == (10, 2048, 3)
    assert np.array_equal(target.mask, shown[..., 0] > 100)
    assert target.ignore.shape == target.mask.shape
    assert _instance(tmp_path, image, mask, None).read_target().mask.shape == (20, 4096)


def test_it_travels_and_compares_by_value(tmp_path: Path) -> None:
    instance = _instance(tmp_path, np.zeros((4, 6, 3), np.uint8), np.full((4, 6), 7, np.uint8))
    again = pickle.loads(pickle.dumps(instance))
    assert again == instance
    assert hash(again) == hash(instance)
    assert np.array_equal(again.read_target().mask, np.ones((4, 6), bool))
    assert again.full_stem == "a_______7"
    assert [path.name for path in again.files()] == ["a.png", "mask.png"]
    assert again.scale == 1


def test_faults_name_file_and_unit(tmp_path: Path) -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    for mask, told in (
        (np.full((4, 5), 7, np.uint8), "mask is 5x4, its image 6x4"),
        (np.full((4, 6), 8, np.uint8), "mask is empty"),
    ):
        with pytest.raises(DataError, match=told) as caught:
            _instance(tmp_path, image, mask).read_target()
        assert str(caught.value.file).endswith("mask.png")
        assert caught.value.unit
    instance = _instance(tmp_path, image, np.full((4, 6), 7, np.uint8))
    (tmp_path / "a.png").unlink()
    for read in (instance.read, instance.read_target):
        with pytest.raises(DataError, match="does not exist") as caught:
            read()
        assert caught.value.unit == "tetris/a_______7"


def test_an_object_that_vanishes_in_the_smaller_image_is_named(tmp_path: Path) -> None:
    mask = np.zeros((8, 4096), np.uint8)
    mask[0, 0] = 7  # the centres of two by two pixels fall on the odd ones
    with pytest.raises(DataError, match="nothing is left of the object at 2048"):
        _instance(tmp_path, np.zeros((8, 4096, 3), np.uint8), mask).read_target()
