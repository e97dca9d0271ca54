import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.harness.stats import Interval, t_interval
from hardlook.harness.stats.intervals import (
    acceleration,
    bca_bounds,
    make_resampling_plan,
    percentile_bounds,
    summarise,
)

ONE_STRATUM = np.array([4])


def test_percentile_bounds_interpolate() -> None:
    # Positions 0.25 * 3 and 0.75 * 3 of the sorted values 0, 4, 8, 12.
    assert percentile_bounds(np.array([12.0, 0.0, 8.0, 4.0]), 0.5) == (3.0, 9.0)


def test_no_replicates_no_bounds() -> None:
    assert all(math.isnan(bound) for bound in percentile_bounds(np.array([]), 0.95))
    assert all(math.isnan(bound) for bound in bca_bounds(np.array([]), 1.0, np.ones(4), ONE_STRATUM, 0.95))


def test_acceleration_by_hand() -> None:
    # Deviations from the mean 2 are 2, 1, -3 (as mean - value), times 2/3: the factor cancels.
    assert acceleration(np.array([0.0, 1.0, 5.0]), np.array([3])) == pytest.approx((8 + 1 - 27) / 6 / 14**1.5)


def test_acceleration_with_strata_by_hand() -> None:
    # Stratum one: deviations 1, -1 times 1/2. Stratum two: 2, 1, -3 times 2/3. The lone cluster has no part.
    jackknife = np.array([9.0, 11.0, math.nan, 0.0, 1.0, 5.0])
    cubes = 0.125 - 0.125 + (8 + 1 - 27) * 8 / 27
    squares = 0.25 + 0.25 + 14 * 4 / 9
    expected = cubes / 6 / squares**1.5
    assert acceleration(jackknife, np.array([2, 1, 3])) == pytest.approx(expected)


def test_constant_score_has_an_interval_of_width_zero() -> None:
    bounds = bca_bounds(np.full(100, 0.5), 0.5, np.full(4, 0.5), ONE_STRATUM, 0.95)
    assert bounds == (0.5, 0.5)


@pytest.mark.parametrize(
    ("value", "jackknife"),
    [(200.0, np.arange(4.0)), (50.0, np.array([1.0, math.nan, 2.0, 3.0])), (math.nan, np.arange(4.0))],
    ids=["all replicates below", "undefined without a cluster", "undefined score"],
)
def test_bca_does_not_exist(value: float, jackknife: np.ndarray) -> None:
    bounds = bca_bounds(np.arange(101.0), value, jackknife, ONE_STRATUM, 0.95)
    assert all(math.isnan(bound) for bound in bounds)


def test_bias_moves_both_bounds_up() -> None:
    replicates = np.arange(1001.0)
    jackknife = np.array([1.0, 2.0, 3.0, 4.0])
    low, high = bca_bounds(replicates, 600.0, jackknife, ONE_STRATUM, 0.9)
    # 60% lie below: z0 = 0.2533, so the quantiles are at Phi(2 * 0.2533 -+ 1.6449) = 0.1275 and 0.9843.
    assert (low, high) == pytest.approx((127.5, 984.3), abs=0.6)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_summary_by_hand() -> None:
    plan = make_resampling_plan(5, rng=rng(), level=0.5, resampled="image")
    replicates = np.array([[1.0, math.nan], [2.0, math.inf], [4.0, 7.0], [5.0, math.nan]])
    first, second = summarise(plan, np.array([3.0, 7.0]), replicates, None)
    # Squared deviations from 3 are 4, 1, 1, 4: their sum over n - 1 is 10 / 3.
    assert first.standard_error == pytest.approx(math.sqrt(10 / 3))
    assert (first.value, first.interval.low, first.interval.high) == (3.0, 1.75, 4.25)
    assert (first.interval.n, first.interval.resampled) == (5, "image")
    assert (first.undefined, first.resamples) == (0, 4)
    assert (second.undefined, second.resamples) == (3, 4)
    # Undefined in 3 of 4 resamples, more than the half that this level leaves out: no interval.
    assert math.isnan(second.interval.low) and math.isnan(second.interval.high)
    (rare,) = summarise(plan, np.array([7.0]), replicates[[2, 2, 0, 0], 1:], None)
    assert (rare.undefined, rare.interval.low, rare.interval.high) == (2, 7.0, 7.0)
    assert math.isnan(second.standard_error)


def test_defaults() -> None:
    plan = make_resampling_plan(3, rng=rng())
    assert (plan.resamples, plan.level, plan.method, plan.resampled) == (10_000, 0.95, "jackknife", "unit")


@pytest.mark.parametrize(
    ("labels", "word"),
    [
        ({"clusters": "aab"}, "cluster"),
        ({"strata": "aab"}, "unit within stratum"),
        ({"clusters": "aab", "strata": "xxy"}, "cluster within stratum"),
        ({"clusters": "aab", "resampled": "image"}, "image"),
    ],
)
def test_the_interval_names_what_was_drawn(labels: dict[str, str], word: str) -> None:
    assert make_resampling_plan(3, rng=rng(), **labels).resampled == word


def test_no_resamples_where_nothing_varies() -> None:
    assert make_resampling_plan(3, rng=rng(), clusters="aaa").resamples == 0
    assert make_resampling_plan(1, rng=rng()).resamples == 0


values = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


def test_four_folds_by_hand() -> None:
    interval = t_interval([40, 60, 80, 20], level=0.95, resampled="fold")
    # sd = 25.819889, sem = 12.909944, t(0.975, 3) = 3.182446
    assert interval.low == pytest.approx(50 - 41.085205, abs=1e-6)
    assert interval.high == pytest.approx(50 + 41.085205, abs=1e-6)
    assert (interval.method, interval.n, interval.resampled, interval.level) == ("t", 4, "fold", 0.95)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_agrees_with_scipy(level: float) -> None:
    from scipy import stats

    sample = np.random.default_rng(1).normal(3, 2, size=17)
    expected = stats.t.interval(level, len(sample) - 1, loc=sample.mean(), scale=stats.sem(sample))
    interval = t_interval(sample, level)
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("sample", [[], [0.5]])
def test_fewer_than_two_values_have_no_interval(sample: list[float]) -> None:
    interval = t_interval(sample)
    assert math.isnan(interval.low) and math.isnan(interval.high)
    assert not interval.defined
    assert interval.n == len(sample)
    assert 0.5 not in interval


def test_equal_values_have_width_zero() -> None:
    interval = t_interval([0.25, 0.25, 0.25])
    assert (interval.low, interval.high) == (0.25, 0.25)


def test_nan_is_refused_and_counted() -> None:
    with pytest.raises(ValueError, match="values: 2 of 4 values are NaN or infinite"):
        t_interval([1.0, math.nan, 2.0, math.inf])


def test_wrong_shape_and_level_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected shape \(n,\), got \(2, 2\)"):
        t_interval(np.ones((2, 2)))
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1, got 95"):
        t_interval([1, 2], level=95)


@given(values, st.floats(-100, 100), st.floats(0.01, 100))
def test_moves_and_scales_with_the_values(sample: list[float], shift: float, scale: float) -> None:
    plain = t_interval(sample)
    moved = t_interval(np.array(sample) * scale + shift)
    size = 1 + max(map(abs, sample)) * scale + abs(shift)
    assert moved.low == pytest.approx(plain.low * scale + shift, abs=1e-9 * size)
    assert moved.high == pytest.approx(plain.high * scale + shift, abs=1e-9 * size)


def test_an_interval_holds_its_bounds() -> None:
    interval = Interval(0.2, 0.4, 0.95, "t", 3, "fold")
    assert 0.2 in interval and 0.4 in interval and 0.41 not in interval
