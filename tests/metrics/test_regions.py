"""Whole-number distances against scipy's feature transform, which says where the nearest background pixel is."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import ndimage

from hardlook.metrics import regions
from hardlook.metrics.kernels import load_kernels
from hardlook.metrics.regions import Box, crop_around, find_bounding_box, find_innermost_pixel, squared_distances

MASKS = arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=9))


@given(MASKS)
def test_the_box_holds_all_and_cannot_be_smaller(mask):
    box = find_bounding_box(mask)
    rows, columns = np.nonzero(mask)
    if box is None:
        assert not len(rows)
    else:
        assert (box.top, box.bottom) == (rows.min(), rows.max() + 1)
        assert (box.left, box.right) == (columns.min(), columns.max() + 1)
        assert mask[box.slices].sum() == mask.sum()
        assert mask[box.slices].shape == (box.height, box.width)


@given(MASKS, st.integers(0, 4))
def test_growing_stays_in_the_frame(mask, margin):
    box = find_bounding_box(mask) or Box(0, 0, *mask.shape)
    grown = box.grown(margin, mask.shape)
    assert (grown.top, grown.left) == (max(0, box.top - margin), max(0, box.left - margin))
    assert grown.bottom - box.bottom == min(margin, mask.shape[0] - box.bottom)
    assert grown.right - box.right == min(margin, mask.shape[1] - box.right)


DISTANCES_MASKS = arrays(
    bool, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.sampled_from([True, True, False])
)


def oracle(mask, frame_is_background):
    framed = np.pad(mask, 1) if frame_is_background else mask
    nearest = ndimage.distance_transform_edt(framed, return_distances=False, return_indices=True)
    squared = ((nearest.astype(np.int64) - np.indices(framed.shape)) ** 2).sum(axis=0)
    return squared[1:-1, 1:-1] if frame_is_background else squared


def first_deepest(mask, taken=()):
    squared = oracle(mask, True)
    for row, column in taken:
        squared[row, column] = 0
    place = np.unravel_index(int(squared.argmax()), mask.shape)
    return (*map(int, place), int(squared.max())) if squared.any() else None


@pytest.fixture(params=["compiled", "scipy"])
def way(request, monkeypatch):
    """Both ways to the same numbers; without numba there is only the second."""
    if request.param == "scipy":
        monkeypatch.setattr(regions, "load_kernels", lambda name: None)
    elif load_kernels("distances") is None:
        pytest.skip("numba is not installed")
    return request.param


def shapes(height, width):
    """Symmetric shapes, whose depths tie at many pixels."""
    y, x = np.mgrid[:height, :width]
    row, column, side = height // 2, width // 2, min(height, width)
    yield "ring", (side // 6) ** 2 < (y - row) ** 2 + (x - column) ** 2
    yield "disc", (y - row) ** 2 + (x - column) ** 2 <= (side // 3) ** 2
    yield "diamond", abs(y - row) + abs(x - column) <= side // 3
    yield "cross", (abs(y - row) < side // 9) | (abs(x - column) < side // 9)
    yield "two squares", (abs(y - row) < side // 8) & (abs(abs(x - column) - side // 4) < side // 8)
    yield "whole frame", np.ones((height, width), bool)


@pytest.mark.parametrize("size", [(7, 9), (64, 64), (121, 160), (487, 655)])
@pytest.mark.parametrize("threads", [1, 2])
def test_symmetric_shapes_at_any_size_and_number_of_threads(way, size, threads):
    before = cv2.getNumThreads()
    cv2.setNumThreads(threads)  # OpenCV's own transform depends on it
    try:
        for name, mask in shapes(*size):
            assert np.array_equal(squared_distances(mask, frame_is_background=True), oracle(mask, True)), name
            if not mask.all():
                assert np.array_equal(squared_distances(mask, frame_is_background=False), oracle(mask, False)), name
            assert find_innermost_pixel(mask) == first_deepest(mask), name
    finally:
        cv2.setNumThreads(before)


def test_large_frames_where_single_precision_cannot_tell_distances_apart(way):
    # 3001 ** 2 and its neighbours are beyond the whole numbers that a float32 root keeps apart.
    mask = np.ones((3, 6003), bool)
    mask[:, 0] = False
    squared = squared_distances(mask, frame_is_background=False)
    assert np.array_equal(squared, np.broadcast_to(np.arange(6003) ** 2, (3, 6003)))
    mask[0, 1] = False
    squared = squared_distances(mask, frame_is_background=False)
    assert np.array_equal(squared[2, 2:], np.minimum(np.arange(2, 6003) ** 2, 4 + np.arange(1, 6002) ** 2))


@given(DISTANCES_MASKS, st.booleans())
def test_distances_are_exact(mask, frame_is_background):
    ours = squared_distances(mask, frame_is_background=frame_is_background)
    assert ours.dtype == np.int64
    if mask.all() and not frame_is_background:
        assert (ours == 1).all()
    else:
        assert np.array_equal(ours, oracle(mask, frame_is_background))


@given(DISTANCES_MASKS, st.data())
def test_the_innermost_free_pixel_is_the_first_of_the_deepest(mask, data):
    rows, columns = st.integers(0, mask.shape[0] - 1), st.integers(0, mask.shape[1] - 1)
    taken = data.draw(st.lists(st.tuples(rows, columns), max_size=5))
    beyond = [(-1, 0), (mask.shape[0], 2)]
    expected = first_deepest(mask, taken)
    assert find_innermost_pixel(mask, np.array([*taken, *beyond])) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regions, "load_kernels", lambda name: None)
        assert find_innermost_pixel(mask, np.array([*taken, *beyond])) == expected


@given(DISTANCES_MASKS)
def test_nothing_is_changed_and_views_serve(mask):
    before = mask.copy()
    assert np.array_equal(squared_distances(mask.T, frame_is_background=True), oracle(mask, True).T)
    find_innermost_pixel(mask[::-1])
    assert np.array_equal(mask, before)


def test_no_pixel_no_centre(way):
    assert find_innermost_pixel(np.zeros((3, 4), bool)) is None
    assert find_innermost_pixel(np.zeros((0, 4), bool)) is None
    assert find_innermost_pixel(np.ones((1, 1), bool), np.array([[0, 0]])) is None
    assert squared_distances(np.zeros((0, 3), bool), frame_is_background=True).shape == (0, 3)


@pytest.mark.parametrize(("x", "y"), [(0, 0), (19.6, 3.2), (5, 39), (99, 99), (70.4, 12)])
def test_a_crop_around_a_mask_shows_the_points_with_the_same_margin(x, y):
    mask = np.zeros((100, 100), bool)
    mask[10:20, 30:50] = True
    box, plain = crop_around(mask, points=[(x, y)]).box, crop_around(mask).box
    margin = 10 - plain.top if plain.top else 30 - plain.left
    row, column = round(y), round(x)
    # The pixels of mask and point, and the margin around them, inside the frame.
    assert (box.top, box.left) == (max(0, min(10, row) - margin), max(0, min(30, column) - margin))
    assert (box.bottom, box.right) == (min(100, max(20, row + 1) + margin), min(100, max(50, column + 1) + margin))
