import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hardlook.harness.stats import (
    bootstrap_mean,
    bootstrap_score,
    paired_bootstrap,
    paired_bootstrap_scores,
    permutation_test,
    permutation_test_mean,
    ratio,
    resampling,
)
from hardlook.harness.stats.paired import SwapCounts, count_swaps, draw_random_swaps, draw_swaps, is_exact

pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(9, 20)), min_size=2, max_size=12)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def runs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two runs whose intersections rise and fall together over n images of different size."""
    union = rng(1).integers(20, 200, n)
    quality = rng(2).uniform(0.3, 0.9, n)
    better = np.minimum(quality + rng(3).uniform(0, 0.1, n), 1)
    return (
        np.stack([np.round(better * union), union], axis=1),
        np.stack([np.round(quality * union), union], axis=1),
    )


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_difference_agrees_with_scipy(method: str) -> None:
    a, b = runs(50)
    theirs = stats.bootstrap(
        (a[:, 0], b[:, 0], a[:, 1]),
        lambda x, y, u, axis: (x.sum(axis=axis) - y.sum(axis=axis)) / u.sum(axis=axis),
        paired=True,
        n_resamples=20_000,
        method=method,
        random_state=rng(4),
    )
    ours = paired_bootstrap(a, b, ratio, rng=rng(5), resamples=20_000, method=method)
    low, high = theirs.confidence_interval
    assert ours.interval.low == pytest.approx(low, abs=0.1 * theirs.standard_error)
    assert ours.interval.high == pytest.approx(high, abs=0.1 * theirs.standard_error)
    assert ours.value == pytest.approx((a[:, 0].sum() - b[:, 0].sum()) / a[:, 1].sum())


def test_both_runs_see_the_same_resamples() -> None:
    a, b = runs(50)
    paired = paired_bootstrap(a, b, ratio, rng=rng(), resamples=1000)
    apart = [bootstrap_score(run, ratio, rng=rng(), resamples=1000).standard_error for run in (a, b)]
    assert paired.standard_error < 0.3 * np.hypot(*apart)
    same = paired_bootstrap(a, a, ratio, rng=rng(), resamples=1000, method="percentile")
    assert (same.value, same.interval.low, same.interval.high, same.standard_error) == (0, 0, 0, 0)


def test_difference_of_means_is_the_mean_difference() -> None:
    a, b = rng(6).random(30), rng(7).random(30)
    ones = np.ones(30)
    ours = paired_bootstrap(np.stack([a, ones], axis=1), np.stack([b, ones], axis=1), ratio, rng=rng(), resamples=500)
    direct = bootstrap_mean(a - b, rng=rng(), resamples=500)
    assert ours.interval.low == pytest.approx(direct.interval.low, abs=1e-12)
    assert ours.interval.high == pytest.approx(direct.interval.high, abs=1e-12)


@given(pairs)
@settings(max_examples=40, deadline=None)
def test_swapping_the_runs_mirrors_the_interval(rows: list[tuple[int, int, int]]) -> None:
    a, b = [(x, u) for x, _, u in rows], [(y, u) for _, y, u in rows]
    forward = paired_bootstrap(a, b, ratio, rng=rng(), resamples=80, range=(-50, 50))
    backward = paired_bootstrap(b, a, ratio, rng=rng(), resamples=80, range=(-50, 50))
    assert backward.value == -forward.value
    assert backward.interval.low == pytest.approx(-forward.interval.high, abs=1e-12)
    assert backward.interval.high == pytest.approx(-forward.interval.low, abs=1e-12)


def test_clusters_and_strata_reach_the_bootstrap() -> None:
    a, b = runs(12)
    estimate = paired_bootstrap(
        a, b, ratio, rng=rng(), resamples=50, clusters=np.arange(12) // 2, strata=np.arange(12) // 6
    )
    assert (estimate.interval.n, estimate.interval.resampled) == (6, "cluster within stratum")


def test_several_differences() -> None:
    a, b = runs(10)
    both = paired_bootstrap_scores(a, b, lambda totals: totals, rng=rng(), resamples=50)
    assert [estimate.value for estimate in both] == [a[:, 0].sum() - b[:, 0].sum(), 0.0]
    with pytest.raises(ValueError, match="expected one score, got 2; use paired_bootstrap_scores"):
        paired_bootstrap(a, b, lambda totals: totals, rng=rng(), resamples=50)


def test_runs_on_different_units_are_refused() -> None:
    a, b = runs(10)
    with pytest.raises(ValueError, match=r"sums of A have shape \(10, 2\) and sums of B \(9, 2\)"):
        paired_bootstrap(a, b[:9], ratio, rng=rng())


permutation_pairs = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(9, 12)), min_size=1, max_size=7
)


def mean_difference(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.mean(a, axis=axis) - np.mean(b, axis=axis)


@pytest.mark.parametrize("n", [2, 5, 10, 12])
def test_exact_mean_test_agrees_with_scipy(n: int) -> None:
    a, b = rng(n).normal(0.4, 1, n), rng(n + 100).normal(0, 1, n)
    theirs = stats.permutation_test((a, b), mean_difference, permutation_type="samples", n_resamples=np.inf)
    ours = permutation_test_mean(a, b, rng=rng())
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-12)
    assert ours.difference == pytest.approx(theirs.statistic, rel=1e-12)
    assert (ours.exact, ours.swaps, ours.n) == (True, 2**n, n)


def test_sampled_mean_test_agrees_with_the_exact_one() -> None:
    # Sixteen units are beyond our enumeration, but scipy can still enumerate all 65,536 swaps.
    a, b = rng(1).normal(0.5, 1, 16), rng(2).normal(0, 1, 16)
    theirs = stats.permutation_test((a, b), mean_difference, permutation_type="samples", n_resamples=np.inf)
    ours = permutation_test_mean(a, b, rng=rng(), swaps=20_000)
    assert not ours.exact
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=0.015)


@given(st.lists(st.tuples(*[st.integers(0, 9), st.integers(9, 12)] * 2), min_size=1, max_size=7))
@settings(max_examples=50, deadline=None)
def test_ratio_test_agrees_with_exact_fractions(rows: list[tuple[int, int, int, int]]) -> None:
    def difference(flips: tuple[int, ...]) -> Fraction:
        inter, union = [0, 0], [0, 0]
        for (x, x_union, y, y_union), flip in zip(rows, flips, strict=True):
            inter[flip] += x
            union[flip] += x_union
            inter[1 - flip] += y
            union[1 - flip] += y_union
        return abs(Fraction(inter[0], union[0]) - Fraction(inter[1], union[1]))

    differences = [difference(flips) for flips in product((0, 1), repeat=len(rows))]
    expected = Fraction(sum(d >= differences[0] for d in differences), len(differences))
    a, b = np.array(rows)[:, :2], np.array(rows)[:, 2:]
    assert permutation_test(a, b, ratio, rng=rng()).p_value == float(expected)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=7))
@settings(max_examples=50, deadline=None)
def test_differences_that_are_equal_but_for_rounding_are_ties(rows: list[tuple[int, int]]) -> None:
    # Tenths are not exact in floats: 0.1 + 0.2 exceeds 0.3. The whole numbers behind them tie exactly.
    gains = [x - y for x, y in rows]
    flips = product((1, -1), repeat=len(rows))
    flipped = [abs(sum(s * g for s, g in zip(signs, gains, strict=True))) for signs in flips]
    expected = sum(total >= abs(sum(gains)) for total in flipped) / len(flipped)
    a, b = np.array(rows).T / 10
    assert permutation_test_mean(a, b, rng=rng()).p_value == expected


def test_one_unit_never_shows_a_difference() -> None:
    assert permutation_test_mean([5.0], [1.0], rng=rng()).p_value == 1.0


def test_whole_clusters_are_swapped() -> None:
    a, b = np.ones(20), np.zeros(20)
    clusters = np.arange(20) // 10
    test = permutation_test_mean(a, b, rng=rng(), clusters=clusters)
    # Two clusters have four swaps, of which two reach the observed difference.
    assert (test.p_value, test.n, test.swapped) == (0.5, 2, "cluster")
    named = permutation_test_mean(a, b, rng=rng(), clusters=clusters, swapped="image")
    assert named.swapped == "image"


def test_mean_test_is_the_sums_test_of_a_mean() -> None:
    a, b, ones = rng(3).random(12), rng(4).random(12), np.ones(12)
    by_sums = permutation_test(np.stack([a, ones], axis=1), np.stack([b, ones], axis=1), ratio, rng=rng())
    by_values = permutation_test_mean(a, b, rng=rng())
    assert by_values.p_value == by_sums.p_value
    assert by_values.difference == pytest.approx(by_sums.difference, rel=1e-12)


@given(permutation_pairs, st.sampled_from([None, 3]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_swapping_the_runs_keeps_p(rows: list[tuple[int, int, int]], repeat: int | None, clustered: bool) -> None:
    rows = rows * (repeat or 1)
    a, b = [(x, u) for x, _, u in rows], [(y, u) for _, y, u in rows]
    labels = [f"{i // 2}" for i in range(len(rows))] if clustered else None
    forward = permutation_test(a, b, ratio, rng=rng(), clusters=labels, swaps=200)
    backward = permutation_test(b, a, ratio, rng=rng(), clusters=labels, swaps=200)
    assert forward.p_value == backward.p_value
    assert 0 < forward.p_value <= 1
    assert forward.difference == -backward.difference


@given(st.permutations(range(20)))
@settings(max_examples=20, deadline=None)
def test_row_order_changes_nothing(order: list[int]) -> None:
    a, b = rng(5).random(20), rng(6).random(20)
    labels = np.array([f"image{i:02}" for i in range(20)])
    plain = permutation_test_mean(a, b, rng=rng(), clusters=labels, swaps=100)
    assert permutation_test_mean(a[order], b[order], rng=rng(), clusters=labels[order], swaps=100) == plain


@pytest.mark.parametrize("cells", [1, 64, 500])
def test_block_size_changes_nothing(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    union = rng(7).integers(9, 20, 20)
    a, b = (np.stack([rng(seed).integers(0, 9, 20), union], axis=1) for seed in (8, 9))
    plain = permutation_test(a, b, ratio, rng=rng(), swaps=150)
    monkeypatch.setattr(resampling, "BLOCK_CELLS", cells)
    monkeypatch.setattr(resampling, "MIN_ROWS", 1)
    assert permutation_test(a, b, ratio, rng=rng(), swaps=150) == plain


def test_equal_runs_have_p_one() -> None:
    values = rng(9).random(30)
    assert permutation_test_mean(values, values, rng=rng(), swaps=99).p_value == 1.0


def test_smallest_sampled_p_counts_the_data_itself() -> None:
    # No random swap of 40 clear wins reaches the observed difference: p = (0 + 1) / (99 + 1).
    test = permutation_test_mean(np.ones(40), np.zeros(40), rng=rng(), swaps=99)
    assert (test.p_value, test.swaps) == (0.01, 99)


def test_no_units_have_no_p() -> None:
    test = permutation_test_mean([], [], rng=rng())
    assert math.isnan(test.p_value) and math.isnan(test.difference)
    undefined = permutation_test([[0, 0]], [[0, 0]], ratio, rng=rng())
    assert math.isnan(undefined.p_value)
    # Nothing is swapped where the difference itself is undefined.
    for one, n in ((test, 0), (undefined, 1)):
        assert (one.n, one.swaps, one.undefined, one.exact, one.swapped) == (n, 0, 0, True, "unit")


def test_undefined_swaps_are_counted_against_significance() -> None:
    # Each run has one unit with a union; swapping one unit only leaves the other run with none.
    test = permutation_test([[1, 2], [0, 0]], [[0, 0], [0, 2]], ratio, rng=rng())
    assert (test.undefined, test.swaps) == (2, 4)
    assert (test.difference, test.p_value) == (0.5, 1.0)


def test_wrong_calls_say_what_was_expected() -> None:
    with pytest.raises(ValueError, match="A has 2 values and B 1"):
        permutation_test_mean([1, 2], [1], rng=rng())
    with pytest.raises(ValueError, match="values of B: 1 of 2 values are NaN"):
        permutation_test_mean([1, 2], [1, math.nan], rng=rng())
    with pytest.raises(ValueError, match="expected one score, got 2; test them one by one"):
        permutation_test([[1, 2]], [[1, 2]], lambda totals: totals, rng=rng())
    with pytest.raises(ValueError, match="swaps: expected at least 1, got 0"):
        permutation_test_mean([1, 2], [1, 2], rng=rng(), swaps=0)


def test_type_one_error_is_near_alpha() -> None:
    # 1,000 comparisons of equal models; the share of false claims has a standard error of 0.007.
    simulate = rng(10)
    claims = 0
    for _ in range(1000):
        shared = simulate.normal(size=25)
        a, b = (shared + simulate.exponential(size=25) for _ in range(2))
        claims += permutation_test_mean(a, b, rng=simulate, swaps=199).p_value <= 0.05
    assert 0.03 <= claims / 1000 <= 0.07


def test_a_clear_difference_is_found() -> None:
    simulate = rng(11)
    a, b = simulate.normal(0.6, 0.1, 50), simulate.normal(0.5, 0.1, 50)
    assert permutation_test_mean(a, b, rng=rng(), swaps=999).p_value <= 0.01


def test_several_scores_count_as_each_alone() -> None:
    rng = np.random.default_rng(0)
    gains = rng.normal(0.3, 1, (9, 3))
    counts = SwapCounts(gains.sum(0), np.abs(gains).sum(0))
    for mask in draw_swaps(9, 1, rng):
        counts.add(gains.sum(0) - 2 * mask @ gains)
    for column, found in enumerate(counts.p_values(exact=True)):
        alone = permutation_test_mean(gains[:, column], np.zeros(9), rng=rng)
        assert found == alone.p_value


def test_every_swap_of_few_clusters_and_random_ones_of_many() -> None:
    rng = np.random.default_rng(0)
    (block,) = draw_swaps(3, 50, rng)
    assert len({tuple(row) for row in block}) == 8 == count_swaps(3, 50)
    many = np.concatenate(list(draw_swaps(20, 50, rng)))
    assert many.shape == (50, 20) and count_swaps(20, 50) == 50
    assert (is_exact(14), is_exact(15)) == (True, False)
    with pytest.raises(ValueError, match="swaps: expected at least 1, got 0"):
        draw_swaps(3, 0, rng)


def test_random_swaps_are_fair_and_do_not_depend_on_blocks() -> None:
    whole = np.concatenate(list(draw_random_swaps(30, 400, np.random.default_rng(1))))
    assert set(np.unique(whole)) == {0.0, 1.0}
    # 12,000 fair coins: the mean has a standard error of 0.0046.
    assert abs(whole.mean() - 0.5) < 0.02
    assert np.array_equal(whole[:7], np.concatenate(list(draw_random_swaps(30, 7, np.random.default_rng(1)))))


def test_no_swap_tried_gives_one_and_undefined_differences_give_nothing() -> None:
    counts = SwapCounts(np.array([0.1, np.nan, np.inf]), np.array([1.0, np.nan, np.inf]))
    assert np.array_equal(counts.p_values(exact=False), [1.0, np.nan, np.nan], equal_nan=True)
