import math

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from hardlook.harness.stats.agreement import (
    cohen_kappa,
    fleiss_kappa,
    fleiss_kappa_interval,
    krippendorff_alpha,
    krippendorff_alpha_interval,
)

NAN = math.nan

LEVELS = ("nominal", "ordinal", "interval")

# The worked example of Krippendorff (2011), section C: four observers, twelve units, five values.
KRIPPENDORFF_2011 = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]

# The table of Fleiss' kappa that is worked in many textbooks: ten units, fourteen raters, five categories.
FOURTEEN_RATERS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


@st.composite
def tables(draw, least_raters=2):
    raters, units = draw(st.integers(least_raters, 6)), draw(st.integers(2, 12))
    values = st.one_of(st.integers(1, 5).map(float), st.just(NAN))
    rows = draw(st.lists(st.lists(values, min_size=units, max_size=units), min_size=raters, max_size=raters))
    return np.array(rows)


def rateable(table):
    """The values of units that two raters rated at least."""
    return table[:, (~np.isnan(table)).sum(axis=0) > 1]


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(level, published):
    assert krippendorff_alpha(KRIPPENDORFF_2011, level) == pytest.approx(published, abs=0.0006)


@given(tables(), st.sampled_from(LEVELS))
def test_alpha_equals_the_package_of_that_name(table, level):
    paired = rateable(table)
    assume(len(np.unique(paired[~np.isnan(paired)])) > 1)
    theirs = krippendorff.alpha(reliability_data=paired, level_of_measurement=level)
    assert krippendorff_alpha(table, level) == pytest.approx(theirs, abs=1e-10)


@given(tables(), st.sampled_from(LEVELS), st.randoms(use_true_random=False))
def test_the_order_of_raters_and_units_has_no_effect(table, level, random):
    raters, units = list(range(len(table))), list(range(table.shape[1]))
    random.shuffle(raters)
    random.shuffle(units)
    shuffled = krippendorff_alpha(table[raters][:, units], level)
    assert shuffled == pytest.approx(krippendorff_alpha(table, level), abs=1e-10, nan_ok=True)


@given(tables(), st.sampled_from(LEVELS))
def test_a_rater_who_rates_nothing_changes_nothing(table, level):
    wider = np.vstack([table, np.full(table.shape[1], NAN)])
    assert krippendorff_alpha(wider, level) == pytest.approx(krippendorff_alpha(table, level), abs=1e-10, nan_ok=True)


@given(tables(), st.integers(1, 9), st.integers(-5, 5))
def test_interval_alpha_does_not_know_the_unit_of_measure(table, factor, offset):
    moved = krippendorff_alpha(table * factor + offset, "interval")
    assert moved == pytest.approx(krippendorff_alpha(table, "interval"), abs=1e-9, nan_ok=True)


@given(tables())
def test_ordinal_alpha_knows_only_the_order(table):
    assert krippendorff_alpha(table**3, "ordinal") == pytest.approx(
        krippendorff_alpha(table, "ordinal"), abs=1e-10, nan_ok=True
    )


@given(st.lists(st.integers(1, 10), min_size=2, max_size=20), st.integers(2, 5), st.sampled_from(LEVELS))
def test_full_agreement_is_one_and_has_no_spread(values, raters, level):
    table = np.tile(values, (raters, 1))
    alpha = krippendorff_alpha(table, level)
    if len(set(values)) == 1:
        assert math.isnan(alpha)
    else:
        assert alpha == pytest.approx(1.0)
        assert cohen_kappa(values, values) == pytest.approx(1.0)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("table", [[[1, 2, NAN], [NAN, NAN, 3]], [[4, 4], [4, 4]], [[1, 2, 3]], np.zeros((0, 0))])
def test_alpha_without_anything_to_disagree_on_is_undefined(table, level):
    assert math.isnan(krippendorff_alpha(table, level))
    estimate = krippendorff_alpha_interval(table, level, rng=np.random.default_rng(0), resamples=50)
    assert math.isnan(estimate.value)
    assert not estimate.interval.defined


def test_fleiss_kappa_of_the_textbook():
    assert fleiss_kappa(FOURTEEN_RATERS) == pytest.approx(0.210, abs=0.0005)


@given(st.integers(2, 6), st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=10))
def test_fleiss_kappa_equals_a_literal_count(raters, chosen):
    table = np.array([np.bincount(row[:raters], minlength=4) for row in chosen])
    pairs = [(i, j) for i in range(raters) for j in range(raters) if i != j]
    observed = np.mean([np.mean([row[i] == row[j] for i, j in pairs]) for row in chosen])
    flat = [value for row in chosen for value in row[:raters]]
    chance = sum((flat.count(value) / len(flat)) ** 2 for value in set(flat))
    if chance == 1:
        assert math.isnan(fleiss_kappa(table))
    else:
        assert fleiss_kappa(table) == pytest.approx((observed - chance) / (1 - chance), abs=1e-10)


def test_fleiss_kappa_leaves_out_units_with_one_rating():
    assert fleiss_kappa([[2, 1], [1, 2], [1, 0], [0, 0]]) == fleiss_kappa([[2, 1], [1, 2]])
    assert math.isnan(fleiss_kappa([[1, 0], [0, 1]]))


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=30),
    st.sampled_from(["none", "linear", "quadratic"]),
)
def test_cohen_kappa_equals_scikit_learn(pairs, weights):
    a, b = zip(*pairs, strict=True)
    assume(len({*a, *b}) > 1)
    theirs = cohen_kappa_score(a, b, weights=None if weights == "none" else weights)
    assert cohen_kappa(a, b, weights) == pytest.approx(theirs, abs=1e-10, nan_ok=True)
    assert cohen_kappa(b, a, weights) == pytest.approx(theirs, abs=1e-10, nan_ok=True)


def test_the_interval_holds_what_a_large_crowd_shows():
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 11, 4000)

    def crowd(units):
        return np.clip(truth[units] + rng.integers(-2, 3, (6, len(units))), 1, 10).astype(float)

    large = krippendorff_alpha(crowd(np.arange(4000)), "interval")
    held = 0
    for _ in range(40):
        part = crowd(rng.choice(4000, 60, replace=False))
        held += large in krippendorff_alpha_interval(part, "interval", rng=rng, resamples=400).interval
    # 95 % intervals of 60 units: 40 draws hold the truth 30 times at least, by any luck that is not a fault.
    assert held >= 30


def test_the_interval_of_each_coefficient_is_around_its_value():
    rng = np.random.default_rng(0)
    a = rng.integers(1, 4, 80)
    b = np.where(rng.random(80) < 0.7, a, rng.integers(1, 4, 80))
    counts = np.stack([(a == value).astype(int) + (b == value) for value in (1, 2, 3)], axis=1)
    for estimate, value in (
        (fleiss_kappa_interval(counts, rng=rng, resamples=500), fleiss_kappa(counts)),
        (krippendorff_alpha_interval([a, b], "nominal", rng=rng, resamples=500), krippendorff_alpha([a, b])),
    ):
        assert estimate.value == value
        assert estimate.interval.low < value < estimate.interval.high
        assert estimate.interval.n == 80


def test_clusters_of_units_are_drawn_together():
    table = np.tile([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 4.0]], 10)
    alone = krippendorff_alpha_interval(table, "interval", rng=np.random.default_rng(0), resamples=500)
    pictures = np.repeat(range(5), 8)
    together = krippendorff_alpha_interval(
        table, "interval", rng=np.random.default_rng(0), resamples=500, clusters=pictures
    )
    # Every cluster is the same, so resampling them changes nearly nothing.
    assert together.standard_error < alone.standard_error / 5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: krippendorff_alpha([1, 2]), r"ratings: expected shape \(raters, units\), got \(2,\)"),
        (lambda: krippendorff_alpha([[1, math.inf]]), "1 of 2 are infinite"),
        (lambda: krippendorff_alpha([[1, 2]], "ratio"), "level: expected one of nominal, ordinal, interval"),
        (lambda: fleiss_kappa([[1, -1]]), "whole numbers from 0"),
        (lambda: fleiss_kappa([[0.5, 1]]), "whole numbers from 0"),
        (lambda: cohen_kappa([1, 2], [1, NAN]), "1 of 4 values are NaN"),
        (lambda: cohen_kappa([1, 2], [1, 2], "cubic"), "weights: expected one of"),
        (lambda: cohen_kappa([1, 2], [1]), "a has 2 values and b 1"),
    ],
)
def test_refusals_say_what_was_expected(call, words):
    with pytest.raises(ValueError, match=words):
        call()
