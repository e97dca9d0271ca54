import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hardlook.stats import bootstrap_mean, bootstrap_score, paired_bootstrap, paired_bootstrap_scores, ratio

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
    same = paired_bootstrap(a, a, ratio, rng=rng(), resamples=1000)
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
    forward = paired_bootstrap(a, b, ratio, rng=rng(), resamples=80)
    backward = paired_bootstrap(b, a, ratio, rng=rng(), resamples=80)
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
