import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array, csc_matrix, csr_array, csr_matrix, lil_array

from hardlook.harness.stats import bootstrap_score, bootstrap_scores, ratio

KINDS = [csr_array, csc_array, csr_matrix, csc_matrix, coo_array, lil_array]

tables = st.tuples(st.integers(0, 2**32 - 1), st.integers(2, 25), st.integers(1, 6), st.floats(0, 1))


def rng(seed=0):
    return np.random.default_rng(seed)


def table(seed, units, classes, filled):
    draw = rng(seed)
    sums = draw.integers(0, 90, (units, 2 * classes))
    return np.where(draw.random(sums.shape) < filled, sums, 0)


def ious(totals):
    return totals[..., ::2] / totals[..., 1::2]


def numbers(estimates):
    return np.array(
        [(e.value, e.interval.low, e.interval.high, e.standard_error, e.undefined, e.interval.n) for e in estimates]
    )


@given(tables, st.sampled_from(KINDS), st.sampled_from(["percentile", "bca"]), st.booleans(), st.booleans())
@settings(max_examples=60)
def test_whole_numbers_are_bit_equal_to_dense_sums(shape, kind, method, grouped, stratified):
    sums = table(*shape)
    units = len(sums)
    options = {
        "method": method,
        "clusters": [f"image{i % 7}" for i in range(units)] if grouped else None,
        "strata": [i % 7 > 3 for i in range(units)] if stratified else None,
        "resamples": 40,
    }
    dense = bootstrap_scores(sums, ious, rng=rng(3), **options)
    sparse = bootstrap_scores(kind(sums), ious, rng=rng(3), **options)
    assert np.array_equal(numbers(dense), numbers(sparse), equal_nan=True)


def test_reals_are_equal_within_rounding():
    sums = table(1, 60, 5, 0.3) / 7
    labels = np.arange(60) % 11
    dense = bootstrap_scores(sums, ious, rng=rng(), resamples=200, clusters=labels)
    sparse = bootstrap_scores(csr_array(sums), ious, rng=rng(), resamples=200, clusters=labels)
    assert numbers(sparse) == pytest.approx(numbers(dense), rel=1e-12)


@given(st.permutations(range(14)))
def test_row_order_changes_no_bit(order):
    sums = rng(2).normal(size=(14, 4)) * 10.0 ** np.arange(14)[:, None]
    sums[::3, 1] = 0
    labels = np.arange(14) % 3
    plain = bootstrap_scores(csr_array(sums), lambda t: t, rng=rng(), resamples=30, clusters=labels)
    moved = bootstrap_scores(csr_array(sums[order]), lambda t: t, rng=rng(), resamples=30, clusters=labels[order])
    assert np.array_equal(numbers(plain), numbers(moved))


def test_entries_given_twice_add_up():
    # A csr array may name one cell several times; its value is the sum.
    twice = csr_array((np.array([1.0, 2.0, 4.0, 4.0]), np.array([0, 0, 1, 1]), np.array([0, 3, 4])), shape=(2, 2))
    assert bootstrap_score(twice, ratio, rng=rng(), resamples=5).value == 3 / 8


def test_one_score_and_no_unit():
    assert bootstrap_score(csr_array([[3, 4], [0, 2]]), ratio, rng=rng(), resamples=9).value == 0.5
    nothing = bootstrap_score(csr_array((0, 2)), ratio, rng=rng())
    assert math.isnan(nothing.value) and not nothing.interval.defined


def test_what_is_not_finite_is_counted():
    with pytest.raises(ValueError, match="sums: 2 of 6 values are NaN or infinite; leave those units out"):
        bootstrap_scores(csr_array([[math.nan, 0], [1, math.inf], [0, 0]]), ious, rng=rng())
