import math

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import norm
from sklearn.feature_selection import mutual_info_classif

from hardlook.harness.stats import average_ranks, mutual_information, mutual_information_interval, pearson, spearman

small = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=25)


def columns(pairs: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    return x, y


@given(small)
def test_both_agree_with_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = columns(pairs)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@given(st.lists(st.integers(-5, 5), max_size=25))
def test_ranks_agree_with_scipy(values: list[int]) -> None:
    assert average_ranks(values).tolist() == stats.rankdata(values, method="average").tolist()


@given(small)
def test_laws(pairs: list[tuple[int, int]]) -> None:
    x, y = columns(pairs)
    for correlation in (pearson, spearman):
        r = correlation(x, y)
        assert -1 <= r <= 1
        assert correlation(y, x) == pytest.approx(r, abs=1e-12)
        assert correlation(x, np.negative(y)) == pytest.approx(-r, abs=1e-12)
    assert spearman(np.exp(x), y) == spearman(x, y)


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=20, unique=True))
def test_same_and_opposite_order_are_exactly_one(values: list[float]) -> None:
    place = np.argsort(np.argsort(values))
    assert spearman(values, place) == 1.0
    assert spearman(values, -place) == -1.0


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_undefined_is_nan(correlation: object) -> None:
    assert math.isnan(correlation([0.1, 0.1, 0.1], [1, 2, 3]))
    assert math.isnan(correlation([1, 2, 3], [0.7, 0.7, 0.7]))
    assert math.isnan(correlation([1], [2]))
    assert math.isnan(correlation([], []))


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_wrong_input_is_refused(correlation: object) -> None:
    with pytest.raises(ValueError, match="x has 2 values and y 3; expected pairs"):
        correlation([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="y: 1 of 2 values are NaN"):
        correlation([1, 2], [1, math.nan])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_very_small_and_large_numbers(scale: float) -> None:
    x, y = np.array([1.0, 2, 3, 5]), np.array([2.0, 1, 4, 5])
    assert pearson(x * scale, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)


def test_a_large_offset_does_not_matter() -> None:
    x, y = np.array([1.0, 2, 3, 5]), np.array([2.0, 1, 4, 5])
    assert pearson(x + 2.0**40, y) == pytest.approx(pearson(x, y), abs=1e-12)


# Columns of the published table and the values of the paper's repository for y = oss_perf > .5, in nats.
PUBLISHED = {
    "iou": 0.09052653,
    "area_ratio": 0.03299302,
    "offset_ratio": 0.0218922,
    "saliou": 0.21073617,
    "blob_count": 0.00232588,
    "distractor_weight": 0.16151821,
}


def rng(seed=0):
    return np.random.default_rng(seed)


@given(
    st.integers(0, 2**32 - 1), st.integers(40, 200), st.integers(1, 5), st.integers(2, 3), st.sampled_from([0, 1, 12])
)
def test_equals_scikit_learn_on_the_same_noise(seed, n, k, labels, decimals):
    draw = rng(seed)
    values = draw.normal(size=n).round(decimals) * 10.0 ** draw.integers(-3, 4)
    outcome = draw.integers(0, labels, n)
    # With fewer it multiplies out squared distances, which loses what the noise tells apart.
    assume(np.bincount(outcome).min() > 2 * k + 1)
    theirs = mutual_info_classif(values[:, None], outcome, n_neighbors=k, random_state=seed)[0]
    # scikit-learn's generator of old draws the same noise when it is passed for ours.
    ours = mutual_information(values, outcome, k=k, rng=np.random.RandomState(seed))
    assert ours == pytest.approx(theirs, abs=1e-9)


class Silence:
    """A generator without noise, so that distances that are equal but for rounding stay so."""

    def standard_normal(self, size):
        return np.zeros(size)


def counted_information(values, outcome, k):
    """Ross's estimate by a loop: who is nearer than the k-th neighbour of the same outcome, distance by distance."""
    values, terms = values / values.std(), []
    for value, label in zip(values, outcome, strict=True):
        distances = np.abs(values - value)
        own = np.sort(distances[outcome == label])
        terms.append(digamma(k) - digamma(len(own)) - digamma(np.sum(distances < own[k])))
    return max(0.0, digamma(len(values)) + np.mean(terms))


@pytest.mark.parametrize("sizes", [(9, 7, 2), (9, 2, 1, 1), (5, 4, 3)])
def test_small_outcomes_have_fewer_neighbours_and_single_ones_are_left_out(sizes):
    values, outcome = rng(5).normal(size=sum(sizes)), np.repeat(np.arange(len(sizes)), sizes)
    scaled = values / values.std()
    kept = np.array(sizes)[outcome] > 1
    scaled, labels, terms = scaled[kept], outcome[kept], []
    for value, label in zip(scaled, labels, strict=True):
        distances = np.abs(scaled - value)
        own = np.sort(distances[labels == label])
        k = min(3, len(own) - 1)
        terms.append(digamma(k) - digamma(len(own)) - digamma(np.sum(distances < own[k])))
    expected = max(0.0, digamma(len(scaled)) + np.mean(terms))
    assert mutual_information(values, outcome, k=3, rng=Silence()) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_neighbours_that_differ_by_rounding_alone_are_counted_by_their_distance(seed):
    # Steps of a tenth: many distances are equal on paper and differ in the last bit.
    values = rng(seed).choice(400, 100, replace=False) / 10 - 20
    outcome = rng(seed + 100).integers(0, 2, 100)
    for mirrored in (values, -values):
        ours = mutual_information(mirrored, outcome, k=3, rng=Silence())
        assert ours == pytest.approx(counted_information(mirrored, outcome, 3), abs=1e-12)


def two_normals(n, seed):
    """A fair coin, and values that are normal around 0 or 1.5."""
    coin = rng(seed).random(n) > 0.5
    return rng(1000 + seed).normal(size=n) + 1.5 * coin, coin


def information_of_two_normals():
    """Entropy of the mixture less that of one normal, by quadrature."""

    def mixture(x):
        return (norm.pdf(x) + norm.pdf(x, 1.5)) / 2

    return quad(lambda x: -mixture(x) * math.log(mixture(x)), -10, 12)[0] - norm.entropy()


def test_two_normals_have_the_information_of_the_integral():
    values, coin = two_normals(20_000, seed=1)
    assert mutual_information(values, coin, rng=rng()) == pytest.approx(information_of_two_normals(), abs=0.02)


def test_interval_covers_the_truth_about_as_often_as_it_says():
    truth, covered = information_of_two_normals(), 0
    for seed in range(60):
        values, coin = two_normals(300, seed)
        covered += truth in mutual_information_interval(values, coin, rng=rng(seed), halves=60).interval
    # 60 data sets: the share has a standard error of 0.03.
    assert covered / 60 >= 0.85


def test_copies_in_a_cluster_widen_the_interval():
    coin = rng(3).random(200) > 0.5
    values = rng(4).normal(size=200) + coin
    # Four noisy copies of each row: without clusters they look like four times as many units.
    copies, outcome, images = (
        np.repeat(values, 4) + rng(5).normal(size=800) / 10,
        np.repeat(coin, 4),
        np.repeat(range(200), 4),
    )
    alone = mutual_information_interval(copies, outcome, rng=rng(), halves=100)
    grouped = mutual_information_interval(copies, outcome, rng=rng(), halves=100, clusters=images, resampled="image")
    assert grouped.standard_error > 1.3 * alone.standard_error
    assert (grouped.interval.n, grouped.interval.resampled) == (200, "image")
    assert (alone.interval.n, alone.interval.resampled) == (800, "unit")


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.25, 4.0, 1024.0]))
def test_units_and_names_do_not_matter(seed, scale):
    values, outcome = rng(seed).normal(size=60), rng(seed + 1).integers(0, 2, 60)
    plain = mutual_information(values, outcome, rng=rng())
    named = np.where(outcome == 1, "found", "missed")
    assert mutual_information(values * scale, named, rng=rng()) == pytest.approx(plain, abs=1e-12)


def test_one_outcome_has_no_information_and_nothing_has_none_to_give():
    assert mutual_information([1.0, 2.0, 3.0], [1, 1, 1], rng=rng()) == pytest.approx(0, abs=1e-12)
    assert math.isnan(mutual_information([], [], rng=rng()))
    assert math.isnan(mutual_information([1.0, 2.0], [0, 1], rng=rng()))
    few = mutual_information_interval([1.0, 2.0, 3.0], [0, 1, 1], rng=rng())
    assert few.resamples == 0 and not few.interval.defined


@pytest.mark.parametrize("value", [0.0, 0.3, 0.5])
def test_a_constant_tells_nothing(value: float) -> None:
    assert 0 <= mutual_information([value] * 400, [0, 1] * 200, rng=rng()) < 0.05


def test_wrong_calls_say_what_was_expected():
    with pytest.raises(ValueError, match=r"outcome: expected shape \(2,\) as the values have, got \(3,\)"):
        mutual_information([1, 2], [0, 1, 1], rng=rng())
    with pytest.raises(ValueError, match="k: expected at least 1, got 0"):
        mutual_information([1, 2], [0, 1], k=0, rng=rng())
    with pytest.raises(ValueError, match="values: 1 of 2 values are NaN"):
        mutual_information([1, math.nan], [0, 1], rng=rng())


@pytest.mark.real
def test_five_of_the_six_published_values_lie_in_the_seed_range(shared_data):
    """Forty seeds each; the sixth, blobs (a count with many equal values), lies below its range."""
    table = pl.read_csv(shared_data / "reference" / "toss" / "data" / "analysis" / "test_stats.csv")
    found = table["oss_perf"].to_numpy() > 0.5
    inside = {}
    for column, published in PUBLISHED.items():
        values = table[column].to_numpy()
        seeds = [mutual_information(values, found, rng=rng(seed)) for seed in range(40)]
        inside[column] = min(seeds) <= published <= max(seeds)
    assert inside == {column: column != "blob_count" for column in PUBLISHED}


@pytest.mark.parametrize(("units", "per_cluster", "level"), [(40, 1, 0.95), (41, 1, 0.8), (45, 3, 0.95)])
def test_the_interval_is_that_of_random_halves(units, per_cluster, level):
    values, outcome = rng(6).normal(size=units), rng(7).random(units) > 0.5
    clusters = None if per_cluster == 1 else (np.arange(units) // per_cluster).tolist()
    found = mutual_information_interval(values, outcome, k=2, rng=rng(8), halves=30, level=level, clusters=clusters)
    # The same draws in the same order, one by one.
    draws, n = rng(8), units // per_cluster
    value = mutual_information(values, outcome, k=2, rng=draws)
    estimates = []
    for _ in range(30):
        chosen = np.sort(draws.choice(n, size=n // 2, replace=False))
        rows = np.isin(np.arange(units) // per_cluster, chosen)
        estimates.append(mutual_information(values[rows], outcome[rows], k=2, rng=draws))
    error = np.std(estimates, ddof=1) * math.sqrt((n // 2) / (n - n // 2))
    reach = norm.ppf((1 + level) / 2) * error
    assert (found.value, found.standard_error) == (value, pytest.approx(error))
    assert (found.interval.low, found.interval.high) == pytest.approx((max(0.0, value - reach), value + reach))
    assert (found.resamples, found.undefined, found.interval.level, found.interval.n) == (30, 0, level, n)
    assert found.interval.resampled == ("unit" if clusters is None else "cluster")


@pytest.mark.parametrize(("units", "halves"), [(3, 0), (4, 5)])
def test_four_units_are_halved_and_three_are_not(units, halves):
    outcome = np.arange(units) % 2 == 0
    found = mutual_information_interval(np.arange(units), outcome, rng=rng(), halves=5)
    assert found.resamples == halves


def test_halves_without_two_of_an_outcome_are_counted_as_undefined():
    found = mutual_information_interval(np.arange(4.0), [0, 0, 1, 1], rng=rng(), halves=20)
    # A half of two units is defined where both have one outcome: then the information is 0.
    assert 0 < found.undefined < 20 and found.standard_error == pytest.approx(0, abs=1e-12)
