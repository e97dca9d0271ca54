"""The scores of TOSS against the specification as plain loops, separated levels, and what is left out."""

import math
from dataclasses import replace

import numpy as np
import one_shot_oracle as oracle
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_shot_folders import write_one_shot_folder
from toss_records import SPLITS, TOLD, TOLD_IN_PART, UNTOLD, frame_of, row, rows_of_ious, scorecard

from hardlook.data.toss_pairs import LEVELS, list_pair_files, read_pairs, write_pairs
from hardlook.errors import OptionError
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.models.planted.encoders import PlantedEncoder
from hardlook.toss.benchmark import TOSS
from hardlook.toss.options import TossOptions
from hardlook.toss.scores import split_levels


def notes(rows, **given):
    return {note.what: note for note in scorecard(frame_of(rows), **given).left_out}


def test_a_class_that_a_split_does_not_have_is_named():
    cells = {(1, 0, split, name): 40 for split in SPLITS for name in ("cat", "dog")}
    del cells[1, 0, "hard_sal", "dog"]
    note = notes(rows_of_ious(cells))["classes missing from a split of tier 1"]
    assert (note.count, note.examples) == (1, ("dog in hard_sal of fold 0",))


def test_a_split_that_nobody_has_is_the_folds_note_alone():
    cells = {(1, 0, split, name): 40 for split in SPLITS[:3] for name in ("cat", "dog")}
    found = notes(rows_of_ious(cells))
    assert set(found) == {"folds without lca", "folds without hca"}


@pytest.mark.parametrize("levels", [TOLD, UNTOLD])
@pytest.mark.parametrize("gone", ["L0", "L1", "L4", "L6"])
def test_a_class_that_lacks_a_level_is_named(levels, gone):
    cells = {(2, 1, level, name): 40 for level in levels for name in ("cat", "dog")}
    del cells[2, 1, gone, "cat"]
    note = notes(rows_of_ious(cells))["classes without scs"]
    assert (note.count, note.examples) == (1, (f"cat of fold 1: no {gone}",))


def test_the_released_groups_need_one_level_each():
    cells = {(2, 0, level, name): 40 for level in TOLD for name in ("cat", "dog")}
    for level in ("L4", "L5", "L3"):
        del cells[2, 0, level, "cat"]
    assert "classes without scs" not in notes(rows_of_ious(cells), scs="released")
    del cells[2, 0, "L6", "cat"]
    note = notes(rows_of_ious(cells), scs="released")["classes without scs"]
    assert note.examples == ("cat of fold 0: no L4 or L5 or L6",)


def test_whole_tiers_have_nothing_to_note():
    cells = {(1, 0, split, "cat"): 40 for split in SPLITS} | {(2, 0, level, "cat"): 40 for level in TOLD}
    assert notes(rows_of_ious(cells)) == {}


@pytest.mark.parametrize("reading", ["released", "ours"])
def test_pairs_of_two_classes_are_counted_under_both_readings(reading):
    rows = [row(place, 3, -1, "", "owl", "a", [1, 1, 1, 9, 0, 0], mixed=place < 3) for place in range(5)]
    card = scorecard(frame_of(rows), reading={"mixed": reading})
    # "Left out" holds what is left out, and nothing that is kept.
    [note] = card.noted if reading == "released" else card.left_out
    assert (note.what, note.kept) == ("pairs of two classes in tier 3", reading == "released")
    assert (note.count, note.examples) == (3, ("pair-0000", "pair-0001", "pair-0002"))


SEES_CONTEXT = {"encoder": "planted-encoder", "encoder_args": "context=0.5"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Planted lists whose tier 2 does not tell L2 from L3, as the published ones."""
    written = write_one_shot_folder(tmp_path_factory.mktemp("untold"), folds=(1,))
    for file in list_pair_files(written.pairs):
        if file.tier == 2:
            pairs = [
                replace(one, split="L2+L3") if one.split in ("L2", "L3") else one for one in read_pairs(file).pairs
            ]
            write_pairs(file.path, pairs)
    return written


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARDLOOK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield InMemoryRun("toss", {"data": folder.data, "tiers": "2", "resamples": 0, **SEES_CONTEXT})


@pytest.fixture(scope="module")
def records(run):
    return run.records("planted-one-shot", {"support_blind": 0.5, "ragged": 0.5})


def test_similarity_is_the_cosine_of_the_two_images(run, records):
    encoder, rows, asked = PlantedEncoder(context=0.5), {row["unit"]: row for row in records.to_dicts()}, 0
    for unit in (unit for batch in run.prepared for unit in batch.units):
        if unit.payload.slices["split"] != "L2+L3":
            assert rows[unit.id]["similarity"] == -2
            continue
        first, second = encoder.encode([unit.payload.image, unit.payload.support[0].image]).vectors.astype(float)
        cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
        assert rows[unit.id]["similarity"] == pytest.approx(cosine, abs=1e-6)
        asked += 1
    assert asked > 10


def test_levels_split_at_the_mean_cosine(run, records):
    card = TOSS.score(records, run.options)
    rows = [one for one in records.to_dicts() if one["split"] == "L2+L3"]
    mean = sum(one["similarity"] for one in rows) / len(rows)
    similar = sum(one["similarity"] > mean for one in rows)
    assert 0 < similar < len(rows)
    levels = {
        score.slice["level"]: score for score in card.scores if score.name == "miou" and set(score.slice) == {"level"}
    }
    assert set(levels) == {"L0", "L1", "L2", "L3", "L4", "L5", "L6"}
    assert (levels["L2"].n, levels["L3"].n) == (similar, len(rows) - similar)
    assert levels["L2"].reading == f"L2 has cosines above {mean:.4f}"


def test_scs_weighs_the_told_levels():
    ious = {"L0": 80, "L1": 70, "L4": 40, "L5": 20, "L6": 30}
    rows = [row(i, 2, 0, level, "cat", "a", [n, 100 - n, 0, 0, 0, 0]) for i, (level, n) in enumerate(ious.items())]
    rows.append(row(7, 2, 0, "L2+L3", "cat", "a", [60, 40, 0, 0, 0, 0], similarity=0.9))
    rows.append(row(8, 2, 0, "L2+L3", "cat", "b", [50, 50, 0, 0, 0, 0], similarity=0.3))
    # The specification's worked check: L2 .6 and L3 .5 give .7.
    assert scorecard(frame_of(rows)).get("scs").value == pytest.approx(0.7)


def test_pairs_that_name_their_level_count_where_others_do_not():
    ious = {"L0": 80, "L1": 70, "L2": 60, "L2+L3": 40, "L4": 40, "L5": 20, "L6": 30}
    frame = frame_of(rows_of_ious({(2, 0, level, "cat"): n for level, n in ious.items()}))
    # L2 and L3 are not told apart in all pairs, so their IoU, (60 + 40) / 200, serves both.
    expected = (4 * 0.8 + 2 * 0.7 + 3 * 0.5 + (1 - 0.4) + (1 - 0.2) + (1 - 0.3)) / 12
    card = scorecard(frame)
    assert card.get("scs").value == pytest.approx(expected)
    assert card.get("scs").n == len(ious)


def test_without_an_encoder_the_levels_stay_together(folder):
    card = InMemoryRun("toss", {"data": folder.data, "tiers": "2", "resamples": 0}).score("empty")
    assert {score.slice["level"] for score in card.scores if "level" in score.slice} >= {"L2+L3"}
    assert not {score.slice.get("level") for score in card.scores} & {"L2", "L3"}


def test_the_encoder_is_part_of_what_answers_depend_on(folder):
    asked = TOSS.sources(TossOptions(data=folder.data, **SEES_CONTEXT))
    other = TOSS.sources(TossOptions(data=folder.data, encoder="planted-encoder"))
    assert asked["encoder model"] != other["encoder model"]
    assert "encoder model" not in TOSS.sources(TossOptions(data=folder.data))


@pytest.mark.parametrize("given", [{}, {"tiers": "1"}, {"fixed": True}])
def test_an_encoder_with_nothing_to_do_is_refused(given):
    with pytest.raises(OptionError, match="--encoder separates L2 from L3, and no list pools them"):
        InMemoryRun("toss", {"scenes": 24, "encoder": "planted-encoder", **given})


READINGS = [(scs, void) for scs in ("paper", "released") for void in ("ignored", "background")]


def values(card):
    return {(score.name, tuple(sorted(score.slice.items()))): score.value for score in card.scores}


def assert_same(found, expected):
    assert set(found) == set(expected)
    for key, value in expected.items():
        if value is None:
            assert math.isnan(found[key]), key
        else:
            assert found[key] == pytest.approx(value, abs=1e-12), key


def salient_pixels(rng, counts):
    """Salient pixels of every kind, added up as a record has them."""
    both, missed, wrong, clear, wrong_open, clear_open = (int(rng.integers(0, n + 1)) for n in counts)
    whole = both + missed + wrong + clear + wrong_open + clear_open
    return whole, both + wrong + wrong_open, both + missed, both


@st.composite
def record_rows(draw):
    """Few classes, folds and images; splits, levels and tiers may be missing."""
    levels = draw(st.sampled_from([TOLD, UNTOLD, TOLD_IN_PART]))
    cells = [(0, 0, ""), (0, 1, ""), (3, -1, "")]
    cells += [(1, fold, split) for fold in (0, 1) for split in SPLITS]
    cells += [(2, fold, level) for fold in (0, 1) for level in levels]
    thin = draw(st.booleans())
    chosen = draw(st.lists(st.sampled_from(cells), min_size=1, unique=True)) if thin else cells
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    asked = draw(st.booleans())
    rows = []
    for tier, fold, split in chosen:
        for _ in range(rng.integers(1, 5)):
            counts = rng.integers(0, 40, 6) * (rng.random(6) < 0.8)
            name = f"class {2 * fold + rng.integers(2)}"
            query = f"image {rng.integers(5)}"
            mixed = bool(tier == 3 and rng.random() < 0.3)
            counts = [int(n) for n in counts]
            salient = salient_pixels(rng, counts) if tier == 1 and asked else (-1, -1, -1, -1)
            rows.append(row(len(rows), tier, fold, split, name, query, counts, mixed, salient))
    return rows


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("toss", {"scenes": 48, "resamples": 0})


@pytest.fixture(scope="module")
def planted(rehearsal):
    """Records of a model with all its faults on the planted world."""
    return rehearsal.records("planted-one-shot", {"saliency": 0.5, "support_blind": 0.5, "ragged": 0.5})


@pytest.mark.parametrize(("scs", "void"), READINGS)
def test_every_score_of_the_planted_world_is_the_specifications(planted, scs, void):
    assert planted["predicted_void"].sum() > 0
    assert_same(values(scorecard(planted, scs, void)), oracle.toss_scores(planted.to_dicts(), scs, void))


@settings(max_examples=60)
@given(record_rows(), st.sampled_from(READINGS))
def test_every_score_of_any_records_is_the_specifications(rows, reading):
    assert_same(values(scorecard(frame_of(rows), *reading)), oracle.toss_scores(rows, *reading))


@settings(max_examples=20)
@given(record_rows())
def test_the_reading_of_mixed_pairs_keeps_or_drops_and_counts_them(rows):
    rows = [*rows, row(len(rows), 3, -1, "", "class 0", "image 0", [1, 1, 1, 9, 0, 0])]
    kept = [one for one in rows if not one["mixed"]]
    dropping = scorecard(frame_of(rows), reading={"mixed": "ours"})
    assert_same(values(dropping), oracle.toss_scores(kept))
    assert_same(values(scorecard(frame_of(rows), reading={"mixed": "released"})), oracle.toss_scores(rows))
    noted = [note.count for note in dropping.left_out if "two classes" in note.what]
    assert sum(noted) == len(rows) - len(kept)


@settings(max_examples=20)
@given(record_rows(), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_records_or_on_parts(rows, random):
    whole = scorecard(frame_of(rows), resamples=50)
    shuffled = random.sample(rows, len(rows))
    half = len(rows) // 2
    merged = scorecard(pl.concat([frame_of(shuffled[half:]), frame_of(shuffled[:half])]), resamples=50)
    for one, other in zip(whole.scores, merged.scores, strict=True):
        # Mean IoUs of pairs are sums of fractions, which round by their order; all else is whole numbers.
        exact = one.name != "pair-iou"
        assert (one.name, one.slice, one.n) == (other.name, other.slice, other.n)
        for ours, theirs in zip(numbers_of(one), numbers_of(other), strict=True):
            assert ours == theirs if exact and ours == ours else ours == pytest.approx(theirs, nan_ok=True)
    assert [(note.what, note.count) for note in whole.left_out] == [(note.what, note.count) for note in merged.left_out]


def numbers_of(score):
    interval = score.interval
    return (score.value, *((interval.low, interval.high, interval.n) if interval else ()))


def test_the_specifications_worked_checks():
    tier1 = {(1, 0, split, "cat"): value for split, value in zip(SPLITS, (50, 35, 38, 13), strict=True)}
    tier2 = {(2, 0, level, "cat"): value for level, value in zip(TOLD, (80, 70, 60, 50, 40, 20, 30), strict=True)}
    card = scorecard(frame_of(rows_of_ious(tier1 | tier2)))
    assert card.get("lca").value == pytest.approx(0.4225)
    assert card.get("hca").value == pytest.approx(0.2375)
    assert card.get("scs").value == pytest.approx(0.7)


def test_the_specifications_check_of_the_released_reading():
    counts = {
        "cat": {"L0": (80, 100), "L1": (70, 100), "L2+L3": (110, 200), "L4": (90, 300)},
        "dog": {"L0": (90, 100), "L1": (60, 100), "L2+L3": (100, 200), "L5": (60, 300)},
    }
    rows = [
        row(place, 2, 0, level, name, "image", [hits, union - hits, 0, 0, 0, 0])
        for place, (name, level, (hits, union)) in enumerate(
            (name, level, pair) for name, levels in counts.items() for level, pair in levels.items()
        )
    ]
    assert scorecard(frame_of(rows), "released").get("scs").value == pytest.approx(0.736111, abs=5e-7)


def test_a_fold_that_lacks_a_split_is_named_and_leaves_the_mean():
    cells = {
        (1, fold, split, "cat"): 40 + fold for fold in (0, 1) for split in SPLITS if (fold, split) != (1, "hard_sal")
    }
    card = scorecard(frame_of(rows_of_ious(cells)))
    assert math.isnan(card.get("lca", fold="1").value)
    assert card.get("lca").value == card.get("lca", fold="0").value
    assert [(note.count, note.examples) for note in card.left_out if note.what == "folds without lca"] == [
        (1, ("fold 1",))
    ]


def test_pairs_with_nothing_to_find_are_counted_and_still_cost_unions():
    rows = [
        row(0, 0, 0, "", "cat", "a", [10, 0, 0, 10, 0, 0]),
        row(1, 0, 0, "", "cat", "b", [0, 0, 10, 10, 0, 0]),
    ]
    card = scorecard(frame_of(rows))
    assert card.get("miou").value == 0.5
    [note] = [note for note in card.noted if note.what == "pairs without anything to find"]
    assert not card.left_out
    assert (note.count, note.examples) == (1, ("pair-0001",))


def test_shots_are_scored_apart_and_the_first_are_the_headline(planted):
    three = planted.with_columns(
        shots=pl.lit(3, pl.Int64), unit=planted["unit"] + "-3shot", intersection=planted["intersection"] // 2
    )
    card = scorecard(pl.concat([planted, three]), shots=(3, 1))
    found = values(card)
    alone = {shots: oracle.toss_scores(part.to_dicts()) for shots, part in ((1, planted), (3, three))}
    expected = alone[3] | {
        (name, tuple(sorted((*where, ("shots", "1"))))): value for (name, where), value in alone[1].items()
    }
    assert_same(found, expected)


def test_nothing_is_left_where_every_pair_mixes_classes():
    rows = [row(0, 3, -1, "", "cat", "a", [1, 0, 0, 1, 0, 0], mixed=True)]
    card = scorecard(frame_of(rows), reading={"mixed": "ours"})
    assert card.scores == ()
    assert card.left_out[0].count == 1


def test_a_pair_of_two_classes_has_a_quality_only_where_the_reading_keeps_it():
    rows = [
        row(0, 3, -1, "", "cat", "a", [3, 1, 0, 9, 0, 0]),
        row(1, 3, -1, "", "cat", "b", [1, 1, 2, 9, 0, 0], mixed=True),
        row(2, 2, 0, "L4", "cat", "c", [1, 0, 4, 9, 0, 0]),  # nothing to find: the less found, the better
    ]
    found = {
        reading: TOSS.qualities(frame_of(rows), TossOptions(reading={"mixed": reading}))
        for reading in ("ours", "released")
    }
    kept = found["released"]
    assert kept["unit"].to_list() == found["ours"]["unit"].to_list() == ["pair-0000", "pair-0001", "pair-0002"]
    assert kept["iou"].to_list() == [0.75, 0.25, 0.2] and kept["credit"].to_list() == [0.75, 0.25, 0.8]
    for name in ("iou", "credit"):
        assert [math.isnan(value) for value in found["ours"][name]] == [False, True, False]
        assert found["ours"][name][0] == 0.75


def test_what_follows_salience_is_better_when_low_and_the_gap_has_no_better_end():
    meanings = {one.name: one for one in TOSS.card.scores}
    low = {name for name, one in meanings.items() if not one.higher_is_better}
    assert low == {"follows-salience", "salience-lead", "covers-salience", "salience-pull"}
    assert [name for name, one in meanings.items() if not one.ranked] == ["salience-gap"]
    assert [name for name, one in meanings.items() if one.headline] == ["lca", "hca", "scs", "gs"]
    # Under a support that shows nothing of the class, finding nothing is right.
    for name in ("miou", "fb-iou", "pair-iou", "iou"):
        directions = {level: meanings[name].within({"level": level}).higher_is_better for level in LEVELS}
        assert {level for level, higher in directions.items() if not higher} == {"L4", "L5", "L6"}


def test_without_cosines_no_level_is_split():
    rows = {"split": ["L2+L3", "L0"], "shots": [1, 1]}
    for records in (
        pl.DataFrame(rows),
        pl.DataFrame({**rows, "similarity": [-2.0, -2.0]}),
        pl.DataFrame({**rows, "similarity": [-2.0, 0.5]}),
    ):
        split, mean = split_levels(records, 1)
        assert mean is None and split.equals(records)
    # The mean is over one number of shots; all of them are split at it, the mean itself downwards.
    cosines = {"split": ["L2+L3"] * 4, "shots": [1, 1, 5, 5], "similarity": [0.25, 0.75, 0.5, 0.625]}
    split, mean = split_levels(pl.DataFrame(cosines), 1)
    assert mean == 0.5 and split["split"].to_list() == ["L3", "L2", "L3", "L2"]
    split, mean = split_levels(pl.DataFrame(cosines), 5)
    assert mean == 0.5625 and split["split"].to_list() == ["L3", "L2", "L3", "L2"]
    # Pairs without a cosine, and of other levels, have no part in the mean.
    others = {"split": ["L2+L3", "L0"], "shots": [5, 5], "similarity": [-2.0, 0.0]}
    more = pl.concat([pl.DataFrame(cosines), pl.DataFrame(others)])
    assert split_levels(more, 5)[1] == 0.5625


def test_scores_of_a_fold_rest_on_its_own_pairs_and_those_of_all_on_complete_folds():
    cells = {(1, fold, split, name): 40 + fold for fold, names in ((0, ("cat",)), (1, ("dog", "cow"))) for name in names
             for split in SPLITS}  # fmt: skip
    card = scorecard(frame_of(rows_of_ious(cells)))
    for name in ("lca", "hca"):
        assert [card.get(name, fold=fold).n for fold in "01"] == [4, 8] and card.get(name).n == 12
        assert [card.get(name, fold=fold).value for fold in "01"] == pytest.approx([0.4, 0.41])
    lacking = {cell: value for cell, value in cells.items() if cell[1:3] != (1, "hard_sal")}
    card = scorecard(frame_of(rows_of_ious(lacking)))
    for name in ("lca", "hca"):
        assert (card.get(name).n, card.get(name, fold="0").n, card.get(name, fold="1").n) == (4, 4, 0)
