"""TOSS end to end: planted faults move their scores, runs resume, and the published lists count as their files say."""

from __future__ import annotations

import math

import one_shot_oracle as oracle
import polars as pl
import pytest
from one_shot_folders import one_shot_run, whole_records
from small_runs import replace_part

from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.toss.benchmark import TOSS
from hardlook.toss.options import TossOptions

FAULTS = {"saliency": 0.5, "support_blind": 0.5}


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("toss", {"scenes": 48, "resamples": 0})


@pytest.fixture(scope="module")
def right(rehearsal):
    """The scores of a model without fault."""
    return headline(rehearsal)


def headline(rehearsal, **dials):
    card = rehearsal.score("planted-one-shot", dials)
    return {score.name: score.value for score in card.headline}


def test_a_model_without_fault_has_every_score_right(right):
    found = right
    assert {name: found[name] for name in ("lca", "hca", "scs", "gs", "rejection", "salience-gap")} == pytest.approx(
        {"lca": 1, "hca": 1, "scs": 1, "gs": 1, "rejection": 1, "salience-gap": 0}
    )


def test_following_salience_moves_hca_and_the_gap_and_not_rejection(rehearsal, right):
    half, fully = (headline(rehearsal, saliency=dial) for dial in (0.5, 1.0))
    assert right["hca"] > half["hca"] > fully["hca"]
    assert right["salience-gap"] < half["salience-gap"] < fully["salience-gap"]
    # A query of two objects may hold the class that a support of L4 shows; there a salient object is no rejection.
    assert [half["rejection"], fully["rejection"]] == pytest.approx([1, 1], abs=0.03)


def test_ignoring_the_support_moves_scs_and_rejection_and_not_hca_or_the_gap(rehearsal, right):
    half, fully = (headline(rehearsal, support_blind=dial) for dial in (0.5, 1.0))
    assert right["scs"] > half["scs"] > fully["scs"]
    assert right["rejection"] > half["rejection"] > fully["rejection"]
    for name in ("hca", "lca", "salience-gap", "gs"):
        assert right[name] == half[name] == fully[name]


def test_an_empty_answer_earns_a_quarter_of_scs(rehearsal):
    found = {score.name: score.value for score in rehearsal.score("empty").headline}
    assert (found["lca"], found["hca"], found["gs"]) == (0, 0, 0)
    assert found["scs"] == pytest.approx(3 / 12)
    assert found["rejection"] == 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    one_shot_run(out, args=FAULTS, scenes=24, folds=(0,), tiers=(1, 2))
    return out


def test_a_resumed_run_is_the_uninterrupted_one(whole, tmp_path):
    """A batch that was cut off is answered again."""
    one_shot_run(tmp_path / "torn", args=FAULTS, scenes=24, folds=(0,), tiers=(1, 2))
    parts = sorted(RunFolder(tmp_path / "torn").records_path.glob("part-*.parquet"))
    together = pl.concat([pl.read_parquet(part) for part in parts])
    for part in parts[1:]:
        part.unlink()
    replace_part(parts[0], together.sample(100, seed=0))
    done = one_shot_run(tmp_path / "torn", args=FAULTS, scenes=24, folds=(0,), tiers=(1, 2))
    assert done.progress.answered == len(together) - 100
    assert whole_records(tmp_path / "torn").equals(whole_records(whole))
    assert RunFolder(tmp_path / "torn").scores_path.read_text() == RunFolder(whole).scores_path.read_text()


def test_processes_answer_as_this_one_does(whole, tmp_path, forked_workers):
    one_shot_run(tmp_path / "run", args=FAULTS, scenes=24, folds=(0,), tiers=(1, 2), engine="processes")
    assert whole_records(tmp_path / "run").equals(whole_records(whole))


def listed(**given):
    return InMemoryRun("toss", {"scenes": 24, "resamples": 0, **given})


def units_of(rehearsal):
    return [unit for batch in rehearsal.prepared for unit in batch.units]


def test_folds_and_tiers_choose_the_units_of_the_whole_list():
    everything = {unit.id for unit in units_of(listed())}
    one_fold = {unit.id for unit in units_of(listed(folds="0"))}
    assert one_fold == {name.replace("tier3-", "tier3-fold0-") for name in everything if "fold1" not in name}
    assert {unit.id for unit in units_of(listed(folds="0", per_fold=False))} == {
        name for name in everything if "fold1" not in name
    }
    one_tier = {unit.id for unit in units_of(listed(tiers="1"))}
    assert one_tier == {name for name in everything if name.startswith("tier1")}
    assert {unit.id for unit in units_of(listed(tiers="2,3", folds="0-1"))} == everything - one_tier


@pytest.mark.parametrize("wrong", [{"tiers": "4"}, {"tiers": "1,1"}, {"folds": "-1"}, {"shots": "0"}, {"scenes": 3}])
def test_options_that_make_no_sense_are_refused_by_name(wrong):
    with pytest.raises(OptionError, match=f"--{next(iter(wrong))}"):
        listed(**wrong)


def test_fixed_lists_have_their_own_scores():
    rehearsal = listed(fixed=True)
    assert all(unit.id.startswith("fixed-fold") for unit in units_of(rehearsal))
    card = rehearsal.score("planted-one-shot")
    assert card.get("miou").value == 1
    assert {score.name for score in card.scores} == {"miou", "fb-iou", "pair-iou", "iou"}
    assert set(rehearsal.records("planted-one-shot")["tier"]) == {0}


@pytest.fixture(scope="module")
def several_shots():
    return InMemoryRun("toss", {"scenes": 48, "resamples": 0, "tiers": "1", "shots": "1,3,2"})


def test_more_shots_keep_the_pairs_support_and_never_show_the_query(several_shots):
    pairs = {unit.id: unit.payload for unit in units_of(several_shots)}
    three = {name: pair for name, pair in pairs.items() if name.endswith("-3shot")}
    assert len(pairs) == 3 * len(three)
    for name, pair in three.items():
        source = pair.settings.source
        one, two = pairs[name.removesuffix("-3shot")], pairs[name.replace("-3shot", "-2shot")]
        assert (pair.query, pair.supports[:1], pair.supports[:2]) == (one.query, one.supports, two.supports)
        assert (len(one.supports), len(pair.supports)) == (1, 3)
        # Small cells pair a query with itself, as the published rule does; further supports never are the query.
        query, first, *further = (source.image_of(token) for token in (pair.query, *pair.supports))
        assert len({*further} - {query, first}) == 2
        assert {source.class_of(token) for token in (pair.query, *pair.supports)} == {pair.slices["class"]}
        assert len(pair.support) == 3


def test_supports_of_several_shots_vary_from_pair_to_pair(several_shots):
    seen = {unit.payload.supports for unit in units_of(several_shots) if unit.id.endswith("-3shot")}
    assert len({supports[1:] for supports in seen}) > 20


def test_shots_are_reported_beside_each_other(several_shots):
    card = several_shots.score("planted-one-shot", {"saliency": 0.5})
    for shots in ({}, {"shots": "2"}, {"shots": "3"}):
        assert 0 < card.get("hca", **shots).value < 1
    assert card.get("lca").n == card.get("lca", shots="3").n == len(units_of(several_shots)) / 3


def test_pairs_of_a_class_with_too_few_images_are_counted_and_the_rest_runs():
    rehearsal = listed(tiers="1", shots="1,4")
    pairs = [unit.payload for unit in units_of(rehearsal)]
    images, one_shot = {}, [pair for pair in pairs if pair.slices["shots"] == 1]
    for pair in one_shot:
        images.setdefault(pair.slices["class"], set()).update((pair.query, *pair.supports))
    # Three further supports are wanted beside query and support; small cells pair a query with itself.
    short = [pair for pair in one_shot if len(images[pair.slices["class"]] - {pair.query, *pair.supports}) < 3]
    [note] = rehearsal.left_out
    assert (note.what, note.count) == ("pairs of 4 shots", len(short))
    assert 0 < len(short) < len(one_shot)
    assert len(pairs) == 2 * len(one_shot) - len(short)


def test_a_class_with_too_few_images_for_the_shots_is_an_error():
    with pytest.raises(DataError, match="--shots 60: no class has that many images") as caught:
        listed(tiers="1", shots="60")
    assert "fewer --shots" in str(caught.value)


def test_at_512_images_truth_and_answers_are_squares():
    rehearsal = listed(size="512", tiers="1", folds="0")
    unit = units_of(rehearsal)[0].payload
    assert unit.image.shape == (512, 512, 3)
    assert unit.truth.mask.shape == unit.support[0].mask.shape == (512, 512)
    records = rehearsal.records("planted-one-shot")
    assert set(records["pixels"]) == {512 * 512}
    assert rehearsal.score("planted-one-shot").get("salience-gap").value == 0
    original = listed(tiers="1", folds="0").records("planted-one-shot")
    # Nearest pixels: areas grow with the picture, up to what falls between them.
    grown = records["truth"] / original["truth"] * original["pixels"] / records["pixels"]
    assert grown.to_numpy() == pytest.approx(1, abs=0.25)


def test_every_level_of_tier_two_shows_what_it_says():
    levels = {}
    for unit in units_of(listed(tiers="2")):
        levels.setdefault(unit.payload.slices["split"], []).append(unit.payload)
    assert sorted(levels) == ["L0", "L1", "L2", "L3", "L4", "L5", "L6"]
    for level, pairs in levels.items():
        for pair in pairs:
            source, [support] = pair.settings.source, pair.support
            original = source.read_image(pair.query)
            same_class = source.class_of(pair.query) == source.class_of(pair.supports[0])
            assert same_class == (level != "L4")
            assert (pair.supports == (pair.query,)) == (level in ("L0", "L1")) or level in ("L5", "L6")
            assert (pair.image == original).all() == (level != "L1")
            assert bool(support.mask.any()) == (level not in ("L5", "L6"))
            assert bool(support.image.any()) == (level != "L6")
            assert pair.slices["class"] == source.class_of(pair.query)
            if level != "L1":
                assert (pair.truth.mask == source.read_mask(pair.query).mask).all()


@pytest.fixture(scope="module")
def data(shared_data):
    found = {"pairs": shared_data / "reference" / "toss", "voc": shared_data / "data" / "VOCdevkit" / "VOC2012"}
    for path in found.values():
        if not path.is_dir():
            pytest.skip(f"no {path.name} here")
    return found


@pytest.fixture(scope="module")
def counted(data):
    """(kept, lost) pairs of fold 0 by list, read off the files."""
    images = {path.stem for path in (data["voc"] / "JPEGImages").iterdir()}
    masks = {
        path.stem for name in ("SegmentationClassAug", "SegmentationClass") for path in (data["voc"] / name).glob("*")
    }
    found = {}
    files = [path for path in (data["pairs"] / "data" / "tiers").rglob("split0_*.txt")]
    for path in sorted(files):
        kept = lost = 0
        for line in path.read_text().splitlines():
            tokens = [word.split("/")[-1].removesuffix(".jpg") for word in line.split()[:2]]
            there = ["_".join(token.split("_")[-2:]) for token in tokens]
            if all(image in images and image in masks for image in there):
                kept += 1
            else:
                lost += 1
        found[path.stem] = kept, lost
    return found


@pytest.fixture(scope="module")
def available(data):
    given = {"data": data, "folds": "0", "tiers": "1,2", "subset": "available", "resamples": 0}
    return InMemoryRun("toss", given)


@pytest.fixture(scope="module")
def empty(available):
    return available.records("empty")


@pytest.mark.real
def test_what_is_kept_and_missing_is_what_the_files_say(available, empty, counted):
    assert len(counted) == 5
    assert sum(sum(pair) for pair in counted.values()) == 20_000 + 20_620 + 20_034 + 19_444 + 2_422
    assert len(empty) == sum(kept for kept, _ in counted.values()) > 0
    [note] = [note for note in available.left_out if note.what == "pairs without their files"]
    assert note.count == sum(lost for _, lost in counted.values())
    assert all(text.startswith(("the image 20", "the mask of ")) for text in note.examples)
    for split in ("easy_sal", "easy_nsal", "hard_sal", "hard_nsal"):
        here = empty.filter((empty["tier"] == 1) & (empty["split"] == split))
        assert len(here) == counted[f"split0_q_{split}"][0]
    assert (empty["tier"] == 2).sum() == counted["split0_tier2"][0]


@pytest.mark.real
def test_lists_count_as_published_and_scores_as_not_comparable(available, empty):
    assert all(kind.startswith("published, ") for kind in empty["listing"].unique())
    card = TOSS.score(empty, available.options)
    assert card.scores
    assert all(score.comparable.startswith("not comparable: only a part") for score in card.scores)


@pytest.mark.real
def test_an_empty_answer_has_nothing_of_tier_one(available, empty):
    card = available.score("empty")
    assert card.get("lca").value == card.get("hca").value == 0
    assert {score.value for score in card.scores if score.name in ("miou", "iou", "pair-iou")} == {0.0}
    assert card.get("rejection").value == 1


@pytest.mark.real
def test_scs_is_a_quarter_or_names_the_fold_that_lacks_levels(available, empty):
    card = available.score("empty")
    expected = oracle.scs(empty.filter(empty["tier"] == 2).to_dicts(), "paper", "ignored")
    without = [note.examples for note in card.left_out if note.what == "folds without scs"]
    if expected is None:
        assert math.isnan(card.get("scs").value)
        assert without == [("fold 0",)]
    else:
        assert card.get("scs").value == expected == 0.25
        assert without == []


@pytest.mark.real
def test_the_whole_image_has_the_share_of_the_truth(available):
    records = available.records("whole-image")
    assert (records["predicted"] == records["pixels"]).all()
    assert (records["intersection"] == records["truth"]).all()
    assert (records["predicted_void"] == records["void"]).all()
    assert (records["void"] > 0).any()


@pytest.mark.real
def test_all_pairs_are_refused_while_images_are_missing(data, counted):
    lost = sum(lost for name, (_, lost) in counted.items() if "tier2" not in name)
    with pytest.raises(DataError, match=f"{lost} pairs need images or masks that are not there: the image 20"):
        TOSS.list_units(TossOptions(data=data, folds=(0,), tiers=(1,)))


@pytest.mark.real
def test_five_shots_take_images_of_the_class_that_any_list_names(data):
    """Few fixed pairs are whole here, yet their lists name hundreds of images that are there."""
    listed = TOSS.list_units(TossOptions(data=data, fixed=True, folds=(0,), subset="available", shots=(1, 5)))
    there = {path.stem for path in (data["voc"] / "JPEGImages").iterdir()}
    text = (data["pairs"] / "data" / "fixedsplits" / "pascal5i" / "split0_test.txt").read_text()
    named = {token for token in text.split() if token.partition("_")[2] in there}
    five = [unit.payload for unit in listed if unit.payload.slices["shots"] == 5]
    assert len(five) == len(listed) / 2 > 0
    for pair in five:
        number = pair.query.partition("_")[0]
        assert len(set(pair.supports)) == 5
        assert {token for token in named if token.startswith(f"{number}_")} >= set(pair.supports)
        assert pair.query not in pair.supports[1:]
    assert not [note for note in listed.left_out if "shots" in note.what]
