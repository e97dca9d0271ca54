import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.stats import Interval, t_interval

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
