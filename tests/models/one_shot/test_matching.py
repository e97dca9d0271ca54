"""Shares of cells against cutting pixels into squares, and against OpenCV where it averages areas."""

import cv2
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from one_shot_scenes import literal_coverage

from hardlook.models.one_shot.matching import cell_coverage

MASKS = arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=12))

GRIDS = st.tuples(st.integers(1, 9), st.integers(1, 9))


@given(MASKS, GRIDS)
def test_shares_are_areas(mask, grid):
    assert np.allclose(cell_coverage(mask, grid), literal_coverage(mask, grid), atol=1e-6)


@given(MASKS, GRIDS)
def test_mask_and_background_share_every_cell(mask, grid):
    inside, outside = cell_coverage(mask, grid), cell_coverage(~mask, grid)
    assert np.allclose(inside + outside, 1, atol=1e-6)
    assert inside.max() <= 1
    assert np.isclose(inside.mean(), mask.mean(), atol=1e-6)


def test_nothing_is_exactly_nothing():
    full = np.ones((375, 500), bool)
    assert not cell_coverage(~full, (14, 14)).any()
    assert np.allclose(cell_coverage(full, (14, 14)), 1)


def test_opencv_averages_the_same_areas():
    mask = np.random.default_rng(0).random((375, 500)) < 0.3
    expected = cv2.resize(mask.astype(np.float32), (20, 14), interpolation=cv2.INTER_AREA)
    assert np.allclose(cell_coverage(mask, (14, 20)), expected, atol=1e-5)
