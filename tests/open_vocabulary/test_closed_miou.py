import cv2
import numpy as np
import polars as pl
import pytest
from sklearn.metrics import jaccard_score
from small_runs import small_run

import hardlook as hl
from hardlook.harness.calibration import calibrate
from hardlook.harness.registry import find_benchmark
from hardlook.harness.runs.evaluation import evaluate_batch
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.metrics.mean_iou import class_counts
from hardlook.models.registry import build
from hardlook.open_vocabulary.miou.evaluation import count_pixels, sum_pairs
from hardlook.world.planted import PlantedWorld
from hardlook.world.vocabulary import LABELS

BENCHMARK = find_benchmark("closed-miou")


@pytest.fixture(scope="module")
def rehearsal():
    return InMemoryRun("closed-miou", {"scenes": 24, "resamples": 200})


def test_the_sound_model_is_perfect(rehearsal):
    scorecard = rehearsal.score("planted-segmenter")
    assert {score.value for score in scorecard.scores} == {1.0}


def test_scores_equal_scikit_learn_on_all_pixels(rehearsal):
    scorecard = rehearsal.score("planted-segmenter", {"stranger": 0.4, "ragged": 0.5})
    model = build("planted-segmenter", role="semantic-segmenter", args={"stranger": 0.4, "ragged": 0.5})
    scenes = list(PlantedWorld(count=24))
    truth = np.concatenate([scene.classes.ravel() for scene in scenes]).astype(int) - 1
    said = np.concatenate([answer.ravel() for answer in model.segment([scene.image for scene in scenes])])
    truth, said = truth[truth >= 0], said[truth >= 0]
    numbers = np.union1d(np.unique(truth), np.unique(said[said >= 0]))
    theirs = jaccard_score(truth, said, labels=numbers, average=None, zero_division=0)
    for number, value in zip(numbers, theirs, strict=True):
        assert scorecard.get("iou", **{"class": LABELS[number].name}).value == pytest.approx(value)
    assert scorecard.get("miou").value == pytest.approx(theirs.mean())
    assert scorecard.get("pixel-accuracy").value == pytest.approx((truth == said).mean())


def test_contexts_are_scored_by_their_own_images(rehearsal):
    records = rehearsal.records("planted-segmenter", {"stranger": 0.5})
    whole = BENCHMARK.score(records, rehearsal.options)
    beach = BENCHMARK.score(records.filter(pl.col("context") == "beach"), rehearsal.options)
    assert whole.get("miou", context="beach").value == beach.get("miou").value
    contexts = [score.slice["context"] for score in whole.scores if set(score.slice) == {"context"}]
    assert len(set(contexts)) == 8


def test_the_sums_of_records_are_the_confusion(rehearsal):
    records = rehearsal.records("planted-segmenter", {"sibling": 0.5})
    assert (count_pixels(records).sum(0) == class_counts(sum_pairs(records).table())).all()


def test_the_order_of_records_changes_nothing(rehearsal):
    records = rehearsal.records("planted-segmenter", {"stranger": 0.5})
    shuffled = records.sample(fraction=1.0, shuffle=True, seed=1).sort("unit")
    assert BENCHMARK.score(shuffled, rehearsal.options) == BENCHMARK.score(records, rehearsal.options)


def test_readings_differ_where_a_class_is_only_predicted(tmp_path):
    for reading, expected in (("detectron2", 0.25), ("gt-only", 0.5)):
        done = stored_run(tmp_path / reading, {"a": ([[0, 0]], [[0, 1]])}, reading={"mean-over": reading})
        assert done.scored.scorecard.get("miou").value == expected
        assert done.scored.scorecard.readings[0].value == reading


def test_calibration_the_score_follows_the_fault_and_not_the_control():
    calibration = calibrate("closed-miou", {"scenes": 96, "resamples": 0})
    verdicts = {curve.dial.name: (curve.spearman, calibration.is_as_expected(curve)) for curve in calibration.curves}
    assert calibration.passed, verdicts
    assert all(abs(curve.spearman) >= 0.9 for curve in calibration.curves if curve.dial.moves)
    assert any(not curve.dial.moves for curve in calibration.curves)


def test_a_world_on_disk_scores_as_the_embedded_one_does_on_things(tmp_path):
    from hardlook.world.layouts import write_world

    write_world(tmp_path / "voc", "voc", count=16)
    done = small_run(tmp_path / "run", given={"data": {"voc": tmp_path / "voc"}}, args={})
    assert done.scored.scorecard.get("iou", **{"class": "background"}).value == 1.0
    assert done.scored.scorecard.get("miou").value == 1.0


def write_map(path, rows, dtype=np.uint8):
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), np.array(rows, dtype))


def stored_run(folder, maps, **given):
    for stem, (truth, predicted) in maps.items():
        write_map(folder / "gt" / f"{stem}.png", truth)
        if predicted is not None:
            write_map(folder / "pred" / f"{stem}.png", predicted)
    (folder / "labels.txt").write_text("sky\ngrass\nroad\n")
    given = {"gt": folder / "gt", "pred": folder / "pred", "labels": str(folder / "labels.txt"), **given}
    return small_run(folder / "run", model=None, args={}, given=given, max_failures=0.6)


def test_stored_predictions_by_hand(tmp_path):
    # sky: 3 hit of 4 true or predicted; grass: 2 of 4; road: 1 of 2; one pixel ignored.
    maps = {"a": ([[0, 0, 0, 1]], [[0, 0, 0, 1]]), "b": ([[1, 1, 2, 2, 255]], [[1, 0, 1, 2, 0]])}
    card = stored_run(tmp_path, maps).scored.scorecard
    values = [card.get("iou", **{"class": name}).value for name in ("sky", "grass", "road")]
    assert values == [3 / 4, 2 / 4, 1 / 2]
    assert card.model == "stored predictions"


@pytest.mark.parametrize(
    ("maps", "unit", "message"),
    [
        (
            {"a": ([[0]], [[0]]), "b": ([[0, 1]], [[0]])},
            "b",
            "the prediction has 1x1 pixels (width x height), its truth 2x1",
        ),
        (
            {"a": ([[0]], [[0]]), "b": ([[0, 9]], [[0, 0]])},
            "b",
            "numbers [9] that are none of the 3 labels",
        ),
        ({"a": ([[0]], [[0]]), "b": ([[0, 1]], None)}, "b", "the file does not exist"),
    ],
)
def test_bad_files_fail_their_unit_with_file_and_remedy(tmp_path, maps, unit, message):
    done = stored_run(tmp_path, maps)
    (row,) = done.scored.failures.to_dicts()
    assert row["unit"] == unit
    assert message in row["error"]
    assert "file:" in row["error"]
    assert "remedy:" in row["error"]


def test_images_without_a_labelled_pixel_are_counted(tmp_path):
    done = stored_run(tmp_path, {"a": ([[0]], [[0]]), "b": ([[255]], [[0]])})
    assert [(note.what, note.count, note.examples) for note in done.scored.scorecard.left_out] == [
        ("images without a labelled pixel", 1, ("b",))
    ]


def test_one_image_has_scores_and_no_interval(tmp_path):
    score = stored_run(tmp_path, {"a": ([[0, 1]], [[0, 1]])}).scored.scorecard.get("miou")
    assert (score.value, score.interval, score.n) == (1.0, None, 1)


def test_a_model_with_no_word_in_common_is_refused():
    class Stranger:
        labels = ("quark", "gluon")

        def segment(self, images):
            return [np.zeros(image.shape[:2], np.int32) for image in images]

    outcome = evaluate_batch(BENCHMARK, BENCHMARK.list_units(BENCHMARK.options(scenes=1)), Stranger())
    assert "no label of the model (quark, gluon" in outcome.failures[0].error


def test_the_report_shows_classes_contexts_confusions_and_images(rehearsal):
    records = rehearsal.records("planted-segmenter", {"stranger": 0.5})
    scorecard = BENCHMARK.score(records, rehearsal.options)
    titles = [section.title for section in BENCHMARK.report(records, scorecard)]
    assert titles == ["Classes", "Contexts", "Confusions", "Images"]


def test_the_chart_of_contexts_says_why_all_images_are_above_it_only_where_they_are(rehearsal):
    """In the planted world a faulty model's easy classes, the grounds, are each in one context."""
    all_scenes = InMemoryRun("closed-miou", {"resamples": 20})
    for run, explained in ((rehearsal, False), (all_scenes, True)):
        records = run.records("planted-segmenter", {"stranger": 0.3})
        (section,) = (
            one for one in BENCHMARK.report(records, BENCHMARK.score(records, run.options)) if one.title == "Contexts"
        )
        chart = section.blocks[0]
        assert explained == (chart.rows[0].value < chart.references[0][1]) == ("mostly harder ones" in chart.caption)


class Renamed:
    """The planted model, which calls the sand a beach."""

    def __init__(self):
        self.inner = build("planted-segmenter", role="semantic-segmenter")
        self.labels = ["beach" if name == "sand" else name for name in self.inner.labels]

    def segment(self, images):
        return self.inner.segment(images)


def test_labels_that_the_model_lacks_are_named():
    scorecard = hl.run("closed-miou", model=Renamed(), scenes=12, resamples=20).scorecard
    notes = {note.what: note for note in scorecard.noted}
    missing = notes["labels of the data that the predictions lack"]
    assert (missing.count, missing.examples, missing.warning) == (1, ("sand",), True)
    assert scorecard.get("iou", **{"class": "sand"}).value == 0.0
    sound = hl.run("closed-miou", model="planted-segmenter", scenes=12, resamples=20).scorecard
    assert not [note for note in sound.noted if "lack" in note.what]


def test_labelled_pixels_without_a_predicted_label_are_counted(tmp_path):
    for folder in ("truth", "found"):
        (tmp_path / folder).mkdir()
    truth = np.array([[0, 0, 1], [1, 255, 255]], np.uint8)
    found = np.array([[0, 255, 1], [255, 255, 0]], np.uint8)
    cv2.imwrite(str(tmp_path / "truth" / "a.png"), truth)
    cv2.imwrite(str(tmp_path / "found" / "a.png"), found)
    run = hl.run("closed-miou", gt=tmp_path / "truth", pred=tmp_path / "found", labels="voc20", resamples=20)
    (void,) = [note for note in run.scorecard.noted if "no label" in note.what]
    assert (void.what, void.count) == ("labelled pixels that are predicted as no label", 2)
