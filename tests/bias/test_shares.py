import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from hardlook.bias.shares import share_of, share_of_masks


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_scipys_wilson_interval(counts):
    having, images = counts
    ours, theirs = share_of(having, images), binomtest(having, images).proportion_ci(method="wilson")
    assert ours.value == having / images
    assert (ours.interval.low, ours.interval.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_no_image_has_no_share_and_impossible_counts_are_refused():
    assert math.isnan(share_of(0, 0).value) and not share_of(0, 0).interval.defined
    with pytest.raises(ValueError, match="from 0 to 3"):
        share_of(4, 3)


def test_masks_are_counted_and_their_images_resampled():
    share = share_of_masks([1, 3, 2, 2], [True, False, True, False], rng=np.random.default_rng(0))
    assert share.value == 3 / 8 and share.interval.n == 4
    assert share.interval.low < 3 / 8 < share.interval.high
