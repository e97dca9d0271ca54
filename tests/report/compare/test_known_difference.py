"""Planted models with a known difference: the verdict is right in 95 of 100 seeds, and claims none without one in 95.

Each seed plants another model of the same faults. The claims without a difference are those of a test at 0.05, so about
five of a hundred are to be expected whatever the seeds are. docs/compare.md has the shares of 800 seeds.
"""

import polars as pl
import pytest
from compared_runs import planted_run

from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.report.compare.comparison import compare_runs

SEEDS = 100

GOOD, BAD = {"stranger": 0.05}, {"stranger": 0.6}


@pytest.fixture(scope="module")
def planted():
    """Runs of good and of bad segmenters, a seed each, on the same 20 scenes."""
    rehearsal = InMemoryRun("closed-miou", {"scenes": 20, "resamples": 0, "keep_predictions": False})

    def runs(faults, start):
        for seed in range(start, start + SEEDS):
            records = rehearsal.records("planted-segmenter", {**faults, "seed": seed})
            # Without contexts only the scores over all units are compared, which saves time and changes none of them.
            yield planted_run(rehearsal, records.with_columns(context=pl.lit("")), f"seed {seed}")

    return list(runs(GOOD, 0)), list(runs(BAD, 1_000))


def verdict(first, second, seed):
    (headline,) = compare_runs([first, second], swaps=999, resamples=2, seed=seed).headline
    return headline.verdict


def test_a_known_difference_is_found(planted):
    good, bad = planted
    found = [verdict(one, other, seed) for seed, (one, other) in enumerate(zip(good, bad, strict=True))]
    assert found.count("better") >= 95
    assert "worse" not in found


@pytest.mark.parametrize("kind", [0, 1], ids=["good", "bad"])
def test_no_difference_is_seldom_called_one(planted, kind):
    runs = planted[kind]
    neighbours = [*runs[1:], runs[0]]
    found = [verdict(one, other, seed) for seed, (one, other) in enumerate(zip(runs, neighbours, strict=True))]
    assert SEEDS - found.count("cannot tell") <= 5


FEW_TASKS = {
    "scenes": 480, "tasks": 16, "repeats": 1, "queries": 3, "modes": "ood", "ways": "3", "shots": "1", "resamples": 0
}  # fmt: skip


def test_learners_that_follow_the_context_are_told_from_those_that_do_not():
    rehearsal = InMemoryRun("metacoco", FEW_TASKS)

    def run(context, seed):
        records = rehearsal.records("planted-learner", {"context": context, "seed": seed})
        return planted_run(rehearsal, records, f"context {context}, seed {seed}")

    good, other, bad = run(0.1, 0), run(0.1, 1), run(0.9, 2)
    found = compare_runs([good, other, bad], swaps=999, resamples=20)
    told = {(one.first, one.second): one.verdict for one in found.headline if one.name == "ood"}
    names = found.models
    assert told == {
        (names[0], names[1]): "cannot tell",
        (names[0], names[2]): "better",
        (names[1], names[2]): "better",
    }
    assert [place.rank for place in found.standings["ood"]] == [1, 1, 3]


def test_fragile_discs_need_more_clicks_and_a_disc_is_equal_to_itself():
    rehearsal = InMemoryRun("rclicks", {"scenes": 8, "rounds": 3, "resamples": 0})
    steady, fragile = (rehearsal.records("disc", {"fragility": dial}) for dial in (0.1, 0.9))
    runs = [planted_run(rehearsal, records, name) for records, name in ((steady, "steady"), (fragile, "fragile"))]
    found = compare_runs(runs, swaps=999, resamples=20)
    told = {one.name: one for one in found.headline}
    # Fewer clicks are better, so a negative difference is.
    assert told["noc90"].value < 0 and told["noc90"].verdict == "better"
    # The centre rule clicks where even a fragile disc gives all of the object.
    assert told["noc90-base"].value == 0 and told["noc90-base"].verdict == "cannot tell"
    twin = planted_run(rehearsal, steady, "twin")
    assert all(
        one.verdict in ("cannot tell", "undefined") for one in compare_runs([runs[0], twin], swaps=99).differences
    )
