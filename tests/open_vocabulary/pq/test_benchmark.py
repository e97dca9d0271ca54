import json

import numpy as np
import polars as pl
import pytest
from panoptic_files import Drawn, write_panoptic

from hardlook.harness.calibration import calibrate
from hardlook.harness.options import parse_options
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.evaluation import evaluate_batch
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.runs.launch import launch
from hardlook.models.registry import build
from hardlook.open_vocabulary.pq.evaluation import read_matches
from hardlook.world.layouts import write_world
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import BY_CODE

BENCHMARK = find_benchmark("open-pq")

MODEL = "planted-panoptic"

FAULTS = {"sibling": 0.3, "stranger": 0.2, "ragged": 0.5, "missed": 0.2}


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("open-pq", {"scenes": 24, "resamples": 200})


@pytest.fixture(scope="module")
def faulty(rehearsal):
    return rehearsal.records(MODEL, FAULTS)


def test_the_sound_model_is_perfect(rehearsal):
    scorecard = rehearsal.score(MODEL)
    assert {score.value for score in scorecard.scores if score.name != "open-gain"} == {1.0}
    assert scorecard.get("open-gain").value == 0


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """A planted world on disk with the faulty model's answers beside it; the first object of each is a crowd."""
    folder = tmp_path_factory.mktemp("world")
    write_world(folder / "truth", "coco-panoptic", count=24)
    truth = json.loads((folder / "truth" / "panoptic.json").read_text())
    for row in truth["annotations"][::3]:
        row["segments_info"][0]["iscrowd"] = 1
    (folder / "truth" / "panoptic.json").write_text(json.dumps(truth))
    model = build(MODEL, role="panoptic-segmenter", args=FAULTS)
    answers = model.segment_panoptic([scene.image for scene in PlantedWorld(count=24)])
    drawn = {
        row["image_id"]: Drawn(answer.map, {one: label + 1 for one, label in answer.labels.items()})
        for row, answer in zip(truth["annotations"], answers, strict=True)
    }
    write_panoptic(folder, "pred", drawn, {code: (label.name, label.thing) for code, label in BY_CODE.items()})
    return folder


def test_vanilla_scores_equal_panopticapi_on_a_world_on_disk(on_disk, tmp_path):
    from hotcoco.panoptic import PanopticEval

    gt, masks, pred = on_disk / "truth" / "panoptic.json", on_disk / "truth" / "panoptic", on_disk / "pred.json"
    theirs = PanopticEval(str(gt), str(pred), gt_folder=str(masks), pred_folder=str(on_disk / "pred"))
    theirs.evaluate()
    results = theirs.results()
    given = {"gt": gt, "gt_masks": masks, "pred": pred, "measure": "identity", "resamples": 0}
    card = launch("open-pq", out=tmp_path / "run", given=given).scored.scorecard
    for group, kind in (("All", {}), ("Things", {"kind": "things"}), ("Stuff", {"kind": "stuff"})):
        for name in ("pq", "sq", "rq"):
            assert card.get(name, **kind).value == pytest.approx(results[group][name], abs=1e-12)
            assert card.get(f"open-{name}", **kind).value == card.get(name, **kind).value
    occurring = {int(code): row["pq"] for code, row in results["per_class"].items() if row["pq"] >= 0}
    assert 15 < len(occurring)
    for code, value in occurring.items():
        assert card.get("pq", **{"class": BY_CODE[code].name}).value == pytest.approx(value, abs=1e-12)


def test_a_model_on_a_world_on_disk_scores_as_in_the_embedded_one(rehearsal, faulty, tmp_path):
    write_world(tmp_path / "world", "coco-panoptic", count=24)
    data = {"panoptic": "panoptic.json", "segments": "panoptic", "images": "images"}
    given = {"data": {name: tmp_path / "world" / path for name, path in data.items()}, "resamples": 0}
    done = launch("open-pq", out=tmp_path / "run", model=MODEL, model_args=FAULTS, given=given)
    embedded = BENCHMARK.score(faulty, rehearsal.options)
    for name in ("pq", "open-pq"):
        assert done.scored.scorecard.get(name).value == pytest.approx(embedded.get(name).value)


def test_any_similarity_is_a_score_of_the_same_records(rehearsal, faulty):
    card = BENCHMARK.score(faulty, rehearsal.options)
    for measure in ("wup", "lin", "lesk"):
        options = parse_options(BENCHMARK.options, {"measure": measure, "resamples": 0})
        again = BENCHMARK.score(faulty, options)
        assert again.get("open-pq").value == pytest.approx(card.get("open-pq", measure=measure).value)
        assert again.get("pq").value == pytest.approx(card.get("pq").value)


def test_no_open_quality_is_below_the_vanilla_one(rehearsal, faulty):
    card = BENCHMARK.score(faulty, rehearsal.options)
    pairs = [
        (score, card.get(f"open-{score.name}", **score.slice)) for score in card.scores if score.name in ("pq", "rq")
    ]
    assert len(pairs) > 40
    assert all(opened.value >= vanilla.value - 1e-12 for vanilla, opened in pairs)


def test_contexts_are_scored_by_their_own_images(rehearsal, faulty):
    whole = BENCHMARK.score(faulty, rehearsal.options)
    beach = BENCHMARK.score(faulty.filter(pl.col("context") == "beach"), rehearsal.options)
    for name in ("pq", "open-pq", "open-gain"):
        assert whole.get(name, context="beach").value == beach.get(name).value


def test_class_sets_are_means_over_their_classes(rehearsal, faulty, tmp_path):
    (tmp_path / "sets.json").write_text('{"known": ["cat", "dog", "sky"], "unknown": ["owl"], "things": ["cat"]}')
    options = parse_options(BENCHMARK.options, {"class_sets": tmp_path / "sets.json", "resamples": 50})
    card = BENCHMARK.score(faulty, options)
    values = [card.get("open-pq", **{"class": name}).value for name in ("cat", "dog", "sky")]
    assert card.get("open-pq", classes="known").value == pytest.approx(np.mean(values))
    assert card.get("pq", classes="unknown").value == card.get("pq", **{"class": "owl"}).value
    assert card.get("pq", classes="things").value == card.get("pq", **{"class": "cat"}).value
    assert card.get("pq", kind="things").value != card.get("pq", classes="things").value


def test_misnamed_segments_are_counted(faulty, rehearsal):
    card = BENCHMARK.score(faulty, rehearsal.options)
    matches = read_matches(faulty)
    wrong = (matches.true >= 0) & (matches.called >= 0) & (matches.true != matches.called)
    assert sum(score.value for score in card.scores if score.name == "misnamed-segments") == wrong.sum()


def test_a_model_with_other_words_is_scored_in_both_vocabularies():
    class Zoologist:
        labels = ("Cat", "animal")
        things = (True, True)

        def segment_panoptic(self, images):
            sound = build(MODEL, role="panoptic-segmenter").segment_panoptic(images)
            return [type(one)(one.map, {k: int(label > 0) for k, label in one.labels.items()}) for one in sound]

    outcome = evaluate_batch(BENCHMARK, BENCHMARK.list_units(BENCHMARK.options(scenes=1)), Zoologist())
    (record,) = outcome.records
    names = record["names"].split("\n")
    assert names.count("cat") == 1
    assert names[-1] == "animal"
    assert record["things"][-1] == 1
    assert set(record["called"]) <= {-1, names.index("cat"), names.index("animal")}


@pytest.mark.parametrize(
    ("segment_map", "labels", "message"),
    [
        (np.zeros((2, 2), np.int32), {}, "map: expected shape (H, W) = (120, 160), got (2, 2)"),
        (np.ones((120, 160), np.int32), {}, "expected a label for every segment, got none for segment 1"),
        (np.ones((120, 160), np.int32), {1: 7}, "expected an index from 0 to 0, got 7 for segment 1"),
    ],
)
def test_answers_that_break_the_role_fail_their_unit(segment_map, labels, message):
    class Broken:
        def segment_panoptic(self, images):
            return [type("Answer", (), {"map": segment_map, "labels": labels})() for _ in images]

    Broken.labels, Broken.things = ("cat",), (True,)
    outcome = evaluate_batch(BENCHMARK, BENCHMARK.list_units(BENCHMARK.options(scenes=1)), Broken())
    assert message in outcome.failures[0].error
    assert "hardlook check panoptic-segmenter" in outcome.failures[0].error


def test_calibration_similarity_gives_back_siblings_and_nothing_else():
    calibration = calibrate("open-pq", {"scenes": 36, "resamples": 0}, settings=(0.0, 0.3, 0.6, 1.0))
    verdicts = {
        (curve.dial.name, curve.dial.score): (curve.spearman, curve.score_range) for curve in calibration.curves
    }
    assert calibration.passed, verdicts
    assert {curve.dial.score for curve in calibration.curves if not curve.dial.moves} == {"open-gain", "pq"}


def test_the_report_shows_classes_measures_confusions_and_slices(rehearsal, faulty):
    card = BENCHMARK.score(faulty, rehearsal.options)
    titles = [section.title for section in BENCHMARK.report(faulty, card)]
    assert titles == [
        "Gain from similarity", "Classes", "Similarity measures", "Confusions", "Slices",
    ]  # fmt: skip


def test_pictures_are_the_image_the_truth_and_the_prediction():
    units = BENCHMARK.list_units(BENCHMARK.options(scenes=1))
    (record,) = evaluate_batch(BENCHMARK, units, build(MODEL, role="panoptic-segmenter")).records
    image, truth, predicted = BENCHMARK.pictures(units[0], record)
    assert (image.label, truth.label, predicted.label) == ("image", "true segments", "predicted segments")
    assert truth.label_map.shape == image.image.shape[:2]
    # The sound model draws what is true: all that differs is the blank seam, which void may move by a pixel.
    assert (truth.label_map == predicted.label_map).mean() > 0.97
