import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from hardlook.harness.stats import (
    Estimate,
    bootstrap_indices,
    bootstrap_mean,
    bootstrap_score,
    bootstrap_scores,
    ratio,
    spearman,
)
from hardlook.harness.stats.bootstrap import group_clusters, leave_each_out, measure_spread


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def bounds(estimate: Estimate) -> tuple[float, float]:
    return estimate.interval.low, estimate.interval.high


def class_ious(totals: np.ndarray) -> np.ndarray:
    return totals[..., :2] / totals[..., 2:]


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_mean_agrees_with_scipy(method: str, level: float) -> None:
    sample = rng(1).exponential(size=60)
    theirs = stats.bootstrap(
        (sample,), np.mean, n_resamples=20_000, method=method, confidence_level=level, random_state=rng(2)
    )
    ours = bootstrap_mean(sample, rng=rng(3), resamples=20_000, level=level, method=method)
    # The Monte Carlo error of such a quantile is about 0.015 standard errors on either side.
    tolerance = 0.1 * theirs.standard_error
    assert bounds(ours) == pytest.approx(tuple(theirs.confidence_interval), abs=tolerance)
    assert ours.standard_error == pytest.approx(theirs.standard_error, rel=0.03)
    assert ours.value == pytest.approx(sample.mean())
    assert (ours.interval.method, ours.interval.level, ours.resamples) == (method, level, 20_000)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_strata_agree_with_scipy_on_two_samples(method: str) -> None:
    first, second = rng(4).exponential(size=30), 5 + rng(5).exponential(2, size=20)

    def pooled_mean(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        # Divided by the fixed total, so that leaving a unit out means the same for both implementations.
        return (a.mean(axis=axis) * 30 + b.mean(axis=axis) * 20) / 50

    def from_sums(totals: np.ndarray) -> np.ndarray:
        return (totals[..., 0] / totals[..., 1] * 30 + totals[..., 2] / totals[..., 3] * 20) / 50

    sums = np.zeros((50, 4))
    sums[:30, 0], sums[:30, 1], sums[30:, 2], sums[30:, 3] = first, 1, second, 1
    theirs = stats.bootstrap((first, second), pooled_mean, n_resamples=20_000, method=method, random_state=rng(6))
    ours = bootstrap_score(sums, from_sums, rng=rng(7), resamples=20_000, method=method, strata=[0] * 30 + [1] * 20)
    tolerance = 0.1 * theirs.standard_error
    assert bounds(ours) == pytest.approx(tuple(theirs.confidence_interval), abs=tolerance)


def test_ratio_of_sums_agrees_with_scipy() -> None:
    union = rng(8).integers(1, 100, 40)
    inter = rng(9).integers(0, union + 1)
    theirs = stats.bootstrap(
        (inter, union),
        lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        n_resamples=20_000,
        method="bca",
        random_state=rng(10),
    )
    ours = bootstrap_score(np.stack([inter, union], axis=1), ratio, rng=rng(11), resamples=20_000, method="bca")
    tolerance = 0.1 * theirs.standard_error
    assert bounds(ours) == pytest.approx(tuple(theirs.confidence_interval), abs=tolerance)


def test_two_units_by_hand() -> None:
    # Resamples of {0, 1} have mean 0, 0.5 or 1 with chances 1/4, 1/2 and 1/4.
    estimate = bootstrap_mean([0, 1], rng=rng(), resamples=4000, level=0.9, method="percentile")
    assert bounds(estimate) == (0.0, 1.0)
    assert estimate.standard_error == pytest.approx(math.sqrt(1 / 8), rel=0.05)
    narrow = bootstrap_mean([0, 1], rng=rng(), resamples=4000, level=0.4, method="percentile")
    assert bounds(narrow) == (0.5, 0.5)


def test_whole_clusters_are_drawn() -> None:
    # Two clusters, one of zeros and one of ones: only three means are possible, however many units there are.
    values, clusters = [0] * 50 + [1] * 50, ["a"] * 50 + ["b"] * 50
    grouped = bootstrap_mean(values, rng=rng(), clusters=clusters, method="percentile")
    single = bootstrap_mean(values, rng=rng(), method="percentile")
    assert bounds(grouped) == (0.0, 1.0)
    assert single.interval.high - single.interval.low < 0.25
    assert (grouped.interval.n, grouped.interval.resampled) == (2, "cluster")
    assert (single.interval.n, single.interval.resampled) == (100, "unit")


def test_strata_hold_what_differs_between_them_fixed() -> None:
    values, folds = [0.0] * 20 + [1.0] * 20, [0] * 20 + [1] * 20
    estimate = bootstrap_mean(values, rng=rng(), strata=folds, method="percentile")
    assert bounds(estimate) == (0.5, 0.5)
    assert estimate.interval.resampled == "unit within stratum"


def test_totals_of_large_integers_are_exact() -> None:
    # The two columns differ by one in every unit, so the difference of the totals is n in every resample.
    large = rng(12).integers(2**40, 2**41, size=200)
    estimate = bootstrap_score(
        np.stack([large + 1, large], axis=1),
        lambda t: t[..., 0] - t[..., 1],
        rng=rng(),
        resamples=500,
        method="percentile",
    )
    assert (estimate.value, *bounds(estimate), estimate.standard_error) == (200.0, 200.0, 200.0, 0.0)
    total = bootstrap_score(large[:, None], lambda t: t[..., 0], rng=rng(), resamples=10)
    assert Fraction(total.value) == sum(map(int, large))


def test_several_scores_share_their_resamples() -> None:
    sums = rng(13).integers(1, 20, (10, 4))
    both = bootstrap_scores(sums, class_ious, rng=rng(1), resamples=300)
    for column, estimate in enumerate(both):
        alone = bootstrap_score(sums, lambda t, c=column: class_ious(t)[..., c], rng=rng(1), resamples=300)
        assert alone == estimate
    with pytest.raises(ValueError, match="expected one score, got 2; use bootstrap_scores"):
        bootstrap_score(sums, class_ious, rng=rng(), resamples=10)


def test_undefined_resamples_are_counted_not_dropped_silently() -> None:
    # The second class appears in one unit of four, and is missing from a resample with chance (3/4)**4.
    sums = np.array([[1, 1, 2, 2], [2, 0, 2, 0], [1, 0, 2, 0], [2, 0, 3, 0]])
    always, rare = bootstrap_scores(sums, class_ious, rng=rng(), resamples=10_000, method="percentile")
    assert always.undefined == 0
    assert rare.undefined / 10_000 == pytest.approx(0.3164, abs=0.02)
    assert rare.value == 0.5 and not rare.interval.defined
    _, rare_bca = bootstrap_scores(sums, class_ious, rng=rng(), resamples=1000, method="bca")
    assert not rare_bca.interval.defined


def test_never_defined_score() -> None:
    estimate = bootstrap_score([[0, 0], [0, 0]], ratio, rng=rng(), resamples=50)
    assert math.isnan(estimate.value) and math.isnan(estimate.standard_error)
    assert not estimate.interval.defined
    assert (estimate.undefined, estimate.resamples) == (50, 50)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize(
    ("sums", "labels"),
    [
        (np.empty((0, 2)), {}),
        ([[1, 2]], {}),
        ([[1, 2], [1, 2]], {"clusters": ["a", "a"]}),
        ([[1, 2], [1, 2]], {"strata": ["a", "b"]}),
    ],
    ids=["no unit", "one unit", "one cluster", "one unit per stratum"],
)
def test_nothing_that_varies_gives_no_interval(sums: object, labels: dict[str, list[str]], method: str) -> None:
    estimate = bootstrap_score(sums, ratio, rng=rng(), method=method, **labels)
    assert not estimate.interval.defined
    assert estimate.resamples == 0
    assert math.isnan(estimate.value) if len(sums) == 0 else estimate.value == 0.5


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_infinite_scores_are_undefined(method: str) -> None:
    # Two draws of the first unit, whose ratio is 1 / 0, have chance 1/4; the other ratios are 1 and 2.
    estimate = bootstrap_score([[1, 0], [1, 1]], ratio, rng=rng(), resamples=4000, method=method)
    assert estimate.undefined / 4000 == pytest.approx(0.25, abs=0.03)
    assert not estimate.interval.defined
    half = bootstrap_score([[1, 0], [1, 1]], ratio, rng=rng(), resamples=4000, method=method, level=0.5)
    # At level .5 a quarter of undefined resamples is within what the interval leaves out; BCa does not exist here.
    assert bounds(half) == (1.0, 2.0) if method == "percentile" else not half.interval.defined


def test_wrong_calls_say_what_was_expected() -> None:
    with pytest.raises(ValueError, match="sums: 1 of 4 values are NaN"):
        bootstrap_score([[1, 2], [math.nan, 2]], ratio, rng=rng())
    with pytest.raises(ValueError, match=r"expected totals \(1, 2\) to give scores \(1,\) or \(1, n_scores\)"):
        bootstrap_score([[1, 2], [1, 2]], lambda t: t.sum(), rng=rng())
    with pytest.raises(ValueError, match="method: expected one of 'jackknife', 'percentile', 'bca', got 'basic'"):
        bootstrap_mean([1, 2], rng=rng(), method="basic")
    with pytest.raises(ValueError, match="resamples: expected at least 0, got -1"):
        bootstrap_mean([1, 2], rng=rng(), resamples=-1)
    with pytest.raises(TypeError, match="unknown cluster; there are rng, clusters"):
        bootstrap_mean([1, 2], rng=rng(), cluster=["a", "b"])
    with pytest.raises(TypeError, match="rng is missing"):
        bootstrap_mean([1, 2])


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_no_resamples_give_the_value_alone(method):
    estimate = bootstrap_mean([1, 2], rng=rng(), resamples=0, method=method)
    assert (estimate.value, estimate.interval.defined, estimate.resamples) == (1.5, False, 0)


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
    assert not estimate.interval.defined


def test_one_unit_has_no_interval() -> None:
    estimate = bootstrap_indices(1, lambda units: float(len(units)), rng=rng())
    assert estimate.value == 1.0
    assert not estimate.interval.defined
    assert estimate.resamples == 0


@pytest.mark.parametrize("sizes", [[7], [4, 1, 6], [2, 9]])
def test_sparse_sums_are_grouped_as_dense_ones(sizes: list[int]) -> None:
    sizes_of = np.array(sizes)
    sums = rng(5).integers(0, 9, (int(sizes_of.sum()), 3)).astype(float)
    for groups in (3, 5, 50):
        dense, kept = group_clusters(sums, sizes_of, groups)
        sparse, same = group_clusters(csr_array(sums), sizes_of, groups)
        assert kept.tolist() == same.tolist() and len(dense) == kept.sum()
        np.testing.assert_array_equal(sparse.toarray(), dense)
        # Every cluster is in one group of its own stratum.
        ends, group_ends = np.cumsum(sizes_of), np.cumsum(kept)
        for size, end, own, group_end in zip(sizes_of, ends, kept, group_ends, strict=True):
            np.testing.assert_array_equal(dense[group_end - own : group_end].sum(0), sums[end - size : end].sum(0))


def test_up_to_a_thousand_clusters_are_left_out_one_by_one() -> None:
    for n in (1_000, 1_001, 2_500):
        sums = np.stack([rng(6).gamma(2, size=n), np.ones(n)], axis=1)
        spread = measure_spread(ratio, sums, np.array([n]))
        assert spread.freedom[0] == 999
        assert spread.standard_error[0] == measure_spread(ratio, sums, np.array([n]), groups=1_000).standard_error[0]


def test_scores_without_each_cluster_do_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sums, sizes = rng(7).random((11, 2)), np.array([5, 1, 5])
    whole = np.concatenate(list(leave_each_out(ratio, sums, sizes)))
    monkeypatch.setattr("hardlook.harness.stats.bootstrap.block_sizes", lambda n, columns: [3, 3, 3, 2])
    parts = list(leave_each_out(ratio, csr_array(sums), sizes))
    assert [len(part) for part in parts] == [3, 3, 3, 2]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-14)
    # By hand: the others of its stratum count 5 / 4 times; the only one of a stratum cannot be left out.
    others = np.delete(sums[:5], 2, axis=0).sum(0) * 5 / 4 + sums[5:].sum(0)
    assert whole[2, 0] == pytest.approx(others[0] / others[1])
    assert whole[5, 0] == pytest.approx(sums[:, 0].sum() / sums[:, 1].sum())


@pytest.mark.parametrize("method", ["jackknife", "bca"])
def test_units_without_each_cluster_give_the_spread_of_their_sums(method: str) -> None:
    values, clusters = rng(8).random(12), np.arange(12) // 2
    options = {"clusters": clusters.tolist(), "resamples": 200, "method": method}
    by_index = bootstrap_indices(12, lambda units: float(values[units].mean()), rng=rng(), **options)
    by_sums = bootstrap_mean(values, rng=rng(), **options)
    assert bounds(by_index) == pytest.approx(bounds(by_sums), rel=1e-9)
