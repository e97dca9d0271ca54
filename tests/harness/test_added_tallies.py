"""Tallies added up from parts equal one tally of all records, bit for bit."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from hardlook.errors import HardlookError
from hardlook.harness.added_tallies import ExactSum, TallyAdder
from hardlook.harness.stats.bootstrap import ratio
from hardlook.harness.tally import Draws, Entry, GroupedTally, SeedTally, SoftTally, SumTally, score_tally
from hardlook.report.compare.paired_tallies import SWAPPED_GROUPS, SwapPlan, describe_costly_swaps, pair_tallies


def both(totals):
    return np.stack([ratio(totals), 1 - ratio(totals)], axis=-1)


def tally(sums, kind=SumTally):
    entries = (Entry("rate", len(sums), range=(0, 1)), Entry("misses", len(sums), {"part": "x"}, range=(0, 1)))
    return kind(entries, np.asarray(sums, float), both, ("example",), "image")


def add(parts, groups=1000, kind=SumTally):
    adder = TallyAdder(groups)
    for part in parts:
        adder.add([tally(part, kind)])
    return adder.tallies()[0]


def draw_sums(count, whole, seed=0):
    rng = np.random.default_rng(seed)
    hits = rng.random(count) ** 3
    return np.stack([np.round(hits) if whole else hits, np.ones(count)], axis=1)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("count", "method"),
    [
        (300, "jackknife"),
        (300, "percentile"),
        (49_000, "jackknife"),
        (70_001, "jackknife"),
        (70_001, "percentile"),
        (70_001, "bca"),
    ],
)
def test_scores_and_intervals_are_those_of_one_tally(whole, count, method):
    sums = draw_sums(count, whole)
    draws = Draws(seed=3, resamples=60, interval=method)
    added = add(np.split(sums, [1, 100, count // 2]))
    assert score_tally(added, draws) == score_tally(tally(sums), draws)
    assert isinstance(added, GroupedTally) == (count > 50_000)


def test_a_percentile_interval_of_very_many_clusters_draws_groups():
    sums = draw_sums(120_000, whole=True)
    draws = Draws(seed=3, resamples=400, interval="percentile")
    found = score_tally(add(np.split(sums, [50, 60_000])), draws)[0]
    expected = score_tally(tally(sums), Draws(seed=3, resamples=1))[0]
    assert found.interval.n == 120_000
    assert found.interval.low == pytest.approx(expected.interval.low, abs=2e-4)
    assert found.interval.high == pytest.approx(expected.interval.high, abs=2e-4)


@pytest.mark.parametrize("kind", [SumTally, SoftTally])
def test_comparisons_are_those_of_one_tally(kind):
    one, other = draw_sums(70_000, kind is SumTally), draw_sums(70_000, kind is SumTally, seed=1)
    options = {"plan": SwapPlan(49), "resamples": 30, "level": 0.95, "seed": 0, "method": "jackknife"}
    whole = pair_tallies([tally(one, kind), tally(other, kind)], **options)
    parts = [add(np.split(sums, [7, 30_000]), SWAPPED_GROUPS, kind) for sums in (one, other)]
    added = pair_tallies(parts, **options)
    # Sums that are not whole numbers must not be subtracted from each other, also those of groups.
    assert type(parts[0].as_groups()) is kind
    assert added.clusters == whole.clusters == 70_000 and added.swaps == whole.swaps
    for name in ("values", "replicates"):
        assert np.array_equal(getattr(added, name), getattr(whole, name))
    assert np.array_equal(added.p_values[0, 1], whole.p_values[0, 1])
    for mine, theirs in zip(added.summarize_difference(0, 1), whole.summarize_difference(0, 1), strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("kind", [SumTally, SoftTally])
def test_comparisons_over_seeds_are_those_of_one_tally(kind):
    sums = [draw_sums(60_000, kind is SumTally, seed) for seed in range(4)]
    options = {"plan": SwapPlan(49), "resamples": 20, "level": 0.95, "seed": 0}
    whole, added = (
        pair_tallies([SeedTally(tuple(members[:2])), SeedTally(tuple(members[2:]))], **options)
        for members in (
            [tally(one, kind) for one in sums],
            [add(np.split(one, [7, 30_000]), SWAPPED_GROUPS, kind) for one in sums],
        )
    )
    for name in ("values", "replicates"):
        assert np.array_equal(getattr(added, name), getattr(whole, name))
    assert np.array_equal(added.p_values[0, 1], whole.p_values[0, 1]) and 0.02 < whole.p_values[0, 1][0] < 1
    assert np.array_equal(added.wider[0, 1], whole.wider[0, 1])
    assert describe_costly_swaps([SeedTally((tally(sums[0]),))], None, [SwapPlan()])[0].startswith(
        "There are more than"
    )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"labels": ["a", "b"]}, "clusters of several rows"),
        ({"strata": ["a", "b"]}, "strata"),
        ({"shares": (None, None)}, "shared images"),
        ({"sums": csr_array(np.ones((2, 2)))}, "dense sums"),
        ({"entries": (Entry("rate", 2, clusters=1),)}, "clusters or classes of its own"),
        ({"entries": (Entry("rate", 2, rests_on={"class": 3}),)}, "clusters or classes of its own"),
    ],
)
def test_tallies_that_do_not_add_up_are_refused(changed, why):
    with pytest.raises(HardlookError, match=why) as caught:
        TallyAdder().add([replace(tally(np.ones((2, 2))), **changed)])
    assert "additive" in str(caught.value)


def test_a_score_without_units_in_one_part_has_those_of_the_others():
    def explain(sums):
        one = tally(sums)
        return replace(one, entries=tuple(replace(entry, reason="" if entry.n else "no unit") for entry in one.entries))

    none, some = np.ones((0, 2)), np.ones((2, 2))
    for parts in ([none, some], [some, none], [none, none]):
        adder = TallyAdder()
        for part in parts:
            adder.add([explain(part)])
        (added,), whole = adder.tallies(), explain(np.concatenate(parts))
        assert added.entries == whole.entries


def test_parts_with_other_scores_are_refused():
    adder = TallyAdder()
    adder.add([tally(np.ones((2, 2)))])
    with pytest.raises(HardlookError, match="other scores"):
        adder.add([tally(np.ones((2, 2))), tally(np.ones((2, 2)))])
    with pytest.raises(HardlookError, match="other scores"):
        adder.add([replace(tally(np.ones((2, 2))), entries=(Entry("hits", 2), Entry("misses", 2)))])


@given(st.lists(st.lists(st.floats(-1e200, 1e200), max_size=8), max_size=40))
@settings(deadline=None)
def test_an_exact_sum_is_rounded_once(parts):
    total = ExactSum()
    for part in parts:
        total.add(np.array(part, float))
    assert total.value() == math.fsum(value for part in parts for value in part)


def test_an_exact_sum_keeps_what_cancels():
    total = ExactSum()
    for number in range(300):
        total.add(np.array([1e100, 0.1, 2.0**60 + number]))
    for number in range(300):
        total.add(np.array([-1e100, -(2.0**60) - number]))
    assert total.value() == math.fsum([0.1] * 300)
    assert len(total._parts) <= 100
