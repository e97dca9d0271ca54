from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.data.object_instances.instance import (
    MAX_SIDE,
    ObjectInstance,
    limit_image,
    limit_mask,
    limit_size,
    scale_points,
)
from hardlook.data.object_instances.isegm import InteractiveObject
from hardlook.errors import DataError

SIDES = st.integers(1, 5000)


@given(SIDES, SIDES, st.integers(1, 3000))
def test_the_longest_side_is_the_limit_and_the_shape_stays(width: int, height: int, longest: int) -> None:
    found = limit_size((width, height), longest)
    if max(width, height) <= longest:
        assert found == (width, height)
        return
    assert max(found) == longest
    for side, new in zip((width, height), found, strict=True):
        exact = Fraction(side * longest, max(width, height))
        assert new == 1 or abs(new - exact) <= Fraction(1, 2)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(0, 9))
def test_a_mask_takes_the_pixel_under_each_centre(width: int, height: int, longest: int, seed: int) -> None:
    mask = np.random.default_rng(seed).random((height, width)) < 0.5
    found = limit_mask(mask, longest)
    new_width, new_height = limit_size((width, height), longest)
    assert found.shape == (new_height, new_width)
    for row, column in np.ndindex(found.shape):
        above = Fraction(2 * row + 1, 2) * height / new_height
        left = Fraction(2 * column + 1, 2) * width / new_width
        assert found[row, column] == mask[int(above), int(left)]


def test_an_image_is_averaged_over_areas() -> None:
    image = np.random.default_rng(0).integers(0, 256, (6, 12, 3), dtype=np.uint8)
    blocks = image.reshape(2, 3, 4, 3, 3).astype(float).mean(axis=(1, 3))
    assert np.abs(limit_image(image, 4).astype(float) - blocks).max() <= 0.5
    assert limit_image(image, 12) is image
    assert limit_image(image, None) is image


def test_points_move_with_the_pixels() -> None:
    # A pixel in the middle of a 3x3 block is the middle of the pixel that the block becomes.
    points = np.array([[1.0, 1.0], [4.0, 7.0], [11.0, 0.0]])
    assert scale_points(points, (12, 9), (4, 3))[:2] == pytest.approx(np.array([[0.0, 0.0], [1.0, 2.0]]))
    assert scale_points(points, (12, 9), (12, 9)) is points
    moved = scale_points(np.array([[0.0, 0.0], [11.0, 8.0]]), (12, 9), (24, 18))
    assert moved.min() >= 0
    assert (moved <= [23, 17]).all()


@given(SIDES, SIDES, st.integers(1, 3000), st.integers(1, 3000))
def test_sizes_rounded_from_one_image_have_its_proportions(width: int, height: int, one: int, other: int) -> None:
    clicked, shown = limit_size((width, height), one), limit_size((width, height), other)
    # A side of less than a pixel is made one, which is no rounding.
    if min(*clicked, *shown) > 1:
        assert scale_points(np.zeros((1, 2)), clicked, shown).shape == (1, 2)


@pytest.mark.parametrize("shown", [(480, 640), (640, 360), (642, 480), (1280, 720), (320, 245)])
def test_clicks_on_an_image_of_other_proportions_are_refused(shown: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=f"640x480, but here it has {shown[0]}x{shown[1]}") as caught:
        scale_points(np.zeros((1, 2)), (640, 480), shown, unit="grabcut/llama")
    assert caught.value.unit == "grabcut/llama"
    assert "neither rotated nor cropped" in (caught.value.remedy or "")


def _instance(folder: Path, image: np.ndarray, mask: np.ndarray, longest: int | None = MAX_SIDE) -> ObjectInstance:
    PIL.Image.fromarray(image).save(folder / "a.png")
    PIL.Image.fromarray(mask).save(folder / "mask.png")
    stored = InteractiveObject("a", "7", folder / "a.png", folder / "mask.png", "integers")
    return ObjectInstance("tetris", "a", "7", "tetris/a", stored, longest)


def test_image_and_truth_are_made_smaller_alike(tmp_path: Path) -> None:
    image = np.zeros((20, 4096, 3), np.uint8)
    mask = np.zeros((20, 4096), np.uint8)
    image[4:12, 100:300] = 200
    mask[4:12, 100:300] = 7
    instance = _instance(tmp_path, image, mask)
    assert instance.size() == (2048, 10)
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
    assert again.size() == (6, 4)


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
