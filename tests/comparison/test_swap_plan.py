"""How many swaps are tried: many where they are cheap, few where they are not, and as many as asked for always."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.comparison import compare
from hardlook.comparison.paired import pair_tallies
from hardlook.comparison.swap_plan import SwapPlan, swap_plan
from hardlook.contract.tally import Entry, SumTally, ratio

from .planted_runs import HITS, Hits, hits_run


@dataclass(frozen=True, eq=False)
class CostlyTally(SumTally):
    costly: ClassVar[bool] = True


class CostlyHits(Hits):
    def _tally(self, hits, where):
        plain = super()._tally(hits, where)
        return CostlyTally(plain.entries, plain.sums, plain.statistic, plain.key, plain.resampled)


def tally(kind, clusters):
    return kind((Entry("rate", clusters),), np.ones((clusters, 2)), ratio, ("test",), "image")


@given(st.integers(1, 40), st.integers(1, 500), st.sampled_from([0.01, 0.05]))
def test_costly_scores_never_take_more_than_999_swaps_unless_asked(clusters, comparisons, alpha):
    plan = swap_plan(tally(CostlyTally, clusters), None, comparisons, alpha)
    assert plan.tried(clusters) == (2**clusters if clusters <= 9 else 999)
    asked = swap_plan(tally(CostlyTally, clusters), 5_000, comparisons, alpha)
    assert asked.tried(clusters) == (2**clusters if clusters <= 12 else 5_000)


@given(st.integers(15, 40), st.integers(1, 2_000), st.sampled_from([0.01, 0.05]))
def test_cheap_scores_take_enough_for_the_headline_to_say_something(clusters, comparisons, alpha):
    tried = swap_plan(tally(SumTally, clusters), None, comparisons, alpha).tried(clusters)
    assert tried >= 9_999
    assert comparisons / (tried + 1) <= alpha / 2
    assert swap_plan(tally(SumTally, clusters), 77, comparisons, alpha) == SwapPlan(77)


def two(benchmark, n=30):
    rng = np.random.default_rng(0)
    return [hits_run(rng.random(n), name, benchmark=benchmark) for name in ("ant", "bee")]


def test_a_note_says_that_swaps_were_saved_and_how_to_have_more():
    saved = compare(two(CostlyHits()), resamples=5)
    assert {one.swaps for one in saved.differences} == {999}
    (note,) = [note for note in saved.notes if "take long" in note]
    assert "999 random swaps" in note and "at most 9 images" in note and "`--swaps`" in note
    asked = compare(two(CostlyHits()), resamples=5, swaps=1_500)
    assert {one.swaps for one in asked.differences} == {1_500}
    assert not any("take long" in note for note in asked.notes)
    cheap = compare(two(HITS), resamples=5)
    assert {one.swaps for one in cheap.differences} == {9_999} and len(cheap.notes) == 1


def test_few_clusters_get_every_swap_and_the_same_p_value_whatever_they_cost():
    plain, dear = (compare(two(benchmark, 8), resamples=5).differences for benchmark in (HITS, CostlyHits()))
    assert all(one.exact and one.swaps == 2**8 for one in (*plain, *dear))
    assert [one.p_value for one in plain] == [one.p_value for one in dear]
    (dear_ten,) = {(one.swaps, one.exact) for one in compare(two(CostlyHits(), 10), resamples=5).differences}
    assert dear_ten == (999, False)


def test_a_family_too_large_for_its_swaps_is_named_with_the_number_that_would_do():
    groups = [f"g{place % 12}" for place in range(240)]
    rng = np.random.default_rng(1)
    runs = [hits_run(rng.random(240), name, groups=groups) for name in ("ant", "bee")]
    found = compare(runs, resamples=5, swaps=99)
    # Twelve slices: 12 / 100 is above 0.05, and 12 / 0.05 = 240 swaps bring the smallest p-value below 0.05 / 12.
    named = [note for note in found.notes if note.startswith("Too few swaps for")]
    assert [note.split(":")[0] for note in named] == [
        "Too few swaps for rate by group", "Too few swaps for misses by group"
    ]  # fmt: skip
    assert all("`--swaps 240`" in note for note in named)
    assert all(one.verdict == "cannot tell" for one in found.differences if one.slice)
    assert not [note for note in compare(runs, resamples=5, swaps=240).notes if "Too few" in note]


@pytest.mark.parametrize("alone", ["first", "second"])
def test_a_score_that_rests_on_one_cluster_of_one_model_has_the_same_interval_either_way(alone):
    rng = np.random.default_rng(2)
    sums = [np.stack([rng.random(20), np.ones(20)], axis=1) for _ in range(2)]
    tallies = [tally(SumTally, 20), tally(SumTally, 20)]
    tallies = [replace(one, sums=rows) for one, rows in zip(tallies, sums, strict=True)]
    place = ("first", "second").index(alone)
    tallies[place] = replace(tallies[place], entries=(Entry("rate", 20, clusters=1),))
    from hardlook.comparison.differences import differences_of

    paired = pair_tallies(tallies, plan=SwapPlan(50), resamples=50, level=0.95, seed=0)
    (one,) = differences_of(paired, ["ant", "bee"], ["rate"])
    assert one.interval is not None and one.clusters == 20 and math.isfinite(one.standard_error)
