import math

import numpy as np
import pytest
from scipy import stats

from hardlook.stats import bootstrap_indices, bootstrap_mean, spearman


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("strata", [None, [0] * 12 + [1] * 12])
def test_same_resamples_as_the_sums(method: str, strata: list[int] | None) -> None:
    values = rng(1).random(24)
    options = {"clusters": np.arange(24) // 3, "strata": strata, "resamples": 200, "method": method}
    by_sums = bootstrap_mean(values, rng=rng(), **options)
    by_units = bootstrap_indices(24, lambda units: values[units].mean(), rng=rng(), **options)
    assert by_units.value == pytest.approx(by_sums.value, rel=1e-12)
    assert by_units.interval.low == pytest.approx(by_sums.interval.low, rel=1e-9)
    assert by_units.interval.high == pytest.approx(by_sums.interval.high, rel=1e-9)
    assert by_units.standard_error == pytest.approx(by_sums.standard_error, rel=1e-9)


def test_rank_correlation_agrees_with_scipy() -> None:
    x = rng(2).normal(size=40)
    y = x + rng(3).normal(size=40)
    theirs = stats.bootstrap(
        (x, y),
        lambda a, b: stats.spearmanr(a, b).statistic,
        paired=True,
        vectorized=False,
        n_resamples=1000,
        method="percentile",
        random_state=rng(4),
    )
    ours = bootstrap_indices(40, lambda units: spearman(x[units], y[units]), rng=rng(5), resamples=4000)
    low, high = theirs.confidence_interval
    assert ours.interval.low == pytest.approx(low, abs=0.04)
    assert ours.interval.high == pytest.approx(high, abs=0.04)


def test_units_of_a_cluster_come_together() -> None:
    seen: list[np.ndarray] = []

    def record(units: np.ndarray) -> float:
        seen.append(np.bincount(units, minlength=5))
        return 0.0

    bootstrap_indices(5, record, rng=rng(), clusters=["a", "b", "a", "c", "c"], resamples=50)
    assert len(seen) == 51
    for counts in seen:
        assert counts[0] == counts[2] and counts[3] == counts[4]
        assert counts[0] + counts[1] + counts[3] == 3


def test_undefined_resamples_are_counted() -> None:
    # The score needs unit 0, which three draws of three units miss with chance (2/3)**3.
    estimate = bootstrap_indices(3, lambda units: 1.0 if 0 in units else math.nan, rng=rng(), resamples=3000)
    assert estimate.undefined / 3000 == pytest.approx(8 / 27, abs=0.04)
    assert (estimate.interval.low, estimate.interval.high) == (1.0, 1.0)


def test_one_unit_has_no_interval() -> None:
    estimate = bootstrap_indices(1, lambda units: float(len(units)), rng=rng())
    assert estimate.value == 1.0
    assert not estimate.interval.defined
    assert estimate.resamples == 0
