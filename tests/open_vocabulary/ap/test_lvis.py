"""Open AP on LVIS's json, from the file to scores.json and the report, with the lvis package and hotcoco as judges."""

import json

import numpy as np
import polars as pl
import pytest
from command_line import CommandLine
from detection_scenes import pycocotools_evaluation
from lvis_scenes import FIGURES, evaluate_with_hotcoco, evaluate_with_lvis, lvis_scene

from hardlook.errors import OptionError
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import launch
from hardlook.harness.runs.record_store import list_parts, write_part
from hardlook.harness.runs.scoring import score_run
from hardlook.harness.runs.verification import verify_run
from hardlook.open_vocabulary.ap.evaluation import SCHEMA
from hardlook.report.compare.comparison import compare_runs
from hardlook.report.explorer.run_records import build_record_frame, read_run_state, read_whole_record
from hardlook.report.run_report import write_report

BENCHMARK = find_benchmark("open-ap")

WORDS = ("cat", "dog", "car", "bus", "owl")

LATER = [column.name for column in SCHEMA.columns if column.default is not None]


def write_files(folder, seed=5, **options):
    """(truth, results, options of a run), the first two as files; LVIS's names have senses here."""
    truth, results = lvis_scene(seed, images=8, classes=len(WORDS), most=9, **options)
    for category, word in zip(truth["categories"], WORDS, strict=True):
        category["name"] = word
    for image in truth["images"]:
        image["file_name"] = f"{image['id']}.png"
    (folder / "lvis.json").write_text(json.dumps(truth))
    (folder / "results.json").write_text(json.dumps(results))
    return truth, results, {"gt": folder / "lvis.json", "pred": folder / "results.json", "iou": "bbox", "resamples": 0}


def without_crowds(truth):
    """The truth as pycocotools needs it."""
    return {**truth, "annotations": [{**one, "iscrowd": 0} for one in truth["annotations"]]}


@pytest.fixture(scope="module")
def lvis_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lvis")
    truth, results, given = write_files(folder)
    launch("open-ap", out=folder / "run", given=given)
    return folder / "run", truth, results


@pytest.mark.parametrize("iou", ["segm", "bbox"])
@pytest.mark.parametrize("limit", [4, 300])
def test_an_lvis_json_gets_lvis_scores_without_being_asked(tmp_path, monkeypatch, iou, limit):
    truth, results, given = write_files(tmp_path, masks=iou == "segm")
    given |= {"iou": iou, "max_detections_lvis": limit}
    card = launch("open-ap", out=tmp_path / "run", given=given).scored.scorecard
    ours = {name: card.get(name.lower()).value for name in FIGURES}
    theirs, _ = evaluate_with_lvis(truth, results, iou, monkeypatch, limit)
    assert ours == pytest.approx(theirs, abs=1e-9, rel=0, nan_ok=True)
    assert ours == pytest.approx(evaluate_with_hotcoco(truth, results, iou, limit), abs=1e-9, rel=0, nan_ok=True)
    with_coco_rules = pycocotools_evaluation(without_crowds(truth), results, iou).stats[0]
    assert abs(ours["AP"] - with_coco_rules) > 0.001


def test_scores_and_report_name_the_rules(lvis_run):
    folder, _, _ = lvis_run
    document = json.loads((folder / "scores.json").read_text())
    (protocol,) = [reading for reading in document["readings"] if reading["name"] == "protocol"]
    assert (protocol["value"], protocol["default"]) == ("lvis", "lvis")
    assert {score["reading"] for score in document["scores"] if score["name"] == "open-apr"} == {
        "unmatched=ours, protocol=lvis"
    }
    page = write_report(score_run(RunFolder(folder))).read_text()
    assert "vanilla AP is LVIS AP" in page
    assert "detections of classes that are not verified" in page
    assert "neg_category_ids" in page


def test_the_terminal_shows_every_figure(lvis_run, capsys, monkeypatch):
    folder, _, _ = lvis_run
    answer = CommandLine(capsys, monkeypatch)("score", folder)
    assert answer.code == 0
    for name in ("apr", "dagger-apc", "open-apf", "ar1", "dagger-ar10", "open-ar", "open-ars", "dagger-arm"):
        assert f" {name} " in answer.out.replace("\n", " ")
    assert "protocol=lvis" in answer.out
    full = CommandLine(capsys, monkeypatch)("score", folder, "--full").out
    for name in ("ap50", "dagger-ap50", "open-ap50", "ar", "dagger-ar", "open-ar"):
        assert f"\n{name} ↑, 5 slices" in full


def test_coco_rules_can_be_asked_for(lvis_run):
    folder, truth, results = lvis_run
    card = score_run(RunFolder(folder), {"reading": {"protocol": "coco"}}).scorecard
    theirs = pycocotools_evaluation(without_crowds(truth), results, "bbox").stats
    names = ("ap", "ap50", "ap75", "aps", "apm", "apl", "ar1", "ar10", "ar", "ars", "arm", "arl")
    ours = [card.get(name).value for name in names]
    np.testing.assert_allclose(ours, np.where(theirs == -1, np.nan, theirs), atol=1e-9)
    assert not [score for score in card.scores if score.name == "apr"]
    assert [(one.value, one.default) for one in card.readings if one.name == "protocol"] == [("coco", "lvis")]


def test_lvis_rules_need_lvis_lists(tmp_path):
    given = {"scenes": 2, "resamples": 0}
    launch("open-ap", out=tmp_path, model="planted-instances", given=given)
    with pytest.raises(OptionError, match="do not say which classes are absent"):
        score_run(RunFolder(tmp_path), {"reading": {"protocol": "lvis"}})
    with pytest.raises(OptionError, match="protocol=oid: there is no such reading"):
        score_run(RunFolder(tmp_path), {"reading": {"protocol": "oid"}})


def test_what_lvis_leaves_out_is_counted(lvis_run):
    folder, truth, results = lvis_run
    notes = {note.what: note.count for note in score_run(RunFolder(folder)).scorecard.left_out}
    known = {image["id"]: set(image["neg_category_ids"]) for image in truth["images"]}
    for annotation in truth["annotations"]:
        known[annotation["image_id"]].add(annotation["category_id"])
    unverified = sum(row["category_id"] not in known[row["image_id"]] for row in results)
    assert notes["detections of classes that are not verified"] == unverified > 0
    assert notes["unmatched detections of classes that are not exhaustive"] > 0


def test_a_detection_that_lvis_ignores_changes_no_quality_of_its_image(lvis_run):
    run = score_run(RunFolder(lvis_run[0]))
    qualities = BENCHMARK.qualities(run.records, run.options)
    strangers = run.records.with_columns(negative_labels=pl.lit([], pl.List(pl.Int64)))
    ignored = BENCHMARK.qualities(strangers, run.options)
    both = qualities["image-ap50"].to_numpy(), ignored["image-ap50"].to_numpy()
    # Fewer classes are verified, so that there are fewer false positives, and no object has lost its detection.
    assert (both[1] >= both[0] - 1e-12)[~np.isnan(both[0])].all()
    assert (both[1] > both[0]).any()
    coco = BENCHMARK.qualities(run.records, run.options.model_copy(update={"reading": {"protocol": "coco"}}))
    assert (coco["image-ap50"].to_numpy() < both[0]).any()


def forget_later_columns(folder):
    """Rewrite the records as a version wrote them that did not have all columns."""
    for part in list_parts(RunFolder(folder).records_path):
        frame = pl.read_parquet(part).drop(LATER)
        part.unlink()
        write_part(frame, RunFolder(folder).records_path)


def test_records_without_the_columns_of_lvis_are_scored_by_cocos_rules(tmp_path):
    assert LATER == ["protocol", "negative_labels", "partial_labels", "frequencies", "senses", "phrases"]
    _, _, given = write_files(tmp_path)
    for name in ("old", "new"):
        launch("open-ap", out=tmp_path / name, given=given)
    forget_later_columns(tmp_path / "old")
    assert not verify_run(RunFolder(tmp_path / "old")).problems
    old, new = (score_run(RunFolder(tmp_path / name)) for name in ("old", "new"))
    coco = score_run(RunFolder(tmp_path / "new"), {"reading": {"protocol": "coco"}}).scorecard
    assert [score.value for score in old.scorecard.scores] == pytest.approx(
        [score.value for score in coco.scores], nan_ok=True
    )
    assert old.whole_records(["1"])["1"]["protocol"] == "coco"
    answers = old.manifest["answers"]["fingerprint"]
    explored = read_run_state(old.folder, old.benchmark, old.options, answers, tmp_path)
    row = build_record_frame(explored).row(0, named=True)
    assert read_whole_record(explored, row)["negative_labels"] == []
    with pytest.raises(OptionError, match="different readings of protocol"):
        compare_runs([old, new], names=["old", "new"])
    compared = compare_runs([new, new], names=["one", "other"], resamples=20, swaps=20)
    assert {one.value for one in compared.differences if one.name == "open-apc" and not one.slice} == {0}


def test_images_are_found_by_their_address(tmp_path):
    truth, _, given = write_files(tmp_path)
    for image in truth["images"]:
        del image["file_name"]
        image["coco_url"] = f"http://images.cocodataset.org/val2017/{image['id']:012d}.jpg"
    (tmp_path / "lvis.json").write_text(json.dumps(truth))
    units = BENCHMARK.list_units(BENCHMARK.options(**given))
    assert units[0].id == f"{truth['images'][0]['id']:012d}"
    assert units[0].payload.objects.file_name.startswith("val2017/")
