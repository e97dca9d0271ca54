"""Open AP on the planted world, embedded and on disk, with pycocotools as the judge of its vanilla scores."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from detection_scenes import pycocotools_evaluation

from hardlook.data import rle
from hardlook.data.images import read_image
from hardlook.errors import DataError
from hardlook.harness.calibration import calibrate
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.engines import EngineOptions
from hardlook.harness.runs.evaluation import evaluate_batch
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.harness.runs.scoring import score_run
from hardlook.metrics.detection import Detections, Objects
from hardlook.metrics.open_ap import OpenAP
from hardlook.models.registry import build
from hardlook.open_vocabulary.label_similarity import compute_label_similarity
from hardlook.open_vocabulary.record_columns import read_label_names
from hardlook.world.layouts import write_world

BENCHMARK = find_benchmark("open-ap")

FAULTS = {"sibling": 0.3, "stranger": 0.1, "ragged": 0.5, "missed": 0.1}

STATS = ("ap", "ap50", "ap75", "aps", "apm", "apl", "ar1", "ar10", "ar", "ars", "arm", "arl")

SCENES = 24


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("worlds") / "world", "coco-panoptic", count=SCENES)


@pytest.fixture(scope="module")
def results(world):
    """The faulty planted model's answers as the rows of a results json, masks and boxes."""
    model = build("planted-instances", role="instance-segmenter", args=FAULTS)
    truth = json.loads((world / "instances.json").read_text())
    ids = {category["name"]: category["id"] for category in truth["categories"]}
    rows = []
    for image in truth["images"]:
        (found,) = model.detect([read_image(world / "images" / image["file_name"])])
        for mask, (x0, y0, x1, y1), score, label in zip(found.masks, found.boxes.tolist(), found.scores.tolist(),
                                                        found.labels, strict=True):  # fmt: skip
            rows.append({"image_id": image["id"], "category_id": ids[model.labels[label]], "score": score,
                         "bbox": [x0, y0, x1 - x0, y1 - y0], "segmentation": rle.encode(mask)})  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("open-ap", {"scenes": SCENES, "resamples": 20})


def run_world(out, world, *, args=None, **given):
    data = {"instances": world / "instances.json", "images": world / "images"}
    given = {"data": data, "resamples": 0, **given}
    return launch("open-ap", out=out, model="planted-instances", model_args=args or FAULTS, given=given)


@pytest.mark.parametrize("iou", ["segm", "bbox"])
def test_a_model_over_a_world_on_disk_gets_pycocotools_scores(tmp_path, world, results, iou):
    card = run_world(tmp_path / "model", world, iou=iou).scored.scorecard
    truth = json.loads((world / "instances.json").read_text())
    rows = [{key: row[key] for key in row if key != ("bbox" if iou == "segm" else "segmentation")} for row in results]
    theirs = pycocotools_evaluation(truth, rows, iou).stats
    # pycocotools writes -1 where there is no object of a size.
    for name, value in zip(STATS, np.where(theirs == -1, np.nan, theirs), strict=True):
        assert card.get(name).value == pytest.approx(value, abs=1e-9, nan_ok=True), name
    (tmp_path / "results.json").write_text(json.dumps(results))
    given = {"gt": world / "instances.json", "pred": tmp_path / "results.json", "resamples": 0, "iou": iou}
    stored = launch("open-ap", out=tmp_path / "stored", given=given).scored.scorecard
    for score in card.headline:
        assert stored.get(score.name).value == pytest.approx(score.value, nan_ok=True)


def test_the_embedded_world_scores_as_the_one_on_disk(tmp_path, world, rehearsal):
    embedded = rehearsal.score("planted-instances", FAULTS)
    on_disk = run_world(tmp_path, world).scored.scorecard
    for score in on_disk.headline:
        assert embedded.get(score.name).value == pytest.approx(score.value, nan_ok=True)


def test_scores_equal_the_streaming_metric(rehearsal):
    records = rehearsal.records("planted-instances", FAULTS)
    names = read_label_names(records)
    matrix = compute_label_similarity(names, rehearsal.options).matrix
    metric = OpenAP(names, matrix)
    for row in records.iter_rows(named=True):
        overlap = np.zeros((len(row["labels"]), len(row["object_labels"])))
        overlap.ravel()[row["pairs"]] = row["overlaps"]
        truth = Objects(row["object_labels"], area=row["object_areas"])
        metric.update(truth, Detections(row["labels"], row["scores"], area=row["areas"]),
                      overlap=overlap, image=row["image_id"])  # fmt: skip
    summary = metric.compute().summary()
    card = BENCHMARK.score(records, rehearsal.options)
    for prefix, kind in (("", "vanilla"), ("dagger-", "dagger"), ("open-", "open")):
        for name, figure in (("ap", "AP"), ("ap50", "AP50"), ("aps", "APs"), ("ar", "AR"), ("ar1", "AR1"),
                             ("ar10", "AR10"), ("ars", "ARs"), ("arm", "ARm"), ("arl", "ARl")):  # fmt: skip
            assert card.get(prefix + name).value == pytest.approx(summary[kind][figure], nan_ok=True)
        for name, figure in (("ap", "AP"), ("ap50", "AP50"), ("ar", "AR")):
            values = getattr(metric.compute(), kind).per_class(figure)
            for label in np.flatnonzero(~np.isnan(values)):
                assert card.get(prefix + name, **{"class": names[label]}).value == pytest.approx(values[label])
    assert card.get("open-ap", measure="path").value == pytest.approx(summary["open"]["AP"])


def test_the_sound_model_is_perfect(rehearsal):
    card = rehearsal.score("planted-instances")
    assert {card.get(name).value for name in ("ap", "dagger-ap", "open-ap", "ar")} == {1.0}
    assert card.get("open-gain").value == 0
    assert not [score for score in card.scores if score.name == "confused-objects"]


def test_contexts_and_classes_are_scored_by_their_own_images(rehearsal):
    records = rehearsal.records("planted-instances", FAULTS)
    whole = BENCHMARK.score(records, rehearsal.options)
    beach = BENCHMARK.score(records.filter(pl.col("context") == "beach"), rehearsal.options)
    for name in ("ap", "dagger-ap", "open-ap", "open-gain"):
        assert whole.get(name, context="beach").value == pytest.approx(beach.get(name).value)
    classes = [score for score in whole.scores if score.name == "open-ap" and set(score.slice) == {"class"}]
    assert np.mean([score.value for score in classes]) == pytest.approx(whole.get("open-ap").value)


def test_the_order_of_records_changes_nothing(rehearsal):
    records = rehearsal.records("planted-instances", FAULTS)
    shuffled = records.sample(fraction=1.0, shuffle=True, seed=1)
    texts = [BENCHMARK.score(rows, rehearsal.options).to_json() for rows in (records, shuffled)]
    assert texts[0] == texts[1]


def test_intervals_hold_their_value_and_open_is_never_below_dagger(rehearsal):
    card = rehearsal.score("planted-instances", {"sibling": 0.4})
    for score in card.scores:
        if score.name == "open-gain" and score.interval:
            assert score.interval.low >= 0
    for name in ("ap", "ap50", "ar"):
        assert card.get(f"open-{name}").value >= card.get(f"dagger-{name}").value
    assert card.get("open-ap").interval.resampled == "image"


def test_a_stored_run_is_rescored_under_sets_measures_and_limits(tmp_path, monkeypatch):
    given = {"scenes": 12, "resamples": 0}
    launch("open-ap", out=tmp_path / "run", model="planted-instances", model_args=FAULTS, given=given)
    monkeypatch.setattr("hardlook.models.registry.build", lambda *a, **k: pytest.fail("the model was built"))
    sets = {"pets": ["cat", "dog"], "vehicles": ["car", "bus"]}
    (tmp_path / "sets.json").write_text(json.dumps(sets))
    folder = RunFolder(tmp_path / "run")
    card = score_run(folder, {"class_sets": str(tmp_path / "sets.json")}).scorecard
    per_class = [card.get("open-ap", **{"class": name}).value for name in sets["pets"]]
    assert card.get("open-ap", classes="pets", setting="generalised").value == pytest.approx(np.mean(per_class))
    # Alone among pets, a dog called bus is missed and no bus is wrong; vanilla matches within classes anyway.
    constrained = card.get("ap", classes="pets", setting="constrained").value
    assert constrained == pytest.approx(card.get("ap", classes="pets", setting="generalised").value)
    identity = score_run(folder, {"measure": "identity"}).scorecard
    assert identity.get("open-gain").value == 0
    none = score_run(folder, {"max_detections": 1}).scorecard
    assert none.get("ap").value <= card.get("ap").value
    assert "detections beyond the best of their image" in [note.what for note in none.left_out]


def test_constrained_scores_leave_other_classes_out_before_matching(tmp_path):
    from hardlook.open_vocabulary.ap.options import OpenApOptions

    (tmp_path / "sets.json").write_text('{"pets": ["cat", "dog"]}')
    options = OpenApOptions(similarity=None, class_sets=tmp_path / "sets.json", resamples=0)
    record = {
        "unit": "a", "context": "", "image_id": 1, "names": "cat\ndog\ncar", "known": 3, "zero": -1,
        "object_labels": [0], "object_areas": [400.0], "object_crowd": [0], "object_ids": [1],
        "labels": [2, 0], "scores": [0.9, 0.8], "areas": [400.0, 400.0], "pairs": [0, 1], "overlaps": [1.0, 1.0],
    }  # fmt: skip
    schema = replace(BENCHMARK.schema, columns=BENCHMARK.schema.columns[:-1])
    card = BENCHMARK.score(schema.frame([record]), options)
    # The car takes the cat's place where classes are pooled; among pets alone there is no car.
    assert card.get("dagger-ap", classes="pets", setting="generalised").value == 0
    assert card.get("dagger-ap", classes="pets", setting="constrained").value == pytest.approx(1)


def test_cocos_base_and_novel_sets_need_cocos_classes(rehearsal):
    options = rehearsal.options.model_copy(update={"class_sets": "coco-48-17"})
    with pytest.raises(DataError, match="45 classes of the set 'base' are not labels of the run: person"):
        BENCHMARK.score(rehearsal.records("planted-instances"), options)


def test_a_model_may_speak_other_words():
    class Hounds:
        labels = ("hound", "Cat")

        def detect(self, images):
            sound = build("planted-instances", role="instance-segmenter")
            return [replace(found, labels=np.ones_like(found.labels)) for found in sound.detect(images)]

    units = BENCHMARK.list_units(BENCHMARK.options(scenes=2))
    outcome = evaluate_batch(BENCHMARK, units, Hounds())
    assert not outcome.failures
    names = outcome.records[0]["names"].split("\n")
    assert names[:2] == ["cat", "dog"]
    assert names[12:] == ["hound"]
    assert {names[label] for label in outcome.records[0]["labels"]} == {"cat"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: replace(found, labels=found.labels + 99), "labels: expected values in [0, 21], got"),
        (lambda found: replace(found, masks=found.masks[:, 1:]), "masks: expected shape (N, H, W) = (2, 120,"),
        (lambda found: replace(found, scores=found.scores * np.nan), "scores: expected finite values, got nan"),
    ],
)
def test_a_model_that_answers_nonsense_fails_its_unit(change, message):
    class Odd:
        def __init__(self):
            self.inner = build("planted-instances", role="instance-segmenter")
            self.labels = self.inner.labels

        def detect(self, images):
            return [change(found) for found in self.inner.detect(images)]

    unit = BENCHMARK.list_units(BENCHMARK.options(scenes=1))[0]
    (failure,) = evaluate_batch(BENCHMARK, [unit], Odd()).failures
    assert message in failure.error
    assert "hardlook check instance-segmenter" in failure.error


def test_the_report_shows_classes_measures_confusions_and_slices(rehearsal):
    records = rehearsal.records("planted-instances", FAULTS)
    sections = BENCHMARK.report(records, BENCHMARK.score(records, rehearsal.options))
    assert [section.title for section in sections] == [
        "Gain from similarity", "Classes", "Similarity measures", "Confusions", "Slices",
    ]  # fmt: skip
    card = BENCHMARK.score(records, rehearsal.options)
    tables = {block.title: block for section in sections for block in section.blocks if type(block).__name__ == "Table"}
    figures = {row[0]: row[1:] for row in tables["AP and AR"].rows}
    for title, name in (("AR1", "ar1"), ("AR10", "ar10"), ("ARs", "ars")):
        assert figures[title] == tuple(card.get(f"{kind}{name}").value for kind in ("", "dagger-", "open-"))
    table = tables["AP50 and AR of each class"]
    assert table.columns == ("class", "vanilla AP50", "dagger AP50", "open AP50", "vanilla AR", "dagger AR", "open AR")
    assert len(table.rows) == len(tables["Each class"].rows)
    name, *values = table.rows[0]
    assert values[-1] == card.get("open-ar", **{"class": name}).value


def test_pictures_show_objects_and_scored_detections():
    unit = BENCHMARK.list_units(BENCHMARK.options(scenes=1))[0]
    model = build("planted-instances", role="instance-segmenter")
    (record,) = evaluate_batch(BENCHMARK, [unit], model).records
    image, truth, said = BENCHMARK.pictures(unit, record)
    names = record["names"].split("\n")
    assert image.label_map is None
    assert (truth.label_map == said.label_map).all()
    shown = {said.label_names[label] for label in np.unique(said.label_map) if label >= 0}
    assert {name.split()[0] for name in shown} == {names[label] for label in record["object_labels"]}
    assert all(float(word) > 0.9 for name in shown for word in name.split()[1:])


def test_calibration():
    calibration = calibrate("open-ap", {"scenes": 48, "resamples": 0})
    assert calibration.passed, [(c.dial.name, c.dial.score, c.spearman, c.score_range) for c in calibration.curves]


def test_engines_agree(tmp_path, forked_workers):
    given = {"scenes": 8, "resamples": 5}
    for name, engine in (("a", "inline"), ("b", "processes")):
        launch("open-ap", out=tmp_path / name, model="planted-instances", model_args=FAULTS, given=given,
               settings=RunSettings(engine=EngineOptions(engine, 2)), batch_size=4)  # fmt: skip
    texts = [(tmp_path / name / "scores.json").read_text() for name in "ab"]
    assert texts[0] == texts[1]
