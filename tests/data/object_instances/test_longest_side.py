from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.data.object_instances.longest_side import limited_image, limited_mask, limited_size, scaled_points
from hardlook.errors import DataError

SIDES = st.integers(1, 5000)


@given(SIDES, SIDES, st.integers(1, 3000))
def test_the_longest_side_is_the_limit_and_the_shape_stays(width: int, height: int, longest: int) -> None:
    found = limited_size((width, height), longest)
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
    found = limited_mask(mask, longest)
    new_width, new_height = limited_size((width, height), longest)
    assert found.shape == (new_height, new_width)
    for row, column in np.ndindex(found.shape):
        above = Fraction(2 * row + 1, 2) * height / new_height
        left = Fraction(2 * column + 1, 2) * width / new_width
        assert found[row, column] == mask[int(above), int(left)]


def test_an_image_is_averaged_over_areas() -> None:
    image = np.random.default_rng(0).integers(0, 256, (6, 12, 3), dtype=np.uint8)
    blocks = image.reshape(2, 3, 4, 3, 3).astype(float).mean(axis=(1, 3))
    assert np.abs(limited_image(image, 4).astype(float) - blocks).max() <= 0.5
    assert limited_image(image, 12) is image
    assert limited_image(image, None) is image


def test_points_move_with_the_pixels() -> None:
    # A pixel in the middle of a 3x3 block is the middle of the pixel that the block becomes.
    points = np.array([[1.0, 1.0], [4.0, 7.0], [11.0, 0.0]])
    assert scaled_points(points, (12, 9), (4, 3))[:2] == pytest.approx(np.array([[0.0, 0.0], [1.0, 2.0]]))
    assert scaled_points(points, (12, 9), (12, 9)) is points
    moved = scaled_points(np.array([[0.0, 0.0], [11.0, 8.0]]), (12, 9), (24, 18))
    assert moved.min() >= 0
    assert (moved <= [23, 17]).all()


@given(SIDES, SIDES, st.integers(1, 3000), st.integers(1, 3000))
def test_sizes_rounded_from_one_image_have_its_proportions(width: int, height: int, one: int, other: int) -> None:
    clicked, shown = limited_size((width, height), one), limited_size((width, height), other)
    # A side of less than a pixel is made one, which is no rounding.
    if min(*clicked, *shown) > 1:
        assert scaled_points(np.zeros((1, 2)), clicked, shown).shape == (1, 2)


@pytest.mark.parametrize("shown", [(480, 640), (640, 360), (642, 480), (1280, 720), (320, 245)])
def test_clicks_on_an_image_of_other_proportions_are_refused(shown: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=f"640x480, but here it has {shown[0]}x{shown[1]}") as caught:
        scaled_points(np.zeros((1, 2)), (640, 480), shown, unit="grabcut/llama")
    assert caught.value.unit == "grabcut/llama"
    assert "neither turned nor cut" in (caught.value.remedy or "")
