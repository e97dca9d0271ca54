"""How many swaps are tried: many where they are cheap, few where they are not, and as many as asked for always."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from compared_runs import HITS, Hits, hits_run
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from hardlook.errors import RunError
from hardlook.harness.stats import paired_bootstrap_scores, permutation_test
from hardlook.harness.stats.bootstrap import ratio
from hardlook.harness.stats.jackknife import Spread
from hardlook.harness.tally import Entry, SumTally
from hardlook.randomness import generator
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.paired_tallies import (
    PairedTally,
    SwapPlan,
    pair_tallies,
    plan_swaps,
    summarize_replicates,
)

CLASSES = 3

counts = st.lists(st.tuples(*[st.integers(0, 9)] * 4), min_size=1, max_size=6)


def tally(sums, statistic=ratio, labels=None, names=("score",)):
    entries = tuple(
        Entry(name, len(np.asarray(labels if labels is not None else range(sums.shape[0])))) for name in names
    )
    return SumTally(entries, sums, statistic, ("test",), "image", labels)


def paired(*tallies, swaps=500, resamples=200, seed=0, level=0.95):
    return pair_tallies(tallies, plan=SwapPlan(swaps), resamples=resamples, level=level, seed=seed)


def test_where_more_than_clusters_was_drawn_the_larger_p_value_counts():
    """One of swaps and one of a t test, each of which may be the larger."""
    gains = np.array([0.03, 0.3])
    spread = Spread(np.array([0.1, 0.1]), np.array([30.0, 30.0]), np.ones(2), np.zeros(2))
    entries = (Entry("a", 9), Entry("b", 9))
    found = PairedTally(
        entries=(entries, entries),
        values=np.stack([gains, np.zeros(2)]),
        replicates=np.empty((2, 0, 2)),
        p_values={(0, 1): np.array([0.001, 0.2])},
        level=0.95,
        clusters=9,
        resampled="task",
        swaps=99,
        exact=False,
        spreads={(0, 1): spread},
        wider={(0, 1): np.array([0.05, 0.05])},
    )
    tested = 2 * stats.t.sf(gains / 0.1, 30)
    assert tested[0] > 0.001 and tested[1] < 0.2
    assert found.find_p_values(0, 1) == pytest.approx([tested[0], 0.2])


class Mixed:
    """A tally that shows nothing of its sums, so that the general way is taken."""

    def __init__(self, inner):
        self.inner = inner
        self.entries, self.key, self.resampled, self.clusters = (
            inner.entries,
            inner.key,
            inner.resampled,
            inner.clusters,
        )

    def values(self, weights=None):
        return self.inner.values(weights)

    def mixed(self, other, swaps):
        return self.inner.mixed(other.inner, swaps)


def ious(totals):
    each = totals[..., :CLASSES] / totals[..., CLASSES:]
    return np.concatenate([each, each.mean(-1, keepdims=True)], axis=-1)


def pixel_sums(rng, n=20):
    union = rng.integers(5, 50, (n, CLASSES))
    return [np.concatenate([rng.integers(0, union), union], axis=1) for _ in range(2)]


@pytest.mark.parametrize("n", [3, 8, 12])
def test_exact_p_values_of_means_are_those_of_scipy(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(0.5, 1, n), rng.normal(0, 1, n)

    def apart(x, y, axis=-1):
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    theirs = stats.permutation_test((a, b), apart, permutation_type="samples", n_resamples=np.inf)
    ones = np.ones(n)
    found = paired(tally(np.stack([a, ones], 1)), tally(np.stack([b, ones], 1)))
    assert found.p_values[0, 1][0] == pytest.approx(theirs.pvalue, rel=1e-12)
    assert found.values[0, 0] - found.values[1, 0] == pytest.approx(theirs.statistic, rel=1e-12)


def test_every_entry_agrees_with_the_test_of_one_score():
    a, b = pixel_sums(np.random.default_rng(0))
    names = ("x", "y", "z", "mean")
    found = paired(tally(a, ious, names=names), tally(b, ious, names=names), swaps=400)
    for column in range(4):
        alone = permutation_test(
            a, b, lambda totals, c=column: ious(totals)[..., c], rng=generator(0, "swaps", "test"), swaps=400
        )
        assert found.p_values[0, 1][column] == alone.p_value
        assert found.values[0, column] - found.values[1, column] == pytest.approx(alone.difference, rel=1e-12)


def test_intervals_are_those_of_the_paired_bootstrap():
    a, b = pixel_sums(np.random.default_rng(1))
    names = ("x", "y", "z", "mean")
    found = paired(tally(a, ious, names=names), tally(b, ious, names=names), resamples=300)
    error, low, high = found.summarize_difference(0, 1)
    alone = paired_bootstrap_scores(a, b, ious, rng=generator(0, "test"), resamples=300, method="percentile")
    assert low == pytest.approx([one.interval.low for one in alone], abs=1e-12)
    assert high == pytest.approx([one.interval.high for one in alone], abs=1e-12)
    assert error == pytest.approx([one.standard_error for one in alone], rel=1e-9)


@given(counts, st.integers(0, 3))
@settings(max_examples=40)
def test_comparing_the_other_way_round_changes_the_sign_alone(rows, seed):
    sums = np.array(rows * 4)
    a, b = tally(sums[:, :2]), tally(sums[:, 2:])
    forward, backward = paired(a, b, swaps=60, resamples=40, seed=seed), paired(b, a, swaps=60, resamples=40, seed=seed)
    assert np.array_equal(forward.p_values[0, 1], backward.p_values[0, 1], equal_nan=True)
    assert np.array_equal(forward.values, backward.values[::-1], equal_nan=True)
    (error, low, high), (other_error, other_low, other_high) = (
        forward.summarize_difference(0, 1),
        backward.summarize_difference(0, 1),
    )
    assert np.allclose(error, other_error, equal_nan=True)
    assert np.allclose(low, -other_high, equal_nan=True) and np.allclose(high, -other_low, equal_nan=True)


@given(counts)
@settings(max_examples=30)
def test_a_model_never_differs_from_itself(rows):
    sums = np.array(rows * 3)[:, :2] + [[0, 1]]
    found = paired(tally(sums), tally(sums.copy()), swaps=50, resamples=20)
    assert found.p_values[0, 1].tolist() == [1.0]
    assert found.summarize_difference(0, 1)[0].tolist() in ([0.0], [pytest.approx(np.nan, nan_ok=True)])


def test_three_models_give_the_p_values_of_each_pair_alone():
    rng = np.random.default_rng(2)
    tallies = [tally(sums, ious, names=("x", "y", "z", "mean")) for _ in range(2) for sums in pixel_sums(rng)][:3]
    together = paired(*tallies)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        alone = paired(tallies[i], tallies[j])
        assert np.array_equal(together.p_values[i, j], alone.p_values[0, 1])
        assert np.allclose(together.summarize_difference(i, j), alone.summarize_difference(0, 1))


def test_sparse_sums_and_tallies_of_any_other_make_agree_with_dense_sums():
    a, b = pixel_sums(np.random.default_rng(3))
    labels = [f"image-{place // 2}" for place in range(len(a))]
    names = ("x", "y", "z", "mean")
    dense = [tally(one, ious, labels, names) for one in (a, b)]
    thin = [tally(sparse.csr_array(one), ious, labels, names) for one in (a, b)]
    whole = paired(*dense)
    for others in (thin, [Mixed(one) for one in dense]):
        found = paired(*others)
        assert np.array_equal(found.p_values[0, 1], whole.p_values[0, 1])
        assert np.allclose(found.replicates, whole.replicates)
    assert whole.clusters == 10


def test_undefined_scores_have_no_p_value_and_undefined_swaps_count_against_a_claim():
    a, b = np.array([[1, 2, 0, 0], [0, 0, 0, 0]]), np.array([[0, 0, 0, 0], [0, 2, 0, 0]])

    def two(totals):
        return np.stack([ratio(totals[..., :2]), ratio(totals[..., 2:])], axis=-1)

    found = paired(tally(a, two, names=("one", "none")), tally(b, two, names=("one", "none")))
    # Swapping one of the two images leaves a model without any union: those two of four swaps count as reached.
    assert found.p_values[0, 1][0] == 1.0
    assert np.isnan(found.p_values[0, 1][1])


def test_spread_uses_the_defined_replicates_only():
    replicates = np.array([[1.0, 1.0, np.nan], [2.0, np.nan, np.nan], [3.0, 3.0, np.inf]])
    error, low, high = summarize_replicates(replicates, 0.6)
    assert error[:2] == pytest.approx([1.0, np.std([1, 3], ddof=1)])
    assert (low[0], high[0]) == pytest.approx(tuple(np.quantile([1, 2, 3], [0.2, 0.8])))
    assert (low[1], high[1]) == pytest.approx(tuple(np.quantile([1, 3], [0.2, 0.8])))
    assert np.isnan([error[2], low[2], high[2]]).all()
    # A third is undefined, more than what an interval of level .8 leaves out.
    assert np.isnan(summarize_replicates(replicates, 0.8)[1][1])
    assert np.isnan(summarize_replicates(np.empty((0, 2)), 0.95)).all()


def test_tallies_of_other_clusters_or_scores_are_refused():
    sums = np.ones((4, 2))
    with pytest.raises(RunError, match="do not have the same scores of the same units"):
        paired(tally(sums), tally(np.ones((3, 2))))
    with pytest.raises(RunError, match="do not have the same scores"):
        paired(tally(sums), tally(sums, names=("other",)))
    wide = SumTally(tally(sums).entries, np.ones((4, 3)), ratio, ("test",), "image")
    with pytest.raises(RunError, match=r"same columns: \(4, 2\) and \(4, 3\)"):
        paired(tally(sums), wide)


@dataclass(frozen=True, eq=False)
class CostlyTally(SumTally):
    costly: ClassVar[bool] = True


class CostlyHits(Hits):
    def _tally(self, hits, where):
        plain = super()._tally(hits, where)
        return CostlyTally(plain.entries, plain.sums, plain.statistic, plain.key, plain.resampled)


def swap_plan_tally(kind, clusters):
    return kind((Entry("rate", clusters),), np.ones((clusters, 2)), ratio, ("test",), "image")


@given(st.integers(1, 40), st.integers(1, 500), st.sampled_from([0.01, 0.05]))
def test_costly_scores_never_take_more_than_999_swaps_unless_asked(clusters, comparisons, alpha):
    plan = plan_swaps(swap_plan_tally(CostlyTally, clusters), None, comparisons, alpha)
    assert plan.count_swaps(clusters) == (2**clusters if clusters <= 9 else 999)
    asked = plan_swaps(swap_plan_tally(CostlyTally, clusters), 5_000, comparisons, alpha)
    assert asked.count_swaps(clusters) == (2**clusters if clusters <= 12 else 5_000)


@given(st.integers(15, 40), st.integers(1, 2_000), st.sampled_from([0.01, 0.05]))
def test_cheap_scores_take_enough_for_the_headline_to_say_something(clusters, comparisons, alpha):
    tried = plan_swaps(swap_plan_tally(SumTally, clusters), None, comparisons, alpha).count_swaps(clusters)
    assert tried >= 9_999
    assert comparisons / (tried + 1) <= alpha / 2
    assert plan_swaps(swap_plan_tally(SumTally, clusters), 77, comparisons, alpha) == SwapPlan(77)


def two(benchmark, n=30):
    rng = np.random.default_rng(0)
    return [hits_run(rng.random(n), name, benchmark=benchmark) for name in ("ant", "bee")]


def test_a_note_says_that_swaps_were_saved_and_how_to_have_more():
    saved = compare_runs(two(CostlyHits()), resamples=5)
    assert {one.swaps for one in saved.differences} == {999}
    (note,) = [note for note in saved.notes if "take long" in note]
    assert "999 random swaps" in note and "at most 9 images" in note and "`--swaps`" in note
    asked = compare_runs(two(CostlyHits()), resamples=5, swaps=1_500)
    assert {one.swaps for one in asked.differences} == {1_500}
    assert not any("take long" in note for note in asked.notes)
    cheap = compare_runs(two(HITS), resamples=5)
    assert {one.swaps for one in cheap.differences} == {9_999} and len(cheap.notes) == 1


def test_few_clusters_get_every_swap_and_the_same_p_value_whatever_they_cost():
    plain, dear = (compare_runs(two(benchmark, 8), resamples=5).differences for benchmark in (HITS, CostlyHits()))
    assert all(one.exact and one.swaps == 2**8 for one in (*plain, *dear))
    assert [one.p_value for one in plain] == [one.p_value for one in dear]
    (dear_ten,) = {(one.swaps, one.exact) for one in compare_runs(two(CostlyHits(), 10), resamples=5).differences}
    assert dear_ten == (999, False)


def test_a_family_too_large_for_its_swaps_is_named_with_the_number_that_would_do():
    groups = [f"g{place % 12}" for place in range(240)]
    rng = np.random.default_rng(1)
    runs = [hits_run(rng.random(240), name, groups=groups) for name in ("ant", "bee")]
    found = compare_runs(runs, resamples=5, swaps=99)
    # Twelve slices: 12 / 100 is above 0.05, and 12 / 0.05 = 240 swaps bring the smallest p-value below 0.05 / 12.
    named = [note for note in found.notes if note.startswith("Too few swaps for")]
    assert [note.split(":")[0] for note in named] == [
        "Too few swaps for rate by group", "Too few swaps for misses by group"
    ]  # fmt: skip
    assert all("`--swaps 240`" in note for note in named)
    assert all(one.verdict == "cannot tell" for one in found.differences if one.slice)
    assert not [note for note in compare_runs(runs, resamples=5, swaps=240).notes if "Too few" in note]


@pytest.mark.parametrize("alone", ["first", "second"])
def test_a_score_that_rests_on_one_cluster_of_one_model_has_the_same_interval_either_way(alone):
    rng = np.random.default_rng(2)
    sums = [np.stack([rng.random(20), np.ones(20)], axis=1) for _ in range(2)]
    tallies = [swap_plan_tally(SumTally, 20), swap_plan_tally(SumTally, 20)]
    tallies = [replace(one, sums=rows) for one, rows in zip(tallies, sums, strict=True)]
    place = ("first", "second").index(alone)
    tallies[place] = replace(tallies[place], entries=(Entry("rate", 20, clusters=1),))
    from hardlook.report.compare.differences import compute_differences

    paired = pair_tallies(tallies, plan=SwapPlan(50), resamples=50, level=0.95, seed=0)
    (one,) = compute_differences(paired, ["ant", "bee"], ["rate"])
    assert one.interval is not None and one.clusters == 20 and math.isfinite(one.standard_error)


def test_of_very_many_clusters_groups_are_swapped_and_resampled(monkeypatch):
    rng = np.random.default_rng(5)
    models = [np.column_stack([rng.random(120) + shift, np.ones(120)]) for shift in (0.0, 0.1)]
    tallies = [SumTally((Entry("mean", 120),), sums, ratio, ("many",), "unit") for sums in models]
    # The same by hand: every thirtieth unit is in the same group.
    by_hand = [
        SumTally((Entry("mean", 120),), sums.reshape(4, 30, 2).sum(axis=0), ratio, ("many",), "unit") for sums in models
    ]
    settings = {"plan": SwapPlan(499), "resamples": 100, "level": 0.95, "seed": 0}
    expected = pair_tallies(by_hand, **settings)
    monkeypatch.setattr("hardlook.harness.tally.MAX_RESAMPLED_CLUSTERS", 119)
    monkeypatch.setattr("hardlook.report.compare.paired_tallies.SWAPPED_GROUPS", 30)
    found = pair_tallies(tallies, **settings)
    assert found.p_values[0, 1] == expected.p_values[0, 1]
    assert np.allclose(found.replicates, expected.replicates, rtol=1e-12)
    assert np.allclose(found.values, expected.values, rtol=1e-12)
    assert (found.clusters, expected.clusters) == (120, 30)
