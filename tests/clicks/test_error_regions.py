import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import jaccard_score

from hardlook.clicks.error_regions import Truth, compare

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
            Truth.of(target, ignore)
        return
    found = compare(Truth.of(target, ignore), mask)
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
    found = compare(Truth.of(target, ignore), mask)
    for region in (found.missing, found.surplus):
        if region is not None:
            rows, columns = np.nonzero(in_frame(region, mask.shape))
            assert region.box.top == max(rows.min() - 1, 0)
            assert region.box.left == max(columns.min() - 1, 0)
            assert region.box.bottom == min(rows.max() + 2, mask.shape[0])
            assert region.box.right == min(columns.max() + 2, mask.shape[1])


def test_a_perfect_mask_has_no_errors():
    target = np.eye(4, dtype=bool)
    found = compare(Truth.of(target, ~target), np.ones((4, 4), bool))
    assert (found.missing, found.surplus, found.intersection, found.union) == (None, None, 4, 4)
