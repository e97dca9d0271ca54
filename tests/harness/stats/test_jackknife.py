"""The jackknife interval against closed formulas: Student's t, Wilson, Clopper-Pearson, stratified variances."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hardlook.harness.stats import bootstrap_mean, bootstrap_score, bootstrap_scores, ratio
from hardlook.harness.stats.bootstrap import assign_groups, leave_each_out, measure_spread
from hardlook.harness.stats.jackknife import (
    _KURTOSIS_POWER,
    _ROUGH_FREEDOM,
    _ROUGH_SKEWNESS,
    _ROUGH_TAILS,
    _SKEWNESS_PART,
    Spread,
    SpreadMeter,
    add_variances,
    jackknife_bounds,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def spread(error, freedom=1e9, tails=1.0, slope=0.0):
    return Spread(*(np.array([float(one)]) for one in (error, freedom, tails, slope)))


def bounds_of(value, measured, level=0.95, span=(-math.inf, math.inf), rests_on=0):
    low, high = jackknife_bounds([value], measured, level, span, rests_on)
    return float(low[0]), float(high[0])


def with_ones(values):
    return np.stack([values, np.ones(len(values))], axis=1)


def test_the_standard_error_of_a_mean_is_the_t_intervals():
    values = rng(1).normal(size=25)
    measured = measure_spread(ratio, with_ones(values), np.array([25]))
    assert measured.standard_error[0] == pytest.approx(stats.sem(values), rel=1e-12)
    assert measured.freedom[0] == 24


def test_without_skewness_and_tails_the_interval_is_students():
    values = [1.0, 2.0, 4.0, 5.0]
    measured = measure_spread(ratio, with_ones(np.array(values)), np.array([4]))
    assert measured.tails[0] == 1  # a flat sample has no long tail
    found = bounds_of(3.0, measured)
    assert found == pytest.approx(stats.t.interval(0.95, 3, 3.0, stats.sem(values)), rel=1e-9)


def test_a_long_tail_costs_degrees_of_freedom():
    flat, tailed = (
        measure_spread(ratio, with_ones(np.array(values)), np.array([len(values)]))
        for values in (np.linspace(0, 1, 20), [*np.linspace(0, 1, 19), 30.0])
    )
    assert flat.tails[0] == 1
    # Kurtosis: (n^2 - 3 n + 3) / (n - 1) for one outlier among n values, 3 (n - 1) / (n + 1) for a normal sample.
    assert tailed.freedom[0] * tailed.tails[0] == pytest.approx(19 * 3 * 19 / 21 / (343 / 19), rel=0.01)


@pytest.mark.parametrize(("right", "n"), [(3, 40), (20, 40), (39, 40), (999, 1000)])
def test_near_the_ends_the_bounds_are_wilsons(right, n):
    share = right / n
    found = bounds_of(share, spread(math.sqrt(share * (1 - share) / n)), span=(0, 1))
    expected = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert found == pytest.approx((expected.low, expected.high), rel=1e-6)


@pytest.mark.parametrize("n", [1, 5, 30])
def test_where_all_agree_the_bounds_are_clopper_and_pearsons(n):
    all_right = bounds_of(1.0, spread(0.0), span=(0, 1), rests_on=n)
    assert all_right == pytest.approx(tuple(stats.binomtest(n, n).proportion_ci(method="exact")), abs=1e-9)
    none_right = bounds_of(0.0, spread(0.0), span=(0, 1), rests_on=n)
    assert none_right == pytest.approx(tuple(stats.binomtest(0, n).proportion_ci(method="exact")), abs=1e-9)


def test_a_score_that_rests_on_nothing_has_the_bounds_of_one_unit():
    assert bounds_of(1.0, spread(0.0), span=(0, 1), rests_on=0) == bounds_of(1.0, spread(0.0), span=(0, 1), rests_on=1)


def test_where_all_agree_and_no_range_is_known_there_is_no_interval():
    assert not bootstrap_mean([0.5] * 20, rng=rng(), resamples=20).interval.defined
    known = bootstrap_mean([0.5] * 20, rng=rng(), resamples=20, range=(0, 1)).interval
    assert known.low < 0.5 < known.high


@given(
    st.lists(st.sampled_from([0.0, 0.001, 0.3, 0.999, 1.0]), min_size=2, max_size=30),
    st.sampled_from([0.5, 0.95, 0.999]),
)
@settings(max_examples=150, deadline=None)
def test_the_interval_holds_the_score_and_never_leaves_the_range(values, level):
    found = bootstrap_mean(values, rng=rng(), resamples=2, level=level, range=(0, 1))
    assert 0 <= found.interval.low <= found.value <= found.interval.high <= 1
    # From 0 upwards there is no other end.
    above = bootstrap_mean(values, rng=rng(), resamples=2, level=level, range=(0, math.inf)).interval
    assert not above.defined or 0 <= above.low <= found.value <= above.high


def test_an_accuracy_near_0_has_no_bound_below_it():
    """Ten tasks, of which one has .56: a t interval reaches from -.07 to .18."""
    values = [0.0] * 9 + [0.56]
    assert stats.t.interval(0.95, 9, np.mean(values), stats.sem(values))[0] < -0.05
    found = bootstrap_mean(values, rng=rng(), resamples=50, range=(0, 1)).interval
    assert 0 <= found.low < 0.056 < found.high < 0.6


def test_the_spread_of_a_stratified_total_is_that_of_its_strata():
    values, strata = rng(2).normal(size=12), np.repeat([0, 1], [8, 4])
    measured = measure_spread(lambda totals: totals[:, 0], values[:, None], np.array([8, 4]))
    expected = sum(len(part) * part.var(ddof=1) for part in (values[:8], values[8:]))
    assert measured.standard_error[0] ** 2 == pytest.approx(expected, rel=1e-12)
    # Without strata the difference between them counts as spread as well.
    whole = measure_spread(lambda totals: totals[:, 0], values[:, None] + 5 * strata[:, None], np.array([12]))
    assert whole.standard_error[0] > 2 * measured.standard_error[0]


def test_a_stratum_of_one_cluster_has_no_part():
    values = np.array([1.0, 2.0, 3.0, 9.0])[:, None]
    alone = measure_spread(lambda totals: totals[:, 0], values, np.array([3, 1]))
    three = measure_spread(lambda totals: totals[:, 0], values[:3], np.array([3]))
    assert alone.standard_error[0] == three.standard_error[0]
    assert alone.freedom[0] == three.freedom[0]


def test_a_score_that_one_cluster_alone_defines_has_no_interval():
    sums = np.array([[8, 3, 10, 6], [5, 0, 10, 0], [9, 0, 10, 0], [9, 0, 11, 0]])
    often, once = bootstrap_scores(
        sums, lambda totals: totals[:, :2] / totals[:, 2:], rng=rng(), resamples=50, range=(0, 1)
    )
    assert often.interval.defined and not once.interval.defined


def test_clusters_without_the_class_do_not_count():
    """Two of thirty images have the class: one degree of freedom, and the variance of a mean of two."""
    sums = np.zeros((30, 2))
    sums[4], sums[20] = (2, 10), (6, 10)
    measured = measure_spread(ratio, sums, np.array([30]))
    assert measured.freedom[0] == 1
    assert measured.standard_error[0] == pytest.approx(stats.sem([0.2, 0.6]), rel=1e-9)


@pytest.mark.parametrize(("having", "counted"), [(9, 9), (12, 12), (13, 24)])
def test_clusters_without_the_class_do_not_count_where_they_are_half_of_all_or_more(having, counted):
    pixels = rng(having).integers([1, 60], [50, 90], size=(having, 2)).astype(float)
    found = measure_spread(ratio, np.concatenate([pixels, np.zeros((24 - having, 2))]), np.array([24]))
    alone = measure_spread(ratio, pixels, np.array([having]))
    assert found.freedom[0] == counted - 1
    same = found.standard_error[0] == pytest.approx(alone.standard_error[0], rel=1e-9)
    assert same == (counted == having)


def test_a_score_at_the_end_of_its_range_that_other_images_would_move_has_the_bounds_of_one_that_does_not_move():
    # A harmonic mean is 0 where one of its parts is, whatever the others are.
    assert bounds_of(0.0, spread(0.1, 29), span=(0, 1), rests_on=30) == bounds_of(
        0.0, spread(0.0, 29), span=(0, 1), rests_on=30
    )


def test_many_clusters_are_left_out_in_groups_with_nearly_the_same_spread():
    values = rng(3).gamma(2, size=4_000)
    whole, grouped = (measure_spread(ratio, with_ones(values), np.array([4_000]), groups) for groups in (4_000, 500))
    assert grouped.standard_error[0] == pytest.approx(whole.standard_error[0], rel=0.08)
    codes, kept = assign_groups(np.array([3, 2_000, 1]), 100)
    assert kept.tolist() == [2, 99, 1] and len(np.unique(codes)) == 102


@given(st.lists(st.floats(0.01, 1e6), min_size=3, max_size=12), st.integers(0, 11), st.booleans())
def test_of_a_class_in_one_image_nothing_is_left_without_it(values, place, stratified):
    sums = np.stack([np.array(values), np.zeros(len(values))], axis=1)
    sums[place % len(values), 1] = 0.1 + values[0] / 3
    sizes = np.array([2, len(values) - 2]) if stratified and len(values) > 3 else np.array([len(values)])
    left = np.concatenate(list(leave_each_out(lambda totals: totals[:, 1], sums, sizes)))[:, 0]
    assert left[place % len(values)] == 0 and np.count_nonzero(left) == len(values) - 1


def test_further_draws_widen_the_interval():
    alone = spread(0.1, 50)
    both = add_variances(alone, [(np.array([0.03]), 2)])
    assert both.standard_error[0] == pytest.approx(0.2)
    assert 2 < both.freedom[0] < 5
    assert add_variances(alone, []) is alone


@pytest.mark.parametrize(
    ("kind", "at_least"), [("clustered", 0.925), ("ratio", 0.92), ("skewed", 0.92), ("near the end", 0.92)]
)
def test_intervals_cover_what_percentiles_miss(kind, at_least):
    """800 data sets of 30 clusters, 10 where skewed; benchmarks/interval_coverage.py has the table."""
    simulate, n = rng(7), 10 if kind in ("skewed", "near the end") else 30
    truth = {"clustered": 2 / 3, "ratio": 0.75, "skewed": 0.2, "near the end": 0.95}[kind]
    covered = 0
    for _ in range(800):
        if kind == "clustered":
            sizes = np.ceil(simulate.lognormal(1, 1, n))
            sums = np.stack([simulate.binomial(sizes.astype(int), simulate.beta(2, 1, n)), sizes], axis=1)
        elif kind == "ratio":
            area = simulate.lognormal(7, 1, n)
            sums = np.stack([area * simulate.beta(3, 1, n), area], axis=1)
        elif kind == "skewed":
            sums = with_ones(simulate.beta(1, 4, n))
        else:
            sums = np.stack([simulate.binomial(8, simulate.beta(19, 1, n)), np.full(n, 8)], axis=1)
        found = bootstrap_score(sums.astype(float), ratio, rng=simulate, resamples=1, range=(0, 1)).interval
        covered += truth in found
    assert at_least <= covered / 800 <= 0.99


def share_rough(draw, clusters, sets=100):
    """The share of data sets of `draw(rng, clusters)`, (clusters, 2), whose score is said to have a rough interval."""
    rough = 0
    for seed in range(sets):
        sums = draw(np.random.default_rng(seed), clusters)
        estimate = bootstrap_score(sums, ratio, rng=np.random.default_rng(0), resamples=2, range=(0, np.inf))
        rough += estimate.rough
    return rough / sets


def of_values(draw):
    return lambda rng, n: with_ones(draw(rng, n))


def draw_areas(rng, n):
    """IoUs near 1 of lognormal areas: one large area decides."""
    areas = rng.lognormal(7, 1, n)
    return np.stack([areas * rng.beta(19, 1, n), areas], axis=1)


def test_intervals_that_miss_their_goal_are_called_rough_and_others_are_not():
    """The cells of the coverage table in docs/statistics.md that have a star, and some that have none."""
    lognormal = of_values(lambda rng, n: rng.lognormal(0, 1, n))
    wrong = of_values(lambda rng, n: (rng.random(n) < 0.97) * 1.0)
    for draw, clusters, least in (
        (lognormal, 10, 0.25),
        (lognormal, 30, 0.5),
        (draw_areas, 30, 0.55),
        (wrong, 100, 0.6),
    ):
        assert share_rough(draw, clusters) >= least
    for draw, clusters in (
        (of_values(lambda rng, n: rng.normal(5, 1, n)), 10),
        (of_values(lambda rng, n: rng.normal(5, 1, n)), 30),
        (of_values(lambda rng, n: rng.exponential(1, n)), 100),
        (of_values(lambda rng, n: (rng.random(n) < 0.7) * 1.0), 30),
    ):
        assert share_rough(draw, clusters) <= 0.05


def test_a_score_without_spread_and_one_of_a_percentile_interval_are_not_called_rough():
    ones = np.ones((30, 2))
    assert not bootstrap_score(ones, ratio, rng=np.random.default_rng(0), resamples=2, range=(0, 1)).rough
    tail = np.stack([np.r_[np.zeros(29), 9.0], np.ones(30)], axis=1)
    found = {
        method: bootstrap_score(tail, ratio, rng=np.random.default_rng(0), resamples=50, method=method).rough
        for method in ("jackknife", "percentile")
    }
    assert found == {"jackknife": True, "percentile": False}


@pytest.mark.parametrize(("freedom", "tails", "t"), [(29, 1.0, 2.0), (29, 0.4, -2.0), (9, 0.5, 0.5), (3, 0.1, 4.0)])
def test_p_values_are_students_with_the_degrees_of_freedom_that_tails_leave(freedom, tails, t):
    (p,) = spread(0.1, freedom, tails).p_values([0.1 * t])
    assert p == pytest.approx(2 * stats.t.sf(abs(t), max(freedom * tails, 1)))
    (quantile,) = spread(0.1, freedom, tails).quantile(0.95, 0.5)
    assert quantile == pytest.approx(stats.t.ppf(0.975, max(freedom * tails**0.5, 1)))


def test_without_spread_there_is_no_p_value():
    assert np.isnan(spread(0.0, 9).p_values([0.5])).all()


@pytest.mark.parametrize("span", [(0.0, 1.0), (0.0, math.inf), (-math.inf, 1.0)])
def test_a_value_beyond_its_range_is_of_no_known_range(span):
    for value in (-0.5, 1.5):
        free = bounds_of(value, spread(0.1, 9, 0.8, 0.3))
        inside = span[0] <= value <= span[1]
        assert (bounds_of(value, spread(0.1, 9, 0.8, 0.3), span=span) == free) is not inside
    # A value that rounding has pushed out stays within: its bounds are those of the end.
    if math.isfinite(sum(span)):
        for value in (-1e-12, 1 + 1e-12):
            low, high = bounds_of(value, spread(0.1, 9), span=span, rests_on=10)
            assert 0 <= low <= high <= 1


@pytest.mark.parametrize("cuts", [[3], [5], [2, 5, 8], [1, 2, 3, 4, 5, 6, 7, 8]])
def test_the_spread_does_not_depend_on_how_the_clusters_come_in(cuts):
    sizes, scores = np.array([3, 2, 4]), rng(4).random((9, 2))
    whole, parts = SpreadMeter(np.array([0.5, 0.25]), sizes), SpreadMeter(np.array([0.5, 0.25]), sizes)
    whole.add(scores)
    for part in np.split(scores, cuts):
        parts.add(part)
    for name in ("standard_error", "freedom", "tails", "slope"):
        np.testing.assert_allclose(getattr(parts.measure(), name), getattr(whole.measure(), name), rtol=1e-12)


def measure_by_loops(value, scores, sizes):
    """Standard error, freedom, tails and slope of one score, stratum by stratum, as the docstrings have it."""
    variance = squares = fourth = third = clusters = freedom = 0.0
    start = 0
    for size in sizes:
        change = [score - value for score in scores[start : start + size]]
        start += size
        if size < 2:
            continue
        moved = [one for one in change if abs(one) > 1e-12 * abs(value)]
        # Where at least half change nothing, the score rests on the others.
        kept = [one if one in moved else 0.0 for one in change] if 2 * len(moved) > size else moved
        n = len(kept)
        if n == 0:
            continue
        part = (n - 1) / n if n > 1 else 0.5
        mean = sum(kept) / n if n > 1 else 0.0
        apart = [one - mean for one in kept]
        variance += part * sum(one**2 for one in apart)
        squares += part**2 * sum(one**2 for one in apart)
        fourth += part**4 * sum(one**4 for one in apart)
        if n > 1:
            third += part**3 * sum(one**3 for one in apart)
        clusters += n
        freedom += n - 1
    tails = min(3 * (clusters - 1) / (clusters + 1) / (clusters * fourth / squares**2), 1.0)
    return math.sqrt(variance), max(freedom, 1.0), tails, -third / squares


@pytest.mark.parametrize("sizes", [[9], [5, 4], [6, 1, 8], [20, 3]])
@pytest.mark.parametrize("unmoved", [0, 2, 4])
def test_the_four_moments_are_those_of_loops(sizes, unmoved):
    scores = 0.5 + rng(sum(sizes) + unmoved).gamma(1, size=sum(sizes)) ** 2 / 50
    scores[:unmoved] = 0.5  # these clusters change nothing
    meter = SpreadMeter(np.array([0.5]), np.array(sizes))
    meter.add(scores[:, None])
    found = meter.measure()
    expected = measure_by_loops(0.5, scores.tolist(), sizes)
    assert [float(one[0]) for one in (found.standard_error, found.freedom, found.tails, found.slope)] == pytest.approx(
        expected, rel=1e-9
    )


@pytest.mark.parametrize(
    ("span", "value"),
    [
        ((0.0, 1.0), 0.3),
        ((-2.0, 5.0), 4.0),
        ((0.0, math.inf), 0.3),
        ((-math.inf, 1.0), 0.3),
        ((-math.inf, math.inf), 0.3),
    ],
)
@pytest.mark.parametrize("slope", [0.0, 0.04, -0.04])
def test_at_a_bound_the_score_is_as_far_away_as_its_quantile_says(span, value, slope):
    measured, low_end, high_end = spread(0.1, 12.0, 0.7, slope), *span
    low, high = bounds_of(value, measured, span=span)
    free = not (math.isfinite(low_end) or math.isfinite(high_end))
    t = float(measured.quantile(0.95, _KURTOSIS_POWER if free else 1.0)[0])
    assert low < value < high

    def variance(mean):
        """The variance that a score of this mean would have: none at an end of the range."""
        if math.isfinite(low_end) and math.isfinite(high_end):
            return 0.01 * (mean - low_end) * (high_end - mean) / ((value - low_end) * (high_end - value))
        if math.isfinite(low_end):
            return 0.01 * (mean - low_end) / (value - low_end)
        if math.isfinite(high_end):
            return 0.01 * (high_end - mean) / (high_end - value)
        return 0.01 + _SKEWNESS_PART * slope * (mean - value)

    for bound in (low, high):
        assert (value - bound) ** 2 == pytest.approx(t**2 * variance(bound), rel=1e-9)


def test_an_interval_is_rough_where_few_clusters_and_a_tail_or_skewness_decide():
    def rough(**changes):
        given = {"error": 0.1, "freedom": 10.0, "tails": 1.0, "slope": 0.0, **changes}
        return bool(spread(**given).is_rough()[0])

    assert not rough()
    assert (_ROUGH_FREEDOM, _ROUGH_TAILS, _ROUGH_SKEWNESS) == (15.0, 0.5, 0.4)
    assert (_SKEWNESS_PART, _KURTOSIS_POWER) == (0.25, 1.5)
    skewed, tailed = {"slope": _ROUGH_SKEWNESS * 0.1 + 1e-9}, {"tails": _ROUGH_TAILS - 1e-9}
    assert rough(**skewed) and rough(slope=-skewed["slope"]) and rough(**tailed)
    assert not rough(slope=_ROUGH_SKEWNESS * 0.1 - 1e-9) and not rough(tails=_ROUGH_TAILS)
    assert not rough(freedom=_ROUGH_FREEDOM, **skewed) and rough(freedom=_ROUGH_FREEDOM - 1e-6, **skewed)
    assert not rough(error=0.0, **skewed)


def test_p_values_are_students():
    measured = spread(0.2, 8.0, 0.5)
    assert measured.p_values([0.5])[0] == pytest.approx(2 * stats.t.sf(2.5, 4.0))
    assert measured.p_values([-0.5])[0] == measured.p_values([0.5])[0]
    assert spread(0.2, 8.0, 0.01).p_values([0.5])[0] == pytest.approx(2 * stats.t.sf(2.5, 1.0))
    assert math.isnan(spread(0.0).p_values([0.5])[0])
    assert measured.quantile(0.9)[0] == pytest.approx(stats.t.ppf(0.95, 4.0))
    assert measured.quantile(0.9, 2.0)[0] == pytest.approx(stats.t.ppf(0.95, 2.0))
