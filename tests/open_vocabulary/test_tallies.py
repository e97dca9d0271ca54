"""Laws of the tallies of all benchmarks on labels: scores, swaps of images, and one vocabulary."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from two_vocabularies import spoken_records

from hardlook.errors import DataError
from hardlook.harness.registry import find_benchmark

NAMES = ("closed-miou", "open-miou", "open-pq", "open-ap")

OPEN = NAMES[1:]

SCENES = 10

# Words that VOC knows, so that they have a sense.
ONE, OTHER = {"cat": "sheep", "car": "Train"}, {"cat": "cow", "bus": "train", "sky": "boat"}


@pytest.fixture(scope="module", params=NAMES)
def comparison(request, tmp_path_factory):
    """Benchmark, options and two runs, in two vocabularies where the benchmark is open, made one."""
    name = request.param
    sets = tmp_path_factory.mktemp("sets") / "sets.json"
    sets.write_text(json.dumps({"seen": ["cat", "dog", "car"], "unseen": ["pear"]}))
    benchmark = find_benchmark(name)
    options = benchmark.options(scenes=SCENES, resamples=0, **({"class_sets": sets} if name in OPEN else {}))
    words = (ONE, OTHER) if name in OPEN else ({}, {})
    runs = [spoken_records(name, SCENES, said, seed=seed) for seed, said in enumerate(words)]
    return benchmark, options, benchmark.merge_vocabularies(runs)


def by_name(scores, plain=False):
    found = {(score.name, *sorted(score.slice.items())): score for score in scores}
    return {str(key).lower(): score for key, score in found.items()} if plain else found


def tallied_units(benchmark, records, tally):
    """The units behind a tally, in the order of its clusters."""
    context = tally.entries[0].slice.get("context")
    inside = records if context is None else records.filter(pl.col("context") == context)
    return inside.sort("image_id" if benchmark.card.name == "open-ap" else "unit")["unit"].to_list()


def close(one, other, exact):
    return np.array_equal(one, other, equal_nan=True) if exact else one == pytest.approx(other, abs=1e-12, nan_ok=True)


def test_runs_can_be_compared(comparison):
    benchmark, *_ = comparison
    assert benchmark.tallies is not None
    assert benchmark.merge_vocabularies is not None
    assert benchmark.qualities is not None


def test_every_entry_is_a_score_of_the_scorecard_and_back(comparison):
    benchmark, options, runs = comparison
    for records in runs:
        scores = by_name(benchmark.score(records, options).scores)
        tallies = benchmark.tallies(records, options)
        entries = {}
        for tally in tallies:
            for entry, value in zip(tally.entries, tally.values()[0], strict=True):
                key = (entry.name, *sorted(entry.slice.items()))
                assert (key in scores) == (entry.n > 0)
                if entry.n:
                    assert (scores[key].n, scores[key].reading) == (entry.n, entry.reading)
                    assert np.array_equal(scores[key].value, value, equal_nan=True), key
                    entries[key] = value
        # What is no entry is a plain count or another measure's score.
        assert {kind for key in scores.keys() - entries.keys() for kind in dict(key[1:])} <= {
            "measure",
            "true",
            "called",
        }


def test_columns_do_not_depend_on_the_answers(comparison):
    benchmark, options, runs = comparison
    lists = [
        [(tally.key, tally.resampled, [(entry.name, entry.slice) for entry in tally.entries])
         for tally in benchmark.tallies(records, options)]
        for records in runs
    ]  # fmt: skip
    assert lists[0] == lists[1]


def test_swapping_no_image_or_all_changes_nothing_or_the_model(comparison):
    benchmark, options, runs = comparison
    # Soft sums of all images may be added in another order; their last digit is free.
    exact = benchmark.card.name in ("closed-miou", "open-ap")
    for one, other in zip(*(benchmark.tallies(records, options) for records in runs), strict=True):
        none, every = np.zeros((1, one.clusters.n)), np.ones((1, one.clusters.n))
        assert close(one.mixed(other, none), one.values(), exact)
        assert close(one.mixed(other, every), other.values(), exact)
        assert close(other.mixed(one, every), one.values(), exact)
        assert close(one.values(every), one.values(), exact)


@settings(max_examples=5)
@given(chosen=st.lists(st.booleans(), min_size=SCENES, max_size=SCENES))
def test_swapping_images_equals_scoring_records_that_were_swapped(comparison, chosen):
    benchmark, options, (ours, theirs) = comparison
    taken = dict(zip(ours["unit"].to_list(), chosen, strict=True))
    swapped = pl.Series([taken[unit] for unit in ours["unit"].to_list()])
    records = pl.concat([ours.filter(~swapped), theirs.filter(swapped)]).sort("unit")
    scores = by_name(benchmark.score(records, options).scores)
    compared = 0
    for one, other in zip(*(benchmark.tallies(run, options) for run in (ours, theirs)), strict=True):
        swaps = np.array([[float(taken[unit]) for unit in tallied_units(benchmark, ours, one)]])
        for entry, value in zip(one.entries, one.mixed(other, swaps)[0], strict=True):
            score = scores.get((entry.name, *sorted(entry.slice.items())))
            # A class that is in neither run's chosen images has no score.
            expected = float("nan") if score is None else score.value
            assert close(value, expected, benchmark.card.name == "open-ap"), entry
            compared += score is not None
    assert compared > 60


@pytest.mark.parametrize("name", OPEN)
def test_one_vocabulary_changes_no_score(name):
    benchmark = find_benchmark(name)
    options = benchmark.options(scenes=4, resamples=0)
    runs = [spoken_records(name, 4, said, seed=seed) for seed, said in enumerate((ONE, OTHER))]
    joined = benchmark.merge_vocabularies(runs)
    (before, *_), (after, same) = ([one["names"][0].split("\n") for one in frames] for frames in (runs, joined))
    truths = 12 if name == "open-ap" else 22
    assert after == same
    assert after[:truths] == before[:truths]
    assert after[truths:] == sorted(after[truths:])
    assert {"sheep", "Train", "cow", "boat"} <= set(after[truths:])
    assert "train" not in after
    for own, union in zip(runs, joined, strict=True):
        # One run says Train and one train; scores go by the word, whatever its case.
        old, new = (by_name(benchmark.score(records, options).scores, plain=True) for records in (own, union))
        assert old.keys() == new.keys()
        for key, score in old.items():
            # Means over classes add the same floats with other zeros between them; the rest is the same bit for bit.
            mean = name != "open-ap" and "class" not in score.slice
            assert score.n == new[key].n
            assert close(score.value, new[key].value, exact=not mean), key


@pytest.mark.parametrize("name", NAMES)
def test_one_vocabulary_of_one_run_or_of_equal_ones_is_its_own(name):
    benchmark = find_benchmark(name)
    records = spoken_records(name, 2)
    for runs in ([records], [records, records]):
        for joined in benchmark.merge_vocabularies(runs):
            assert joined.equals(records)


@pytest.mark.parametrize("name", NAMES)
def test_runs_on_other_truths_are_refused_with_both_labels(name):
    benchmark = find_benchmark(name)
    records = spoken_records(name, 4)
    label = {"closed-miou": "sky", "open-miou": "sky", "open-pq": "sky", "open-ap": "cat"}[name]
    other = records.with_columns(pl.col("names").str.replace(label, "ceiling"))
    with pytest.raises(DataError, match=f"is '{label}' in run 1 and 'ceiling' in run 2"):
        benchmark.merge_vocabularies([records, other])


@pytest.mark.parametrize("name", OPEN)
def test_words_of_another_model_need_no_sense_in_this_run(name):
    benchmark = find_benchmark(name)
    options = benchmark.options(scenes=4, resamples=0)
    ours, theirs = (spoken_records(name, 4, said, seed=1) for said in (ONE, {"cat": "glorp"}))
    joined, strange = benchmark.merge_vocabularies([ours, theirs])
    scores = by_name(benchmark.score(ours, options).scores)
    (tally, *_) = benchmark.tallies(joined, options)
    for entry, value in zip(tally.entries, tally.values()[0], strict=True):
        if entry.n:
            score = scores[entry.name, *sorted(entry.slice.items())]
            assert close(value, score.value, exact=False)
    with pytest.raises(DataError, match="glorp"):
        benchmark.tallies(strange, options)
