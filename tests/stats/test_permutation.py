import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hardlook.stats import permutation_test, permutation_test_mean, ratio, resampling

pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(9, 12)), min_size=1, max_size=7)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


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


@given(pairs, st.sampled_from([None, 3]), st.booleans())
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
    monkeypatch.setattr(resampling, "LEAST_ROWS", 1)
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
