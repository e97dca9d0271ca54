import math

import numpy as np
import pytest
from scipy import stats

from hardlook.stats import detectable_difference, permutation_test_mean, units_needed, units_needed_for


def test_by_hand() -> None:
    # Mean 0.1 and variance 0.06: (1.959964 + 0.841621)**2 * 0.06 / 0.01 = 47.09.
    assert units_needed([0.4, -0.2, 0.1, 0.1]) == 48
    # The textbook 80% at 5%: a difference of one half standard deviation needs 31.4 pairs.
    half = np.array([1.0, -1.0]) * math.sqrt(0.5) + 0.5
    assert units_needed(half) == 32


def test_the_number_gives_the_power() -> None:
    differences = np.random.default_rng(0).normal(0.05, 0.2, 50)
    mean, spread = differences.mean(), differences.std(ddof=1)
    n = int(units_needed(differences, alpha=0.01, power=0.9))

    def power(units: int) -> float:
        return float(stats.norm.cdf(abs(mean) / spread * math.sqrt(units) - stats.norm.ppf(0.995)))

    assert power(n) >= 0.9 > power(n - 1)


def test_simulated_power_is_near_the_plan() -> None:
    # Planned for 80%; 300 comparisons have a standard error of 0.023, and the approximation costs a little.
    n = int(units_needed(np.array([1.0, -1.0]) * math.sqrt(0.5) + 0.5))
    simulate = np.random.default_rng(1)
    found = sum(
        permutation_test_mean(simulate.normal(0.5, 1, n), np.zeros(n), rng=simulate, swaps=199).p_value <= 0.05
        for _ in range(300)
    )
    assert 0.7 <= found / 300 <= 0.88


def test_no_difference_needs_infinitely_many() -> None:
    assert units_needed([1, -1]) == math.inf
    # Zero but for rounding.
    assert units_needed([0.1, 0.2, -0.3]) == math.inf
    assert units_needed([0.0, 0.0]) == math.inf


def test_edges() -> None:
    assert units_needed([0.3, 0.3, 0.3]) == 2
    assert math.isnan(units_needed([0.3]))
    assert math.isnan(units_needed([]))
    assert math.isnan(detectable_difference(0.2, 1))
    assert detectable_difference(0.0, 10) == 0.0


def test_detectable_difference_inverts_units_needed() -> None:
    differences = np.random.default_rng(2).normal(size=40)
    differences = (differences - differences.mean()) / differences.std(ddof=1) + detectable_difference(1.0, 75)
    assert units_needed(differences) == pytest.approx(75, abs=1)


def test_sign_does_not_matter_and_wrong_shares_are_refused() -> None:
    differences = np.array([0.4, -0.2, 0.1, 0.1])
    assert units_needed(-differences) == units_needed(differences)
    with pytest.raises(ValueError, match="alpha: expected a number between 0 and 1, got 5"):
        units_needed(differences, alpha=5)
    with pytest.raises(ValueError, match="power: expected a number between 0 and 1, got 1"):
        units_needed(differences, power=1)
    with pytest.raises(ValueError, match="differences: 1 of 2 values are NaN"):
        units_needed([1, math.nan])
    with pytest.raises(ValueError, match="standard_deviation: expected a finite number from 0, got -1"):
        detectable_difference(-1, 10)


def test_from_a_standard_error_it_is_the_same_number() -> None:
    differences = np.random.default_rng(4).normal(0.1, 0.5, 60)
    error = differences.std(ddof=1) / math.sqrt(60)
    assert units_needed_for(differences.mean(), error, 60) == units_needed(differences)
    assert units_needed_for(-differences.mean(), error, 60) == units_needed(differences)
    assert units_needed_for(0.1, 0.1, 50, alpha=0.01, power=0.9) == math.ceil(
        50 * (stats.norm.ppf(0.995) + stats.norm.ppf(0.9)) ** 2
    )


def test_from_a_standard_error_at_the_edges() -> None:
    assert units_needed_for(0.0, 0.1, 50) == math.inf
    assert units_needed_for(1e-17, 0.1, 50) == math.inf
    assert units_needed_for(0.0, 0.0, 50) == math.inf
    assert units_needed_for(0.3, 0.0, 50) == 2
    assert math.isnan(units_needed_for(0.3, math.nan, 50))
    assert math.isnan(units_needed_for(math.nan, 0.1, 50))
    assert math.isnan(units_needed_for(0.3, 0.1, 1))
