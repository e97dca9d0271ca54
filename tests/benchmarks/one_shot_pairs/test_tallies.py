"""Tallies of the three benchmarks on pairs: they give the scorecard, and mix as the records of two models would."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toss_records import SPLITS, UNTOLD, frame_of, row

from hardlook.benchmarks.toss.benchmark import TOSS
from hardlook.benchmarks.toss.options import TossOptions
from hardlook.contract.benchmark import Tallied
from hardlook.runs.in_memory import Rehearsal

SMALL = {"scenes": 24, "resamples": 30}
GIVEN = {
    "toss": {**SMALL, "shots": "1,3"},
    "bias-support": {**SMALL, "pairs_a_class": 5},
    "bias-saliency": {**SMALL, "pairs_a_class": 5},
}
FAULTS = {"saliency": 0.5, "support_blind": 0.5, "ragged": 0.7}


class Answered:
    """A benchmark's options with the records of a few models."""

    def __init__(self, name):
        rehearsal = Rehearsal(name, GIVEN[name])
        self.benchmark, self.options = rehearsal.benchmark, rehearsal.options
        self.faulty = rehearsal.records("planted-one-shot", FAULTS)
        self.models = [self.faulty, rehearsal.records("empty"), rehearsal.records("whole-image")]

    def tallies(self, records, **changes):
        return self.benchmark.tallies(records, self.options.model_copy(update=changes))


@pytest.fixture(scope="module", params=GIVEN)
def answered(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARDLOOK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield Answered(request.param)


def named(entries, values):
    """{(name, slice): value}; every name and slice once."""
    keys = [(entry.name, tuple(sorted(entry.slice.items()))) for entry in entries]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, values, strict=True))


def assert_same(tally, found, expected):
    """Bit for bit, except the mean of single IoUs: its sums are no whole numbers, and their order shows."""
    found, expected = named(tally.entries, found), named(tally.entries, expected)
    for key, value in expected.items():
        if key[0] == "pair-iou":
            assert found[key] == pytest.approx(value, abs=1e-12, nan_ok=True), key
        else:
            assert found[key] == value or (math.isnan(found[key]) and math.isnan(value)), key


@pytest.mark.parametrize("void", ["ignored", "background"])
def test_every_entry_has_the_value_of_the_scorecard(answered, void):
    assert isinstance(answered.benchmark, Tallied)
    options = answered.options.model_copy(update={"reading": {"void": void}})
    scores = answered.benchmark.score(answered.faulty, options).scores
    tallies = answered.benchmark.tallies(answered.faulty, options)
    told = [
        (entry, value)
        for tally in tallies
        for entry, value in zip(tally.entries, tally.values()[0], strict=True)
    ]  # fmt: skip
    assert len(told) == len(scores) > 20
    for (entry, value), score in zip(told, scores, strict=True):
        assert (entry.name, entry.slice, entry.n) == (score.name, score.slice, score.n)
        assert (entry.reading, entry.comparable) == (score.reading, score.comparable)
        assert value == score.value or (math.isnan(value) and math.isnan(score.value))
        assert score.interval is None or score.interval.n == entry.clusters


def test_rows_columns_and_entries_are_those_of_every_model(answered):
    first, *others = [answered.tallies(records) for records in answered.models]
    for other in others:
        for one, two in zip(first, other, strict=True):
            assert one.sums.shape == two.sums.shape
            assert (one.clusters.codes == two.clusters.codes).all()
            assert (one.entries, one.key, one.resampled) == (two.entries, two.key, two.resampled)


def test_draws_of_two_tallies_have_two_names(answered):
    keys = [tally.key for tally in answered.tallies(answered.faulty)]
    assert len(set(keys)) == len(keys)


def test_mixed_with_all_or_nothing_gives_either_model(answered):
    for one, two in zip(*(answered.tallies(records) for records in answered.models[:2]), strict=True):
        nothing, everything = np.zeros(one.clusters.n), np.ones(one.clusters.n)
        kept, swapped = one.mixed(two, np.stack([nothing, everything]))
        assert np.array_equal(kept, one.values()[0], equal_nan=True)
        assert_same(one, swapped, two.values()[0])


def test_mixed_gives_what_mixed_records_give(answered):
    """Some query images answered by one model, the others by another, scored as if that were a third."""
    mine, theirs = answered.faulty, answered.models[2]
    moved = sorted(mine["query"].unique())[::2]
    third = pl.concat([mine.filter(~pl.col("query").is_in(moved)), theirs.filter(pl.col("query").is_in(moved))])
    runs = [answered.tallies(records) for records in (mine, theirs, third.sort("unit"))]
    for one, two, three in zip(*runs, strict=True):
        # Clusters are numbered by query image among those that the tally is about.
        swaps = np.zeros((1, one.clusters.n))
        swaps[0, clusters_of(one, mine, moved, answered.options)] = 1
        assert 0 < swaps.sum() < one.clusters.n
        assert_same(one, one.mixed(two, swaps)[0], three.values()[0])


def clusters_of(tally, records, queries, options):
    """The places of these query images among those that a tally of the records draws."""
    if "following" in tally.key:
        records = records.filter(pl.col("salient") >= 0)
        if "tier" in records.columns:
            records = records.filter(pl.col("split").str.ends_with("_nsal") & (pl.col("shots") == tally.key[-1]))
        else:
            plain, dull = pl.col("condition") == "plain", pl.col("salience") <= options.salient_above
            records = records.filter(plain & dull)
    return [place for place, query in enumerate(sorted(records["query"].unique())) if query in queries]


def test_a_query_image_that_weighs_twice_is_one_that_is_there_twice(answered):
    doubled = sorted(answered.faulty["query"].unique())[::3]
    again = answered.faulty.filter(pl.col("query").is_in(doubled)).with_columns(unit=pl.col("unit") + "-again")
    both = answered.tallies(pl.concat([answered.faulty, again]))
    for tally, more in zip(answered.tallies(answered.faulty), both, strict=True):
        weights = np.ones((1, tally.clusters.n))
        weights[0, clusters_of(tally, answered.faulty, doubled, answered.options)] = 2
        assert_same(tally, tally.values(weights)[0], more.values()[0])


def test_no_records_have_no_tallies(answered):
    assert answered.tallies(answered.faulty.head(0)) == []


@pytest.mark.parametrize("answered", ["bias-saliency"], indirect=True)
def test_a_score_without_pairs_keeps_its_column_and_is_told_as_undefined(answered):
    [tally, *_] = answered.tallies(answered.faulty, salient_above=0.999999)
    places = {entry.name: place for place, entry in enumerate(tally.entries) if not entry.slice}
    assert tally.entries[places["salient"]].n == 0
    assert math.isnan(tally.values()[0, places["salient"]])
    options = answered.options.model_copy(update={"salient_above": 0.999999})
    score = answered.benchmark.score(answered.faulty, options).get("salient")
    assert (math.isnan(score.value), score.n, score.interval) == (True, 0, None)


CELLS = [(0, 0, ""), (3, -1, "")] + [(1, fold, split) for fold in (0, 1) for split in SPLITS[fold:]]
CELLS += [(2, fold, level) for fold in (0, 1) for level in UNTOLD[fold:]]


def made_up(seed, likely):
    """Records of the same pairs whatever the seed, with any counts."""
    fixed, rng = np.random.default_rng(0), np.random.default_rng(seed)
    rows = []
    for tier, fold, split in CELLS:
        for _ in range(2):
            name, query, alike = f"class {fixed.integers(3)}", f"image {fixed.integers(5)}", float(fixed.random())
            counts = [int(n) for n in rng.integers(0, 40, 6) * (rng.random(6) < likely)]
            salient = (counts[0], 0, counts[0], 0) if tier == 1 else (-1, -1, -1, -1)
            alike = alike if split == "L2+L3" else -2.0
            rows.append(row(len(rows), tier, fold, split, name, query, counts, bool(tier == 3), salient, alike))
    return frame_of(rows)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from(["paper", "released"]))
def test_no_answer_changes_what_is_tallied(seed, likely, scs):
    options = TossOptions(reading={"scs": scs})
    pairs = zip(TOSS.tallies(made_up(seed, likely), options), TOSS.tallies(made_up(1, 0.8), options), strict=True)
    for one, two in pairs:
        assert one.entries == two.entries
        assert one.sums.shape == two.sums.shape
        assert one.mixed(two, np.ones((1, one.clusters.n))).shape == (1, len(one.entries))
