"""Credits and IoU of pairs by plain loops, tallies of the three benchmarks, and intervals over query images."""

from __future__ import annotations

import math

import numpy as np
import one_shot_oracle as oracle
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toss_records import UNTOLD, frame_of, row

from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.metrics.one_shot import SPLITS as TIER_1_SPLITS
from hardlook.toss.benchmark import TOSS
from hardlook.toss.bias.saliency_study import BIAS_SALIENCY
from hardlook.toss.bias.support_study import BIAS_SUPPORT
from hardlook.toss.options import TossOptions

GIVEN = {
    "toss": {"scenes": 24, "resamples": 0},
    "bias-support": {"scenes": 24, "resamples": 0, "pairs_a_class": 5},
    "bias-saliency": {"scenes": 24, "resamples": 0, "pairs_a_class": 5},
}


def is_spurious(record):
    return record.get("split") in ("L4", "L5", "L6") or record.get("condition") in (
        "other-class", "no-mask", "no-image", "other-class-no-mask",
    )  # fmt: skip


@pytest.fixture(scope="module", params=GIVEN)
def run(request, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARDLOOK_CACHE", str(tmp_path_factory.mktemp("cache")))
        rehearsal = InMemoryRun(request.param, GIVEN[request.param])
        faults = {"saliency": 0.5, "support_blind": 0.5, "ragged": 0.7}
        yield rehearsal.benchmark, rehearsal.options, rehearsal.records("planted-one-shot", faults)


@pytest.mark.parametrize("void", ["ignored", "background"])
def test_qualities_are_those_of_plain_loops(run, void):
    benchmark, options, records = run
    assert benchmark.qualities is not None
    records = records.sample(fraction=1.0, shuffle=True, seed=1)
    found = benchmark.qualities(records, options.model_copy(update={"reading": {"void": void}}))
    names = [quality.name for quality in benchmark.card.qualities]
    assert found.columns == ["unit", *names]
    assert set(found.dtypes[1:]) == {pl.Float64}
    for record, quality in zip(records.to_dicts(), found.to_dicts(), strict=True):
        iou = oracle.iou([record], void)
        iou = math.nan if iou is None else iou
        expected = {"unit": record["unit"], "iou": iou, "credit": 1 - iou if is_spurious(record) else iou}
        assert quality == pytest.approx({name: expected[name] for name in ("unit", *names)}, nan_ok=True)


def test_the_mean_iou_of_pairs_is_the_score_of_that_name(run):
    benchmark, options, records = run
    by = "condition" if "condition" in records.columns else "split"
    joined = records.join(benchmark.qualities(records, options), on="unit")
    checked = 0
    for score in benchmark.score(records, options).scores:
        if score.name == "pair-iou" and set(score.slice) & {"split", "level", "support"}:
            [value] = score.slice.values()
            ious = joined.filter((pl.col(by) == value) & pl.col("iou").is_not_nan())["iou"]
            assert ious.mean() == pytest.approx(score.value)
            checked += 1
    assert checked or benchmark is BIAS_SALIENCY


def test_finding_what_the_support_does_not_show_is_the_worst_answer():
    cells = [("L4", 30), ("L4", 0), ("L0", 30), ("L0", 0)]
    rows = [
        row(place, 2, 0, level, "cat", "a", [hits, 0, 30 - hits, 9, 0, 0]) for place, (level, hits) in enumerate(cells)
    ]
    found = TOSS.qualities(frame_of(rows), TossOptions())
    assert found["credit"].to_list() == [0, 1, 1, 0]
    assert found["iou"].to_list() == [1, 0, 1, 0]


def test_pairs_that_are_not_scored_and_pairs_of_nothing_have_no_quality():
    rows = [
        row(0, 3, -1, "", "cat", "a", [5, 5, 0, 0, 0, 0], mixed=True),
        row(1, 2, 0, "L6", "cat", "a", [0, 0, 0, 9, 3, 0]),
    ]
    kept = TOSS.qualities(frame_of(rows), TossOptions())
    dropped = TOSS.qualities(frame_of(rows), TossOptions(reading={"mixed": "ours"}))
    assert kept["iou"][0] == 0.5
    assert dropped["iou"].is_nan().to_list() == dropped["credit"].is_nan().to_list() == [True, True]
    # Void that is predicted counts as wrong in the other reading: then there is something that was found.
    assert TOSS.qualities(frame_of(rows), TossOptions(reading={"void": "background"}))["credit"][1] == 1


def test_every_record_has_a_sentence_with_its_iou(run):
    benchmark, options, records = run
    ious = benchmark.qualities(records, options)["iou"]
    for record, iou in zip(records.to_dicts(), ious, strict=True):
        sentence = benchmark.caption(record)
        assert sentence.startswith(f"The mask for {record['class']} (") and sentence.endswith(".")
        assert f"IoU of {iou:.3f}" in sentence if record["predicted"] else "is empty" in sentence


def toss_words(tier, split, counts, **more):
    [record] = frame_of([row(0, tier, 0, split, "cat", "a", counts, **more)]).to_dicts()
    return TOSS.caption(record)


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        (
            toss_words(1, "hard_nsal", [10, 10, 20, 0, 0, 0], salient=(30, 20, 5, 5)),
            "The mask for cat (hard, not salient) has an IoU of 0.250 and of 0.500 with what is salient.",
        ),
        (
            toss_words(1, "easy_sal", [10, 10, 0, 0, 20, 0]),
            "The mask for cat (easy, salient) has an IoU of 0.500 (0.250 with void).",
        ),
        (
            toss_words(2, "L4", [10, 10, 0, 0, 0, 0]),
            "The mask for cat (L4 another class) has an IoU of 0.500 with what the support does not show: 0 is right.",
        ),
        (
            toss_words(2, "L6", [0, 10, 0, 0, 0, 0]),
            "The mask for cat (L6 black image, no mask) is empty: right, since the support does not show the class.",
        ),
        (toss_words(2, "L0", [0, 10, 0, 5, 0, 0]), "The mask for cat (L0 the query itself) is empty."),
        (
            toss_words(3, "", [0, 0, 0, 5, 0, 0], mixed=True),
            "The mask for cat (tier 3, query and support of two classes) is empty, and there is nothing to find.",
        ),
        (
            toss_words(0, "", [0, 0, 0, 5, 3, 0]),
            "The mask for cat (fixed pair of fold 0) lies where the truth is left open, and there is nothing to find.",
        ),
    ],
)
def test_sentences_about_pairs_of_toss(sentence, words):
    assert sentence == words


def test_pairs_of_the_studies_in_words():
    counts = {"class": "cat", "intersection": 1, "predicted": 2, "truth": 3, "predicted_void": 0}
    asked = {"condition": "suppressed", "salience": 0.25, "salient": 2, "predicted_salient": 1}
    assert BIAS_SUPPORT.caption({**counts, "condition": "no-mask"}) == (
        "The mask for cat (support: the right image, no mask) has an IoU of 0.250 with what the support does not show: "
        "0 is right."
    )
    assert BIAS_SUPPORT.caption({**counts, "condition": "correct"}) == (
        "The mask for cat (support: the right class and its mask) has an IoU of 0.250."
    )
    assert BIAS_SALIENCY.caption({**counts, **asked}) == (
        "The mask for cat (salient region blurred, target salient by 0.25) has an IoU of 0.250 and of 0.333 with what "
        "is salient."
    )


SMALL = {"scenes": 24, "resamples": 30}

WITH_INTERVALS = {
    "toss": {**SMALL, "shots": "1,3"},
    "bias-support": {**SMALL, "pairs_a_class": 5},
    "bias-saliency": {**SMALL, "pairs_a_class": 5},
}

FAULTS = {"saliency": 0.5, "support_blind": 0.5, "ragged": 0.7}


class Answered:
    """A benchmark's options with the records of a few models."""

    def __init__(self, name):
        rehearsal = InMemoryRun(name, WITH_INTERVALS[name])
        self.benchmark, self.options = rehearsal.benchmark, rehearsal.options
        self.faulty = rehearsal.records("planted-one-shot", FAULTS)
        self.models = [self.faulty, rehearsal.records("empty"), rehearsal.records("whole-image")]

    def tallies(self, records, **changes):
        return self.benchmark.tallies(records, self.options.model_copy(update=changes))


@pytest.fixture(scope="module", params=WITH_INTERVALS)
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
    assert answered.benchmark.tallies is not None
    options = answered.options.model_copy(update={"reading": {"void": void}})
    scores = answered.benchmark.score(answered.faulty, options).scores
    tallies = answered.benchmark.tallies(answered.faulty, options)
    tallied = [
        (entry, value)
        for tally in tallies
        for entry, value in zip(tally.entries, tally.values()[0], strict=True)
    ]  # fmt: skip
    assert len(tallied) == len(scores) > 20
    for (entry, value), score in zip(tallied, scores, strict=True):
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
    again = answered.faulty.filter(pl.col("query").is_in(doubled)).with_columns(unit="again-" + pl.col("unit"))
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


CELLS = [(0, 0, ""), (3, -1, "")] + [(1, fold, split) for fold in (0, 1) for split in TIER_1_SPLITS[fold:]]

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


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("toss", {"scenes": 48, "resamples": 200})


@pytest.fixture(scope="module")
def records(rehearsal):
    return rehearsal.records("planted-one-shot", {"saliency": 0.5, "support_blind": 0.5})


@pytest.fixture(scope="module")
def card(rehearsal, records):
    return rehearsal.benchmark.score(records, rehearsal.options)


def columns_of(slice_values):
    """The records behind a score, as a filter."""
    names = {"level": "split"}
    conditions = [pl.col(names.get(name, name)).cast(pl.String) == value for name, value in slice_values.items()]
    return pl.all_horizontal(pl.lit(True), *conditions)


FOLLOWING = (
    "follows-truth", "follows-salience", "salience-lead", "covers-target", "covers-salience", "salience-pull",
)  # fmt: skip

TIERS = {"gs": (3,), "scs": (2,), "rejection": (2,), "lca": (1,), "hca": (1,), "salience-gap": (1,)}

TIERS |= dict.fromkeys(FOLLOWING, (1,))

OTHERS = ("easy_nsal", "hard_nsal")

SPLITS = {
    "salient": ("easy_sal", "hard_sal"), "non-salient": OTHERS, "rejection": ("L4", "L5", "L6"),
}  # fmt: skip

SPLITS |= dict.fromkeys(FOLLOWING, OTHERS)


def test_each_interval_rests_on_its_own_query_images(card, records):
    for score in card.scores:
        own = records.filter(columns_of(score.slice))
        own = own.filter(pl.col("tier").is_in(TIERS[score.name])) if score.name in TIERS else own
        own = own.filter(pl.col("split").is_in(SPLITS[score.name])) if score.name in SPLITS else own
        if score.name == "scs":  # classes that lack a level are in no mean, and do not count
            own = own.filter(pl.col("split").n_unique().over("fold", "class") == 7)
            assert 0 < len(own) < len(records.filter(columns_of(score.slice) & (pl.col("tier") == 2)))
        assert score.n == len(own), score
        classes = {} if "class" in score.slice else {"class": own["class"].n_unique()}
        # Of what is only salient some classes have nothing, but every target counts.
        assert score.rests_on == {"query image": own["query"].n_unique(), **classes}, score
        if own["query"].n_unique() > 1 and score.undefined > 0.05:
            assert score.interval is None, score
        elif own["query"].n_unique() > 1:
            assert score.interval.n == own["query"].n_unique(), score
            assert score.interval.resampled == "query image"
            assert score.interval.low <= score.interval.high
        else:
            assert score.interval is None


def test_pairs_shown_twice_do_not_narrow_intervals(rehearsal, records, card):
    again = records.with_columns(unit="again-" + pl.col("unit"))
    doubled = rehearsal.benchmark.score(pl.concat([records, again]), rehearsal.options)
    assert len(doubled.scores) == len(card.scores)
    for one, two in zip(card.scores, doubled.scores, strict=True):
        assert (one.name, one.slice, 2 * one.n) == (two.name, two.slice, two.n)
        assert two.value == pytest.approx(one.value, nan_ok=True)
        if one.interval is not None:
            assert two.interval.n == one.interval.n
            bounds = (one.interval.low, one.interval.high)
            assert (two.interval.low, two.interval.high) == pytest.approx(bounds, nan_ok=True)


def test_a_single_query_image_has_no_interval(rehearsal, records):
    alone = records.filter(pl.col("query") == records["query"][0])
    assert len(alone) > 1
    card = rehearsal.benchmark.score(alone, rehearsal.options)
    assert card.scores
    assert all(score.interval is None for score in card.scores)


def test_all_pairs_of_a_query_are_drawn_together(rehearsal):
    """Each query has the same counts with a salient and with another target: no resample can open a gap."""
    rng = np.random.default_rng(0)
    rows = []
    for query in range(12):
        hits, union = int(rng.integers(0, 50)), 50
        for split in ("easy_sal", "easy_nsal"):
            rows.append(
                {
                    "unit": f"{query}-{split}", "tier": 1, "fold": 0, "split": split, "class": "cat", "shots": 1,
                    "mixed": False, "query": f"image {query}", "support": "b", "intersection": hits,
                    "predicted": hits, "truth": union, "predicted_void": 0, "void": 0, "pixels": 99,
                    "listing": "built", "prediction": "", "salient": -1, "predicted_salient": -1,
                    "truth_salient": -1, "found_salient": -1, "similarity": -2.0,
                }
            )  # fmt: skip
    options = rehearsal.options.model_copy(update={"interval": "percentile"})
    card = rehearsal.benchmark.score(rehearsal.benchmark.schema.frame(rows), options)
    gap, salient = card.get("salience-gap").interval, card.get("salient").interval
    assert (gap.low, gap.high) == (0, 0)
    assert salient.high - salient.low > 0.05
    assert gap.n == salient.n == 12
