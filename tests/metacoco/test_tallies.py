"""What MetaCoCo's scores are made from: it gives the scorecard's values, and takes tasks from another run."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.metacoco.benchmark import METACOCO
from hardlook.metacoco.tasks.images import MODES

LEARNERS = {"misled": {"context": 0.7, "noise": 0.2}, "guessing": {"noise": 0.5}, "faultless": {}}


@pytest.fixture(scope="module")
def runs():
    """(options, {learner: records}): all modes, two ways, two shots."""
    given = {"tasks": 6, "queries": 2, "resamples": 0, "modes": ",".join(MODES), "ways": "4,3", "shots": "1,2"}
    rehearsal = InMemoryRun("metacoco", given)
    return rehearsal.options, {name: rehearsal.records("planted-learner", args) for name, args in LEARNERS.items()}


def same(one, other):
    return (math.isnan(one) and math.isnan(other)) or one == pytest.approx(other, abs=1e-12)


def scores(records, options):
    return {(score.name, *sorted(score.slice.items())): score for score in METACOCO.score(records, options).scores}


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_entry_is_a_score_and_every_score_an_entry(runs, learner):
    options, records = runs[0], runs[1][learner]
    found = scores(records, options)
    entries = {}
    for tally in METACOCO.tallies(records, options):
        for entry, value in zip(tally.entries, tally.values()[0], strict=True):
            if entry.n:
                entries[entry.name, *sorted(entry.slice.items())] = entry, value
    assert set(entries) == set(found)
    for key, (entry, value) in entries.items():
        assert same(value, found[key].value), key
        assert (entry.n, entry.comparable) == (found[key].n, found[key].comparable)


def test_without_errors_attraction_keeps_its_place_and_is_not_shown(runs):
    options, records = runs
    misled, faultless = (METACOCO.tallies(records[name], options) for name in ("misled", "faultless"))
    names = [
        [(entry.name, dict(entry.slice)) for tally in some for entry in tally.entries] for some in (misled, faultless)
    ]
    assert names[0] == names[1]
    assert [tally.sums.shape for tally in misled] == [tally.sums.shape for tally in faultless]
    unseen = [entry for tally in faultless for entry in tally.entries if "attraction" in entry.name]
    assert unseen
    assert not any(entry.n for entry in unseen)


@pytest.mark.parametrize("pair", [("misled", "guessing"), ("misled", "faultless"), ("faultless", "misled")])
def test_taking_no_task_from_another_run_changes_nothing_and_taking_all_gives_it(runs, pair):
    options, records = runs
    tallies = zip(*(METACOCO.tallies(records[name], options) for name in pair), strict=True)
    for own, other in tallies:
        none, every = np.zeros((1, own.clusters.n)), np.ones((1, own.clusters.n))
        np.testing.assert_allclose(own.mixed(other, none), own.values(), atol=1e-12)
        np.testing.assert_allclose(own.mixed(other, every), other.values(), atol=1e-12)


@settings(max_examples=12)
@given(st.sets(st.integers(0, 5)), st.permutations(sorted(LEARNERS)))
def test_tasks_taken_from_another_run_score_as_the_run_made_of_both(runs, taken, names):
    """A task brings its answers in every mode; scores of the joined records are those of the mixed sums."""
    options, records = runs
    first, second = (records[name] for name in names[:2])
    joined = pl.concat([first.filter(~pl.col("index").is_in(taken)), second.filter(pl.col("index").is_in(taken))])
    swaps = np.isin(np.arange(6), list(taken)).astype(float)[None]
    for own, other, both in zip(*(METACOCO.tallies(some, options) for some in (first, second, joined)), strict=True):
        np.testing.assert_allclose(own.mixed(other, swaps), both.values(), atol=1e-12)


def test_the_order_of_records_changes_no_row(runs):
    options, records = runs
    shuffled = records["misled"].sample(fraction=1.0, shuffle=True, seed=1)
    for one, other in zip(*(METACOCO.tallies(some, options) for some in (records["misled"], shuffled)), strict=True):
        assert one.entries == other.entries
        assert np.array_equal(one.clusters.codes, other.clusters.codes)
        assert np.array_equal(one.values(), other.values(), equal_nan=True)


def test_a_gap_is_of_the_tasks_that_are_in_both_modes(runs):
    options, records = runs
    some = records["misled"].filter(ways=4, shots=1)
    part = some.filter(~((some["mode"] == "ood") & (some["index"] < 2)) & (some["mode"] != "blind"))
    tally, found = METACOCO.tallies(part, options)[0], METACOCO.score(part, options)
    values = dict(zip([entry.name for entry in tally.entries], tally.values()[0], strict=True))
    counts = {entry.name: entry.n for entry in tally.entries}
    assert (counts["gap"], counts["ood"], counts["iid"], counts["blind"], counts["blind-gap"]) == (4, 4, 6, 0, 0)
    assert values["gap"] == pytest.approx(found.get("gap").value)
    assert math.isnan(values["blind"])


def test_qualities_are_the_accuracies_of_tasks_in_the_order_of_the_records(runs):
    options, records = runs
    shuffled = records["guessing"].sample(fraction=1.0, shuffle=True, seed=2)
    found = METACOCO.qualities(shuffled, options)
    assert found.columns == ["unit", *(quality.name for quality in METACOCO.card.qualities)]
    expected = [(row["unit"], row["correct"] / row["queries"]) for row in shuffled.to_dicts()]
    assert found.rows() == expected


def asked(mode="ood", predicted=(1, 0, 0, 1, 2, 1), **more):
    """Three classes shown at the beach, at dusk and at the beach, two queries each."""
    right = sum(answer == place // 2 for place, answer in enumerate(predicted))
    row = {"mode": mode, "shots": 5, "correct": right, "queries": 6, "concepts": "cat\ndog\nbus"}
    row |= {"support_context": [0, 1, 0], "query_context": [1, 0, 0, 1, 2, 1], "predicted": list(predicted)}
    return METACOCO.caption(row | more)


def test_captions_by_hand():
    # Cat at dusk is called dog, dog at the beach cat, bus at dusk dog: each shown where the query is.
    assert asked() == (
        "Of 6 queries about cat, dog, bus (ood, 5 shots) 3 are right; cat is called dog; "
        "3 of 3 wrong answers name a class shown in the query's context."
    )
    assert asked("iid", (2, 2, 1, 1, 2, 1)) == (
        "Of 6 queries about cat, dog, bus (iid, 5 shots) 3 are right; most often cat is called bus (2 times)."
    )
    assert asked(predicted=(0, 0, 1, 1, 2, 2)) == "Of 6 queries about cat, dog, bus (ood, 5 shots) 6 are right."


def test_a_caption_of_a_task_without_single_answers_says_what_is_known():
    assert asked(predicted=(), query_context=[], correct=1, shots=1) == (
        "Of 6 queries about cat, dog, bus (ood, 1 shot) 1 is right."
    )
    assert "shown in" not in asked("blind", support_context=[-1, -1, -1])
    assert "c5 and 4 more (ood" in asked(predicted=(), query_context=[], concepts="\n".join(f"c{n}" for n in range(10)))


def test_the_benchmark_can_be_compared_and_judged():
    assert METACOCO.tallies is not None
    assert METACOCO.qualities is not None
