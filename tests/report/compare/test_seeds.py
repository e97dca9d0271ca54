"""Methods trained with several seeds: their runs are a level of their own, and resamples are the comparison's own."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from compared_runs import HitOptions, hits_run
from scipy import stats

from hardlook.errors import OptionError
from hardlook.harness.stats import ratio
from hardlook.harness.tally import Entry, SeedTally, SumTally
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.compare.document import write_comparison
from hardlook.report.compare.paired_tallies import SwapPlan, pair_tallies

UNITS = 40


def hits(rng, quality):
    return (rng.random(UNITS) < quality).astype(float)


def methods(seed, first, second):
    """Runs of two methods, of these qualities each."""
    rng = np.random.default_rng(seed)
    return [
        [hits_run(hits(rng, quality), f"{name}-{place}") for place, quality in enumerate(qualities)]
        for name, qualities in (("ant", first), ("bee", second))
    ]


def test_a_score_is_the_mean_over_the_runs_and_its_interval_covers_the_seeds():
    ant, bee = methods(0, (0.5, 0.9, 0.7), (0.6, 0.6, 0.6))
    found = compare_runs([ant, bee], names=["ant", "bee"], swaps=99)
    rates = [[float(run.records["hit"].mean()) for run in group] for group in (ant, bee)]
    (one,) = [one for one in found.headline if one.name == "rate"]
    assert (one.first_value, one.second_value) == pytest.approx([np.mean(group) for group in rates])
    # Welch's variance of the two means over seeds is in the standard error, and more units would not reduce it.
    seeds = sum(np.var(group, ddof=1) / 3 for group in rates)
    assert one.fixed_error**2 == pytest.approx(seeds)
    assert one.standard_error**2 > seeds
    single = compare_runs([ant[0], bee[0]], names=["ant", "bee"], swaps=99)
    assert single.headline[0].fixed_error == 0
    assert found.seeds == (3, 3) and single.seeds == ()
    assert any("means over runs of several seeds (ant: 3, bee: 3)" in note for note in found.notes)


def test_runs_that_differ_by_their_seed_alone_are_seldom_called_different():
    """Quality varies by run with a deviation of .15: two methods of the same quality, 60 times."""
    told = alone = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        first, second = (np.clip(0.6 + 0.15 * rng.normal(size=3), 0, 1) for _ in range(2))
        ant, bee = methods(1_000 + seed, first, second)
        told += compare_runs([ant, bee], names=["ant", "bee"], swaps=99, resamples=2).headline[0].is_significant
        alone += compare_runs([ant[0], bee[0]], names=["ant", "bee"], swaps=99, resamples=2).headline[0].is_significant
    # One run each: the difference of two runs is real, and is not that of the methods.
    assert alone / 60 > 0.15
    assert told / 60 <= 0.1


def test_more_units_cannot_make_up_for_few_seeds():
    ant, bee = methods(3, (0.4, 0.9, 0.7), (0.6, 0.65, 0.5))
    (one, *_) = compare_runs([ant, bee], names=["ant", "bee"], swaps=99).headline
    assert one.verdict == "cannot tell" and one.units_needed == np.inf


def test_a_method_with_one_run_is_said_to_have_one():
    ant, bee = methods(4, (0.9, 0.9), (0.5,))
    notes = compare_runs([ant, bee], names=["ant", "bee"], swaps=99).notes
    assert any("bee has one run: how much its scores vary with its seed is unknown" in note for note in notes)


def test_one_method_alone_is_no_comparison():
    ant, _ = methods(5, (0.9, 0.8), ())
    with pytest.raises(OptionError, match="at least two models"):
        compare_runs([ant])


def test_the_page_and_the_file_name_all_runs(tmp_path):
    groups = methods(6, (0.9, 0.8), (0.5, 0.4))
    found = compare_runs(groups, names=["ant", "bee"], swaps=9)
    document = write_comparison(found, groups, tmp_path / "c.html", examples=0)
    assert [len(model["folders"]) for model in document["models"]] == [2, 2]
    assert json.loads((tmp_path / "c.json").read_text())["interval"] == "jackknife"


def test_swaps_between_methods_take_every_pair_of_runs():
    rng = np.random.default_rng(0)

    def tally():
        return SumTally((Entry("a", 6),), rng.integers(1, 9, (6, 2)).astype(float), ratio, ("k",), "image")

    ours, theirs = (tally(), tally()), (tally(), tally(), tally())
    swaps = rng.integers(0, 2, (4, 6)).astype(float)
    expected = np.mean([one.mixed(two, swaps) for one, two in product(ours, theirs)], axis=0)
    assert SeedTally(ours).mixed(SeedTally(theirs), swaps) == pytest.approx(expected)


def test_the_spread_over_clusters_is_that_of_the_mean_over_runs():
    rng = np.random.default_rng(1)
    values = rng.random((2, 2, 20))
    tallies = [
        SeedTally(
            tuple(
                SumTally((Entry("a", 20),), np.stack([row, np.ones(20)], axis=1), ratio, ("k",), "image")
                for row in group
            )
        )
        for group in values
    ]
    paired = pair_tallies(tallies, plan=SwapPlan(9), resamples=0, level=0.95, seed=0, method="jackknife")
    difference = values[0].mean(axis=0) - values[1].mean(axis=0)
    seeds = sum(group.mean(axis=1).var(ddof=1) / 2 for group in values)
    assert paired.spreads[0, 1].standard_error[0] ** 2 == pytest.approx(stats.sem(difference) ** 2 + seeds)


def test_the_number_of_resamples_is_the_comparisons_own():
    """Runs of 100 resamples made an interval too narrow by a sixth."""
    rng = np.random.default_rng(2)
    runs = [
        replace(hits_run(hits(rng, 0.6), name), options=HitOptions(resamples=count))
        for name, count in (("ant", 100), ("bee", 50))
    ]
    many = compare_runs(runs, swaps=9, interval="percentile")
    assert many.resamples == 2_000
    same = compare_runs(
        [replace(run, options=HitOptions(resamples=3_000)) for run in runs], swaps=9, interval="percentile"
    )
    assert same.headline[0].interval == many.headline[0].interval
    assert compare_runs(runs, swaps=9, resamples=5_000).resamples == 5_000
