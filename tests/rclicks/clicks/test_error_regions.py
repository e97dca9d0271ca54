"""The error that the next click corrects: the worked checks and a full-frame implementation by the words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage
from sklearn.metrics import jaccard_score

from hardlook.rclicks.clicks.error_regions import GroundTruth, choose_error, compare_masks

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9))

THREE = SHAPES.flatmap(lambda shape: arrays(bool, (3, *shape)))


def in_frame(region, shape):
    frame = np.zeros(shape, bool)
    if region is not None:
        frame[region.box.slices] = region.mask
    return frame


@given(THREE)
def test_counts_and_regions_are_those_of_the_whole_frame(three):
    target, ignore, mask = three
    if not (target & ~ignore).any():
        with pytest.raises(ValueError, match="at least one pixel"):
            GroundTruth.of(target, ignore)
        return
    found = compare_masks(GroundTruth.of(target, ignore), mask)
    counted = ~ignore
    assert found.intersection == (target & mask & counted).sum()
    assert found.union == ((target | mask) & counted).sum()
    assert found.intersection / found.union == pytest.approx(jaccard_score(target[counted], mask[counted]))
    assert np.array_equal(in_frame(found.missing, mask.shape), target & ~mask & counted)
    assert np.array_equal(in_frame(found.surplus, mask.shape), mask & ~target & counted)


@given(THREE)
def test_boxes_have_one_pixel_of_margin_where_the_frame_has_one(three):
    target, ignore, mask = three
    if not (target & ~ignore).any():
        return
    found = compare_masks(GroundTruth.of(target, ignore), mask)
    for region in (found.missing, found.surplus):
        if region is not None:
            rows, columns = np.nonzero(in_frame(region, mask.shape))
            assert region.box.top == max(rows.min() - 1, 0)
            assert region.box.left == max(columns.min() - 1, 0)
            assert region.box.bottom == min(rows.max() + 2, mask.shape[0])
            assert region.box.right == min(columns.max() + 2, mask.shape[1])


def test_a_perfect_mask_has_no_errors():
    target = np.eye(4, dtype=bool)
    found = compare_masks(GroundTruth.of(target, ~target), np.ones((4, 4), bool))
    assert (found.missing, found.surplus, found.intersection, found.union) == (None, None, 4, 4)


NONE = np.empty((0, 2), np.int64)


def clicked(target, mask, before=NONE, ignore=None):
    truth = GroundTruth.of(target, target & False if ignore is None else ignore)
    choice = choose_error(compare_masks(truth, mask), before)
    return None if choice is None else (choice.row, choice.column, choice.positive)


def frame(height, width, *parts):
    mask = np.zeros((height, width), bool)
    for rows, columns in parts:
        mask[slice(*rows), slice(*columns)] = True
    return mask


def test_a_square_is_clicked_in_its_middle():
    target = frame(7, 9, ((1, 6), (1, 6)))
    assert clicked(target, target & False) == (3, 3, True)


def test_the_larger_circle_wins_over_the_larger_area():
    target = frame(12, 24, ((1, 2), (2, 20)), ((6, 9), (5, 8)))
    assert clicked(target, target & False) == (7, 6, True)


def test_a_tie_is_negative():
    target, mask = frame(9, 20, ((2, 5), (2, 5))), frame(9, 20, ((2, 5), (10, 13)))
    assert clicked(target, mask) == (3, 11, False)


def test_the_frame_is_a_border():
    # In the corner the same square would be deeper if the frame were none.
    target = frame(9, 20, ((0, 3), (0, 3)), ((4, 9), (12, 17)))
    assert clicked(target, target & False) == (6, 14, True)


def slow(target, mask, before, ignore):
    """All of the frame, by the words."""
    depths = []
    for error in (target & ~mask & ~ignore, mask & ~target & ~ignore):
        depth = np.rint(ndimage.distance_transform_edt(np.pad(error, 1))[1:-1, 1:-1] ** 2)
        depth[before[:, 0], before[:, 1]] = 0
        depths.append(depth)
    positive = bool(depths[0].max() > depths[1].max())
    depth = depths[0] if positive else depths[1]
    place = np.unravel_index(int(depth.argmax()), depth.shape)
    return (*map(int, place), positive) if depth.any() else None


@given(st.tuples(st.integers(1, 12), st.integers(1, 12)).flatmap(lambda s: arrays(bool, (3, *s))), st.data())
def test_the_box_says_the_same_as_the_frame(three, data):
    target, mask, ignore = three
    if not (target & ~ignore).any():
        return
    places = st.tuples(st.integers(0, target.shape[0] - 1), st.integers(0, target.shape[1] - 1))
    before = np.array(data.draw(st.lists(places, max_size=6)), np.int64).reshape(-1, 2)
    assert clicked(target, mask, before, ignore) == slow(target, mask, before, ignore)


def test_nothing_left_is_said_for_perfect_masks_and_for_clicked_errors():
    target = frame(3, 3, ((1, 2), (1, 2)))
    assert clicked(target, target) is None
    assert clicked(target, target & False, np.array([[1, 1]])) is None
