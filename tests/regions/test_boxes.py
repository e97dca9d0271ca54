import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from hardlook.regions.boxes import Box, box_of

MASKS = arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=9))


@given(MASKS)
def test_the_box_holds_all_and_cannot_be_smaller(mask):
    box = box_of(mask)
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
    box = box_of(mask) or Box(0, 0, *mask.shape)
    grown = box.grown(margin, mask.shape)
    assert (grown.top, grown.left) == (max(0, box.top - margin), max(0, box.left - margin))
    assert grown.bottom - box.bottom == min(margin, mask.shape[0] - box.bottom)
    assert grown.right - box.right == min(margin, mask.shape[1] - box.right)
