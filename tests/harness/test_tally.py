import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.harness.stats.bootstrap import ratio
from hardlook.harness.tally import Entry, SoftTally, SumTally

SHARES = st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.7])


def tally(sums, kind=SoftTally):
    return kind((Entry("share", len(sums)),), sums, ratio, ("test",), "image")


@given(arrays(np.float64, (12, 1), elements=SHARES), st.lists(st.booleans(), min_size=12, max_size=12))
def test_what_is_swapped_away_leaves_nothing_behind(shares, kept):
    ours = np.hstack([shares / 2, shares])
    theirs = np.where(np.array(kept)[:, None], ours, 0)
    (value,) = tally(ours).mixed(tally(theirs), np.ones((1, 12)))[0]
    assert np.isnan(value) == (not theirs.any())
    assert np.isnan(value) or value == pytest.approx(0.5)


@given(arrays(np.int64, (9, 2), elements=st.integers(0, 99)), arrays(np.int64, (9, 2), elements=st.integers(0, 99)))
def test_whole_numbers_are_mixed_as_ever(ours, theirs):
    swaps = np.random.default_rng(0).integers(0, 2, (4, 9)).astype(float)
    one, other = (tally(ours, kind).mixed(tally(theirs, kind), swaps) for kind in (SoftTally, SumTally))
    assert np.array_equal(one, other, equal_nan=True)


def test_sums_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match="the same rows and columns"):
        tally(np.ones((3, 2))).mixed(tally(np.ones((4, 2))), np.ones((1, 3)))
