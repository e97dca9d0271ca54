from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from hardlook.harness.stats.bootstrap import ratio
from hardlook.harness.tally import (
    DIFFERENCE,
    Draws,
    Entry,
    SeedTally,
    SoftTally,
    SumTally,
    count_own_clusters,
    estimate_tally,
    is_costly,
    leave_clusters_out,
    measure_spread,
    score_tally,
    with_ranges,
)

SHARES = st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.7])


def tally(sums, kind=SoftTally):
    return kind((Entry("share", sums.shape[0]),), sums, ratio, ("test",), "image")


@given(arrays(np.float64, (12, 1), elements=SHARES), st.lists(st.booleans(), min_size=12, max_size=12))
def test_what_is_swapped_away_leaves_nothing_behind(shares, kept):
    ours = np.hstack([shares / 2, shares])
    theirs = np.where(np.array(kept)[:, None], ours, 0)
    (value,) = tally(ours).mixed(tally(theirs), np.ones((1, 12)))[0]
    assert np.isnan(value) == (not theirs.any())
    assert np.isnan(value) or value == pytest.approx(0.5)


@given(arrays(np.int64, (9, 2), elements=st.integers(0, 99)), arrays(np.int64, (9, 2), elements=st.integers(0, 99)))
def test_whole_numbers_are_mixed_as_ever(ours, theirs):
    swaps = np.random.default_rng(0).integers(0, 2, (4, 9)).astype(float)
    one, other = (tally(ours, kind).mixed(tally(theirs, kind), swaps) for kind in (SoftTally, SumTally))
    assert np.array_equal(one, other, equal_nan=True)


def test_sums_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match="the same rows and columns"):
        tally(np.ones((3, 2))).mixed(tally(np.ones((4, 2))), np.ones((1, 3)))


def test_with_very_many_clusters_nothing_is_drawn_and_the_standard_error_is_that_of_the_mean(monkeypatch):
    monkeypatch.setattr("hardlook.harness.tally.MAX_RESAMPLED_CLUSTERS", 99)
    monkeypatch.setattr("hardlook.harness.tally.draw_multiplicities", _refuse_to_draw)
    values = np.random.default_rng(0).random(100)
    sums = np.column_stack([values, np.ones(100)])
    tally = SumTally((Entry("mean", 100),), sums, ratio, ("many",), "unit")
    (estimate,) = estimate_tally(tally, Draws(resamples=50))
    assert estimate.standard_error == pytest.approx(values.std(ddof=1) / 10, rel=1e-9)
    assert estimate.interval.low < values.mean() < estimate.interval.high


@pytest.mark.parametrize(("rests_on", "has_interval"), [(2, False), (3, True), (100, True)])
def test_with_very_many_clusters_a_score_that_rests_on_two_has_no_interval(monkeypatch, rests_on, has_interval):
    monkeypatch.setattr("hardlook.harness.tally.MAX_RESAMPLED_CLUSTERS", 99)
    sums = np.zeros((100, 2))
    sums[:rests_on, 0], sums[:rests_on, 1] = np.linspace(0.2, 0.8, rests_on), 1
    tally = SumTally((Entry("mean", rests_on, clusters=rests_on),), sums, ratio, ("rare",), "unit")
    (estimate,) = estimate_tally(tally, Draws(resamples=50))
    assert estimate.interval.defined == has_interval


def _refuse_to_draw(clusters, resamples, rng):
    assert resamples == 0
    return iter(())


def test_the_spread_of_a_score_is_that_of_its_mean_when_clusters_are_left_out():
    values = np.array([[0.1, 5.0], [0.4, 3.0], [0.9, 1.0], [0.2, 8.0]])

    def means(totals):
        return totals[..., :2] / totals[..., 2:]

    sums = np.column_stack([values, np.ones(4)])
    both = SumTally((Entry("first", 4), Entry("second", 4)), sums, means, ("two",), "unit")
    # The jackknife's standard error of a mean is the usual one, score by score.
    assert measure_spread(both).standard_error == pytest.approx(values.std(0, ddof=1) / 2, rel=1e-9)


def test_clusters_that_a_score_does_not_rest_on_have_no_part_in_its_spread():
    values = np.array([0.1, 0.3, 0.9, 0.2])
    sums = np.zeros((10, 2))
    sums[:4] = np.column_stack([values, np.ones(4)])
    assert measure_spread(tally(sums, SumTally)).standard_error == pytest.approx(values.std(ddof=1) / 2, rel=1e-9)


@pytest.mark.parametrize(
    ("clusters", "has_interval", "n"), [(0, False, 0), (1, False, 1), (2, True, 2), (None, True, 20)]
)
def test_a_score_of_a_single_cluster_has_no_interval(clusters, has_interval, n):
    sums = np.column_stack([np.linspace(0.2, 0.8, 20), np.ones(20)])
    one = SumTally((Entry("mean", 20, clusters=clusters),), sums, ratio, ("own",), "image")
    (score,) = score_tally(one, Draws(resamples=50))
    assert score.value == pytest.approx(0.5) and score.rests_on == {"image": n}
    assert (score.interval is not None) == has_interval


def test_entries_without_units_are_left_out_unless_they_say_why():
    entries = (Entry("first", 3), Entry("second", 0), Entry("third", 0, reason="nothing to find"))
    sums = np.column_stack([[0.1, 0.5, 0.6], np.ones(3)])
    several = SumTally(entries, sums, lambda totals: np.repeat(ratio(totals)[:, None], 3, axis=1), ("some",), "image")
    scores = score_tally(several, Draws(resamples=0))
    assert [(one.name, one.n, one.reason) for one in scores] == [("first", 3, ""), ("third", 0, "nothing to find")]


def accuracies(*rights, of=4):
    """A tally of accuracy with one row per number of right answers."""
    return tally(np.array([[right, of] for right in rights]), SumTally)


def test_weights_count_clusters_and_swaps_take_them_from_the_other():
    labels = ["x", "y", "x"]
    ours, theirs = (replace(accuracies(*rights), labels=labels) for rights in ((1, 2, 3), (4, 0, 4)))
    # Cluster x has 4 of 8 and y 2 of 4.
    assert ours.values().tolist() == [[0.5]]
    assert ours.values(np.array([[2.0, 1.0], [0.0, 1.0]])).tolist() == [[10 / 20], [2 / 4]]
    swaps = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert ours.mixed(theirs, swaps).tolist() == [[6 / 12], [10 / 12], [4 / 12], [8 / 12]]
    with pytest.raises(ValueError, match="the same rows and columns"):
        ours.mixed(replace(theirs, labels=["x", "x", "y"]), swaps)


def test_a_method_with_several_seeds_has_the_mean_of_its_scores():
    first, second, other = accuracies(1, 3), accuracies(3, 3), accuracies(0, 4)
    seeds = SeedTally((first, second))
    assert seeds.values().tolist() == [[0.625]]
    assert seeds.values(np.array([[1.0, 0.0], [0.0, 2.0]])).tolist() == [[0.5], [0.75]]
    swaps = np.array([[1.0, 0.0]])
    assert seeds.mixed(other, swaps).tolist() == [[3 / 8]]
    assert seeds.mixed(SeedTally((other, first)), swaps).tolist() == [[(3 + 3 + 4 + 4) / 4 / 8]]
    variance, freedom = seeds.measure_seeds()
    assert freedom == 1 and variance.tolist() == [pytest.approx(np.var([0.5, 0.75], ddof=1) / 2)]
    assert (seeds.key, seeds.resampled, seeds.clusters.n) == (first.key, "image", 2)


def test_an_entry_of_several_seeds_is_that_of_most_units():
    members = tuple(replace(accuracies(1, 3), entries=(Entry("accuracy", n),)) for n in (3, 8, 5))
    assert [entry.n for entry in SeedTally(members).entries] == [8]


def test_clusters_are_left_out_of_all_tallies_alike():
    first, second = accuracies(1, 2, 3), accuracies(4, 0, 4)
    sizes, blocks = leave_clusters_out([first, SeedTally((first, second))])
    scores = [np.concatenate(parts).ravel() for parts in zip(*blocks, strict=True)]
    alone, other = np.array([5, 4, 3]) / 8, np.array([4, 8, 4]) / 8
    assert sizes.tolist() == [3]
    assert scores[0].tolist() == pytest.approx(alone) and scores[1].tolist() == pytest.approx((alone + other) / 2)


def test_a_score_rests_on_all_clusters_unless_it_says_or_has_fewer_units():
    entries = (Entry("all", 9), Entry("few", 2), Entry("none", 0), Entry("own", 9, clusters=2))
    assert count_own_clusters(replace(accuracies(1, 2, 3), entries=entries)) == [3, 2, 1, 2]


@pytest.mark.parametrize("method", ["percentile", "bca", "jackknife"])
def test_every_kind_of_interval_holds_the_mean_of_a_symmetric_sample(method):
    sums = np.column_stack([np.linspace(0.2, 0.8, 25), np.ones(25)])
    (estimate,) = estimate_tally(tally(sums, SumTally), Draws(resamples=400, interval=method))
    error = np.linspace(0.2, 0.8, 25).std(ddof=1) / 5
    assert estimate.interval.method == method and estimate.value == pytest.approx(0.5)
    assert (estimate.interval.low, estimate.interval.high) == pytest.approx(
        (0.5 - 2 * error, 0.5 + 2 * error), abs=0.02
    )
    assert estimate.standard_error == pytest.approx(error, rel=0.15)


def test_one_cluster_has_a_value_and_no_interval():
    (estimate,) = estimate_tally(accuracies(3), Draws(resamples=50))
    assert estimate.value == 0.75 and not estimate.interval.defined


def test_ranges_are_those_of_shares_unless_a_name_has_its_own():
    found = with_ranges([Entry("miou", 3), Entry("gain", 3, range=(0, 9))], {"gain": DIFFERENCE})
    assert [entry.range for entry in found] == [(0.0, 1.0), (-1.0, 1.0)]
    assert [entry.range for entry in with_ranges([Entry("gain", 3)])] == [(0.0, 1.0)]


def test_sparse_sums_are_weighted_in_blocks_with_the_same_scores(monkeypatch):
    rng = np.random.default_rng(0)
    sums, weights = rng.integers(1, 9, (6, 2)).astype(float), rng.integers(0, 3, (7, 6)) + 1.0
    expected = tally(sums, SumTally).values(weights)
    monkeypatch.setattr("hardlook.harness.tally.MAX_TOTALS", 4)
    sparse = tally(csr_array(sums), SumTally)
    assert [len(part) for part in sparse._split(weights)] == [2, 2, 2, 1]
    assert [len(part) for part in sparse._split(weights[:2])] == [2]
    assert [len(part) for part in tally(sums, SumTally)._split(weights)] == [7]
    np.testing.assert_allclose(sparse.values(weights), expected, rtol=1e-14)
    monkeypatch.setattr("hardlook.harness.tally.MAX_TOTALS", 1)
    assert [len(part) for part in sparse._split(weights)] == [1] * 7


class CostlyTally(SumTally):
    """One that says that each weighting takes long."""

    costly = True


def test_several_seeds_are_costly_where_one_is():
    cheap, costly = tally(np.ones((4, 2)), SumTally), tally(np.ones((4, 2)), CostlyTally)
    assert SeedTally((cheap, costly)).costly and not SeedTally((cheap, cheap)).costly
    assert is_costly(costly) and not is_costly(cheap)


def test_clusters_of_a_costly_tally_are_left_out_in_fifty_groups():
    class Other:
        """A tally that is no table of sums."""

        def __init__(self, inner):
            self.inner, self.clusters = inner, inner.clusters

        def values(self, weights=None):
            return self.inner.values(weights)

    sums = np.random.default_rng(0).random((120, 2))
    inner = tally(sums, SumTally)
    sizes, blocks = leave_clusters_out([Other(inner), inner])
    found = np.concatenate([np.concatenate(block, axis=1) for block in blocks])
    assert sizes.tolist() == [50] and found.shape == (50, 2)
    kept = np.arange(120) % 50 != 7
    assert found[7].tolist() == pytest.approx([sums[kept, 0].sum() / sums[kept, 1].sum()] * 2)


def test_seeds_and_single_runs_in_any_order_have_their_own_scores_without_each_cluster():
    first, second, third = accuracies(1, 2, 3), accuracies(4, 0, 4), accuracies(2, 2, 0)
    _, blocks = leave_clusters_out([first, SeedTally((first, second)), third, SeedTally((second, third, third))])
    scores = [np.concatenate(parts).ravel() for parts in zip(*blocks, strict=True)]
    one, two, three = np.array([5, 4, 3]) / 8, np.array([4, 8, 4]) / 8, np.array([2, 2, 4]) / 8
    expected = [one, (one + two) / 2, three, (two + 2 * three) / 3]
    for found, wanted in zip(scores, expected, strict=True):
        assert found.tolist() == pytest.approx(wanted)
