import math

import numpy as np
import pytest

from hardlook.stats.bounds import acceleration, bca_bounds, percentile_bounds

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
