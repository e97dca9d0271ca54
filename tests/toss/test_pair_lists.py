"""Pair lists and their files: tiers, folds and truth formats; missing files are counted, broken ones fail alone."""

from __future__ import annotations

import shutil
from dataclasses import replace

import cv2
import numpy as np
import one_shot_oracle as oracle
import polars as pl
import pytest
from command_line import CommandLine
from one_shot_folders import FIXED, devkit_token, one_shot_run, write_general_folder, write_one_shot_folder
from PIL import Image

from hardlook.data.toss_pairs import Pair, locate_tier_list, write_pairs
from hardlook.errors import DataError, OptionError
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.toss.benchmark import TOSS
from hardlook.toss.options import TossOptions

COUNTED = ["intersection", "predicted", "truth", "pixels"]

FAULTS = {"saliency": 0.5, "support_blind": 0.5}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder that no test changes."""
    return write_one_shot_folder(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(tmp_path):
    return write_one_shot_folder(tmp_path, folds=(0,))


def rehearse(data, **given):
    return InMemoryRun("toss", {"resamples": 0, "data": data, "tiers": "1", **given})


def without(folder, name):
    """Take an image away; how many pairs of tier 1 and fold 0 that costs."""
    folder.image(name).unlink()
    files = sorted((folder.pairs / "tiers" / "attribute").glob("split0_*.txt"))
    rows = [row for path in files for row in folder.listed(path.relative_to(folder.pairs))]
    lost = [row for row in rows if any(token.endswith(name) for token in row)]
    assert 0 < len(lost) < len(rows)
    return len(lost), len(rows)


def test_files_give_the_records_of_the_world_that_they_show(whole):
    found = rehearse(whole.data).records("planted-one-shot", FAULTS)
    drawn = InMemoryRun("toss", {"scenes": 24, "resamples": 0, "tiers": "1"}).records("planted-one-shot", FAULTS)
    assert found.select("unit", *COUNTED).equals(drawn.select("unit", *COUNTED))
    assert found["support"].to_list() == [devkit_token(token) for token in drawn["support"]]
    assert set(found["listing"]) == {"built, others in part"}


def test_lists_that_are_not_there_are_named(whole):
    rehearsal = rehearse(whole.data, tiers="1,3", folds="0-2")
    [note] = rehearsal.left_out
    assert note.what == "lists of pairs"
    # One split of fold 0 has no query among these scenes, fold 2 and tier 3 do not exist.
    assert note.count == 1 + 4 + 1
    assert note.examples[0] == "tier1/split0_q_hard_sal"


def test_fixed_pairs_of_a_folder(whole):
    rehearsal = rehearse(whole.data, fixed=True, folds="0,1")
    rows = rehearsal.records("planted-one-shot", FAULTS).to_dicts()
    assert len(rows) == sum(len(whole.listed(FIXED / f"split{fold}_test.txt")) for fold in (0, 1))
    score = rehearsal.benchmark.score(rehearsal.records("planted-one-shot", FAULTS), rehearsal.options).get("miou")
    assert score.value == pytest.approx(oracle.miou(rows, "ignored"))
    assert score.comparable.startswith("not comparable")


def test_void_borders_of_the_files_are_counted(tmp_path):
    folder = write_one_shot_folder(tmp_path, border=2, folds=(0,))
    records = rehearse(folder.data, folds="0").records("planted-one-shot", {"ragged": 1.0})
    assert (records["void"] > 0).all()
    assert records["predicted_void"].sum() > 0
    for row in records.to_dicts()[:20]:
        with Image.open(folder.mask(row["query"])) as picture:
            labels = np.asarray(picture)
        assert (row["pixels"], row["void"]) == (labels.size, (labels == 255).sum())
        assert 0 <= row["predicted_void"] <= row["void"]


def test_missing_images_are_refused_with_count_file_and_remedy(folder):
    name = folder.some_query
    lost, _ = without(folder, name)
    with pytest.raises(DataError, match=f"{lost} pairs need images or masks that are not there") as caught:
        rehearse(folder.data, folds="0")
    words = str(caught.value)
    assert f"the image {name}" in words
    assert str(folder.pairs) in words
    assert "--subset available" in words


def test_the_available_rest_is_run_and_every_score_says_so(folder, tmp_path):
    name = folder.some_query
    lost, planned = without(folder, name)
    done = one_shot_run(tmp_path / "run", folder.data, tiers=(1,), folds=(0,), subset="available")
    card = done.scored.scorecard
    assert card.units.planned == card.units.scored == planned - lost
    [note] = [note for note in card.left_out if note.what == "pairs without their files"]
    assert note.count == lost
    assert note.examples == (f"the image {name}",)
    assert all(score.comparable.startswith("not comparable") for score in card.scores)


def test_a_broken_image_fails_its_pairs_alone(folder, tmp_path):
    name = folder.some_query
    path = folder.image(name)
    path.write_bytes(path.read_bytes()[:200])
    rows = folder.listed(FIXED / "split0_test.txt")
    hit = [any(token.endswith(name) for token in row) for row in rows]
    done = one_shot_run(tmp_path / "run", folder.data, fixed=True, folds=(0,), max_failures=1.0)
    assert done.scored.scorecard.units.failed == sum(hit) > 0
    assert done.scored.scorecard.units.scored == len(rows) - sum(hit)
    failures = pl.read_parquet(RunFolder(tmp_path / "run").failures_path)
    assert failures["unit"].to_list() == [f"fixed-fold0-{line:05d}" for line, lost in enumerate(hit, 1) if lost]
    assert all("DataError" in text and path.name in text for text in failures["error"])


def test_a_mask_of_another_size_fails_its_pairs_with_both_sizes(folder, tmp_path):
    path = folder.mask(folder.some_query)
    cv2.imwrite(str(path), np.zeros((10, 12), np.uint8))
    done = one_shot_run(tmp_path / "run", folder.data, fixed=True, folds=(0,), max_failures=1.0)
    failures = pl.read_parquet(RunFolder(tmp_path / "run").failures_path)
    assert len(failures) == done.scored.scorecard.units.failed > 0
    assert all(path.name in text and "12" in text and "160" in text for text in failures["error"])


def test_a_truth_without_a_pixel_of_the_class_is_counted(folder):
    name = folder.some_query
    cv2.imwrite(str(folder.mask(name)), np.zeros((120, 160), np.uint8))
    rehearsal = rehearse(folder.data, fixed=True, folds="0")
    card = rehearsal.score("whole-image")
    queries = [row[0] for row in folder.listed(FIXED / "split0_test.txt")]
    [note] = [note for note in card.noted if note.what == "pairs without anything to find"]
    assert note.count == sum(query.endswith(name) for query in queries) > 0
    rows = rehearsal.records("whole-image").to_dicts()
    assert card.get("miou").value == pytest.approx(oracle.miou(rows, "ignored"))


def test_a_class_number_beyond_the_classes_is_named(folder):
    path = folder.pairs / FIXED / "split0_test.txt"
    path.write_text(path.read_text() + "13_2026_000001 13_2026_000002\n")
    with pytest.raises(
        DataError, match=r"class 13 does not exist: there are classes 1 to 12 \(named by 1 of the pairs\)"
    ):
        rehearse(folder.data, fixed=True, folds="0")


def test_a_malformed_line_is_named_with_its_file(folder):
    path = folder.pairs / FIXED / "split0_test.txt"
    path.write_text("1_2026_000001 1_2026_000002\n1_2026_000001\n")
    with pytest.raises(DataError, match="line 2") as caught:
        rehearse(folder.data, fixed=True, folds="0")
    assert path.name in str(caught.value)


@pytest.mark.parametrize(
    ("names", "remedy"),
    [
        (["voc"], "--data pairs="),
        (["pairs"], "voc=DIR"),
        (["pairs", "voc", "coco"], "voc=DIR"),
        (["pairs", "flickr"], "voc=DIR"),
    ],
)
def test_data_that_does_not_make_a_benchmark_is_refused(whole, names, remedy):
    known = {**whole.data, "coco": whole.voc, "flickr": whole.voc}
    with pytest.raises(OptionError) as caught:
        rehearse({name: known[name] for name in names})
    assert remedy in str(caught.value)


def test_lists_without_images_are_told_so(whole):
    with pytest.raises(OptionError, match="the lists of pairs are given, and no images"):
        rehearse({"pairs": whole.pairs})
    with pytest.raises(OptionError, match="--data coco, voc: this combination is not a source of images"):
        rehearse({**whole.data, "coco": whole.voc})


def test_a_change_in_the_middle_of_a_long_list_is_another_source(whole, tmp_path):
    """A sample of 32 KiB at either end would not see it."""
    file = locate_tier_list(tmp_path / "toss", 1, 0, "easy_sal")
    rows = [Pair("1_2026_000001", f"1_2026_{place:06d}", 1, 0, "easy_sal") for place in range(4000)]
    found = []
    for changed in (rows, [*rows[:2000], replace(rows[2000], support="1_2026_009999"), *rows[2001:]], rows):
        write_pairs(file.path, changed)
        found.append(TOSS.sources(TossOptions(data={"pairs": tmp_path / "toss", "voc": whole.voc}))["pairs"])
    assert file.path.stat().st_size > 3 * 2**15
    assert found[0] == found[2] != found[1]


def test_folds_that_the_folder_does_not_have_are_an_error(whole):
    with pytest.raises(DataError, match="no list of the tiers 1 and folds 7") as caught:
        rehearse(whole.data, folds="7")
    assert "tier1/split0_q_easy_sal" in str(caught.value)


@pytest.fixture(scope="module")
def general(tmp_path_factory):
    """Tier 3 with two pairs of one class and one that mixes two."""
    pairs = [("1_owl_1", "1_owl_2"), ("1_cup_2", "1_cup_1"), ("2_owl_1", "2_cup_1")]
    return write_general_folder(tmp_path_factory.mktemp("general"), pairs)


def test_tier_three_keeps_or_drops_mixed_pairs(general):
    rehearsal = rehearse(general, tiers="3")
    records = rehearsal.records("planted-one-shot")
    assert records["mixed"].to_list() == [False, False, True]
    assert records["class"].to_list() == ["owl", "cup", "owl"]
    rows = records.to_dicts()
    for reading, scored in (("released", rows), ("ours", rows[:2])):
        options = rehearsal.options.model_copy(update={"reading": {"mixed": reading}})
        card = rehearsal.benchmark.score(records, options)
        assert card.get("gs").value == pytest.approx(oracle.miou(scored, "ignored"))
        assert card.get("gs").n == len(scored)


def test_tier_three_without_its_images_is_left_out_and_counted(folder, general):
    write_pairs(locate_tier_list(folder.pairs, 3).path, [Pair("1_owl_1", "1_owl_2", 3, -1)])
    rehearsal = rehearse(folder.data, tiers="1,3", folds="0")
    assert set(rehearsal.records("empty")["tier"]) == {1}
    [note] = [note for note in rehearsal.left_out if "tier3" in note.what]
    assert (note.count, note.why) == (1, "no --data fss=DIR was given")
    both = rehearse({**folder.data, "fss": general["fss"]}, tiers="1,3", folds="0")
    assert set(both.records("empty")["tier"]) == {1, 3}


def test_the_command_line_says_what_failed_and_exits_with_three(folder, tmp_path, capsys, monkeypatch):
    path = folder.image(folder.some_query)
    path.write_bytes(path.read_bytes()[:200])
    words = [
        "run",
        "toss",
        "--fixed",
        "--folds",
        "0",
        "--model",
        "empty",
        "--max-failures",
        "1",
        "--out",
        tmp_path / "run",
    ]
    data = [word for name, place in folder.data.items() for word in ("--data", f"{name}={place}")]
    answer = CommandLine(capsys, monkeypatch)(*words, *data, "--resamples", "20", "--quiet")
    failed = len(pl.read_parquet(RunFolder(tmp_path / "run").failures_path))
    assert answer.code == 3
    assert f"{failed} units failed" in answer.err
    assert "mIoU" in answer.out
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.fixture(scope="module")
def six_folds(tmp_path_factory):
    """Fold 1's lists once more as folds 4 and 23."""
    folder = write_one_shot_folder(tmp_path_factory.mktemp("folds"), folds=(1,))
    for path in list(folder.pairs.rglob("split1_*.txt")):
        for fold in (4, 23):
            shutil.copy(path, path.with_name(path.name.replace("split1_", f"split{fold}_")))
    return folder


def folds_run(data, **given):
    rehearsal = InMemoryRun("toss", {"data": data, "resamples": 0, **given})
    return set(rehearsal.records("empty")["fold"]), rehearsal.left_out


@pytest.mark.parametrize("given", [{"tiers": "1"}, {"tiers": "1,2"}, {"fixed": True}])
def test_every_fold_of_the_folder_runs_by_default(six_folds, given):
    folds, left_out = folds_run(six_folds.data, **given)
    assert folds == {1, 4, 23}
    # The copied lists name the classes of fold 1.
    assert [note.what for note in left_out] == ["pairs of classes of another fold"]


@pytest.mark.parametrize(("text", "folds"), [("4", {4}), ("1,23", {1, 23}), ("1-4", {1, 4})])
def test_folds_are_chosen_by_number_and_range(six_folds, text, folds):
    assert folds_run(six_folds.data, fixed=True, folds=text)[0] == folds


def test_folds_asked_for_and_not_there_are_counted(six_folds):
    _, [note, _] = folds_run(six_folds.data, fixed=True, folds="1-4")
    assert (note.what, note.count, note.examples) == (
        "lists of pairs",
        2,
        ("pascal5i/split2_test", "pascal5i/split3_test"),
    )


def test_studies_take_every_fold_too(six_folds, tmp_path):
    done = one_shot_run(tmp_path / "run", six_folds.data, benchmark="bias-support", model="empty", pairs_a_class=2)
    assert set(done.scored.records["fold"]) == {1, 4, 23}


def test_the_planted_world_says_which_folds_it_does_not_have():
    rehearsal = InMemoryRun("toss", {"scenes": 24, "resamples": 0, "folds": "1,3"})
    assert set(rehearsal.records("empty")["fold"]) == {1, -1}
    [note] = rehearsal.left_out
    assert (note.count, note.examples, note.why) == (1, ("fold 3",), "the planted world has folds 0 to 1")
    with pytest.raises(DataError, match="no list of these tiers and of fold 3") as caught:
        InMemoryRun("toss", {"scenes": 24, "tiers": "1,2", "folds": "3"})
    assert "folds 0 to 1" in str(caught.value)


def test_all_folds_is_the_default():
    assert TossOptions().folds is None
    assert TossOptions(folds="0-3").folds == (0, 1, 2, 3)


COUNTED_COLUMNS = ["unit", "class", "query", "intersection", "predicted", "truth", "pixels"]


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    return write_one_shot_folder(tmp_path_factory.mktemp("maps"), folds=(0,))


@pytest.fixture(scope="module")
def from_maps(maps):
    return counted(maps.data)


def counted(data, **given):
    rehearsal = InMemoryRun("toss", {"data": data, "fixed": True, "folds": "0", "resamples": 0, **given})
    return rehearsal.records("planted-one-shot", {"saliency": 0.5}).select(COUNTED_COLUMNS)


def write_binary(folder, out):
    """One binary mask for each token of the list."""
    out.mkdir()
    for token in {token for row in folder.listed(FIXED / "split0_test.txt") for token in row}:
        number, _, image = token.partition("_")
        with Image.open(folder.mask(image)) as picture:  # OpenCV would paint the palette; the index is what counts
            labels = np.asarray(picture)
        cv2.imwrite(str(out / f"{token}.png"), np.where(labels == int(number), 255, 0).astype(np.uint8))
    return out


def test_binary_masks_give_the_same_records(maps, from_maps, tmp_path):
    binary = write_binary(maps, tmp_path / "binary")
    images = tmp_path / "voc" / "JPEGImages"
    images.parent.mkdir()
    images.symlink_to(maps.voc / "JPEGImages")
    (tmp_path / "voc" / "classes.txt").write_text((maps.voc / "classes.txt").read_text())
    found = counted({"voc": tmp_path / "voc", "binary": binary, "pairs": maps.pairs})
    assert found.equals(from_maps)
    labels = str(maps.voc / "classes.txt")
    assert counted({"images": images, "binary": binary, "pairs": maps.pairs}, labels=labels).equals(from_maps)


def test_plain_folders_with_a_list_of_classes_give_the_same_records(maps, from_maps):
    data = {
        "images": maps.voc / "JPEGImages", "masks": maps.voc / "SegmentationClass", "pairs": maps.pairs,
    }  # fmt: skip
    assert counted(data, labels=str(maps.voc / "classes.txt")).equals(from_maps)


def test_pairs_of_classes_that_do_not_exist_are_counted_apart_from_missing_files(folder):
    path = folder.pairs / FIXED / "split0_test.txt"
    path.write_text(path.read_text() + "25_2026_000001 25_2026_000002\n13_2026_000001 13_2026_000002\n")
    lines = len(folder.listed(FIXED / "split0_test.txt"))
    rehearsal = rehearse(folder.data, fixed=True, subset="available")
    [note] = rehearsal.left_out
    assert (note.what, note.count) == ("pairs of classes that do not exist", 2)
    assert note.why == (
        "class 25 does not exist: there are classes 1 to 12; class 13 does not exist: there are classes 1 to 12"
    )
    assert note.examples == (f"pascal5i/split0_test, line {lines - 1}", f"pascal5i/split0_test, line {lines}")
    assert set(rehearsal.records("empty")["listing"]) == {f"built, {lines - 2} of {lines} pairs, others in part"}


def test_repeated_pairs_count_and_are_named(folder):
    path = folder.pairs / FIXED / "split0_test.txt"
    rows = path.read_text().splitlines()
    path.write_text("\n".join([*rows, rows[4], rows[0], rows[4]]) + "\n")
    rehearsal = rehearse(folder.data, fixed=True)
    [note] = rehearsal.left_out
    assert (note.what, note.count, note.kept) == ("repeated pairs", 3, True)
    assert note.examples[0] == f"pascal5i/split0_test: line {len(rows) + 1} repeats line 5"
    assert len(rehearsal.records("empty")) == len(rows) + 3


def test_classes_of_another_fold_are_counted_and_named(whole, tmp_path):
    pairs = tmp_path / "toss"
    shutil.copytree(whole.pairs, pairs)
    other = (pairs / FIXED / "split1_test.txt").read_text().splitlines()[:3]
    path = pairs / FIXED / "split0_test.txt"
    (pairs / "manifest.json").write_text(
        '{"schema": "hardlook.built-toss/1", "folds": [["cat", "dog", "car", "bus"], ["house", "barn", "apple"]]}'
    )
    path.write_text(path.read_text() + "\n".join(other) + "\n")
    rehearsal = rehearse({**whole.data, "pairs": pairs}, fixed=True, folds="0")
    [note] = rehearsal.left_out
    assert (note.what, note.count, note.kept) == ("pairs of classes of another fold", 3, True)
    assert note.examples == ("house in pascal5i/split0_test: 3 pairs",)
    [unit] = rehearsal.prepared[0].units[:1]
    assert unit.payload.settings.training_classes == ("house", "barn", "apple")


def test_where_no_manifest_names_the_folds_a_class_is_of_the_fold_that_has_most_of_its_pairs(whole, tmp_path):
    pairs = tmp_path / "toss"
    shutil.copytree(whole.pairs, pairs)
    other = (pairs / FIXED / "split1_test.txt").read_text().splitlines()[:3]
    path = pairs / FIXED / "split0_test.txt"
    path.write_text(path.read_text() + "\n".join(other) + "\n")
    [note] = rehearse({**whole.data, "pairs": pairs}, fixed=True).left_out
    assert (note.what, note.count, note.kept) == ("pairs of classes of another fold", 3, True)
    assert note.examples == ("house in pascal5i/split0_test: 3 pairs",)
