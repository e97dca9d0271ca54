import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from small_runs import small_run

from hardlook.benchmarks.semantic_images.records import cells_of, label_names
from hardlook.collect.study.painted_labels import painted_labels
from hardlook.collect.study.rating_study import RatingPlan, rating_study
from hardlook.collect.study.settings import StudySettings
from hardlook.contract.sections import Picture
from hardlook.errors import OptionError, RunError
from hardlook.metrics.open_miou import open_miou
from hardlook.runs.execute import Conduct
from hardlook.runs.folder import RunFolder
from hardlook.runs.launch import launch
from hardlook.runs.scoring import score_run

MEASURES = ("path", "wup", "identity")


def open_run(out, **given):
    args = {"sibling": 0.4, "stranger": 0.3}
    given = {"scenes": 10, "resamples": 0, **given}
    launch("open-miou", out=out, model="planted-segmenter", model_args=args, given=given, conduct=Conduct())
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return open_run(tmp_path_factory.mktemp("runs") / "open")


def study_of(path, run, question="fit", **plan):
    settings = StudySettings(kind="ratings", title="Pictures", devices=("any",), question=question)
    return rating_study(path, RatingPlan(measures=MEASURES, run=run, **plan), settings)


def test_values_are_the_open_miou_of_each_image(run, tmp_path):
    study = study_of(tmp_path / "study", run, pictures=6)
    assert {task.form for task in study.tasks if not task.training} == {"picture"}
    values = study.made["values"]
    assert len(values) == 6
    scored = score_run(RunFolder(run), {"resamples": 0})
    names = label_names(scored.records)
    from hardlook.benchmarks.open_labels.matrix import named_labels
    from hardlook.labels.measures import similarity_of

    for row, unit in enumerate(scored.records["unit"]):
        said = values.get(f"picture/{unit}")
        if said is None:
            continue
        cells = cells_of(scored.records[row : row + 1])
        confusion = np.zeros(len(names) * (len(names) + 1), np.int64)
        confusion[cells.cell] = cells.pixels
        confusion = confusion.reshape(len(names), -1)
        for measure in MEASURES:
            matrix = similarity_of(named_labels(names, []), measure).matrix
            expected = open_miou(confusion, matrix, mean_over="gt-only").open.miou
            assert said[measure] == pytest.approx(expected)
        assert said["identity"] <= min(said["path"], said["wup"])


def test_tasks_name_truth_and_prediction_and_have_a_picture(run, tmp_path):
    study = study_of(tmp_path / "study", run, "likeness", pictures=4)
    records = score_run(RunFolder(run), {"resamples": 0}).whole_records([f"scene-{i:04d}" for i in range(10)])
    tasks = [task for task in study.tasks if not task.training]
    assert len(tasks) == 4
    for task in tasks:
        record = records[task.subject.removeprefix("picture/")]
        names, width = record["names"].split("\n"), record["labels"] + 1
        true = {names[cell // width] for cell in record["cells"]} - {"background"}
        said = {names[cell % width] for cell in record["cells"] if cell % width < len(names)} - {"background"}
        assert set(task.labels[0].split(", ")) == true
        assert set(task.labels[1:]) == said
        stored = cv2.imread(str(study.file(task.image)))
        assert stored.shape[0] > stored.shape[1] * 0.5


def test_pairs_and_pictures_together(run, tmp_path):
    study = study_of(tmp_path / "study", run, labels="voc20", pairs=5, pictures=3)
    forms = [task.form for task in study.tasks if not task.training]
    assert (forms.count("pair"), forms.count("picture")) == (5 * 3, 3 * 3)
    # A picture is stored once, whatever the number of measures.
    assert len(list((tmp_path / "study" / "images").iterdir())) == 3


def test_a_run_of_another_benchmark_is_refused(tmp_path):
    small_run(tmp_path / "closed", scenes=2)
    with pytest.raises(RunError, match="this is a run of closed-miou"):
        study_of(tmp_path / "study", tmp_path / "closed")


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(RunError, match="no run here"):
        study_of(tmp_path / "study", tmp_path / "nothing")


def test_a_run_without_its_predictions_is_refused(tmp_path):
    with pytest.raises(OptionError, match="did not keep its predictions"):
        study_of(tmp_path / "study", open_run(tmp_path / "run", scenes=2, keep_predictions=False))


def test_a_run_without_images_is_refused(tmp_path):
    for name in ("gt", "pred"):
        (tmp_path / name).mkdir()
        cv2.imwrite(str(tmp_path / name / "one.png"), np.array([[0, 1], [1, 1]], np.uint8))
    given = {"gt": Path(tmp_path / "gt"), "pred": Path(tmp_path / "pred"), "labels": "voc20", "resamples": 0}
    launch("open-miou", out=tmp_path / "run", model=None, model_args={}, given=given, conduct=Conduct())
    with pytest.raises(OptionError, match="no images"):
        study_of(tmp_path / "study", tmp_path / "run")
    assert not (tmp_path / "study" / "study.json").exists()


def test_nothing_of_the_run_s_place_is_kept(run, tmp_path):
    study_of(tmp_path / "study", run, pictures=2)
    assert str(run.parent) not in json.dumps(json.loads((tmp_path / "study" / "made.json").read_text()))


def test_the_legend_has_the_colours_of_the_picture():
    label_map = np.zeros((60, 200), np.int32)
    label_map[:, 100:] = 7
    label_map[:10] = -1
    image = np.full((60, 200, 3), 90, np.uint8)
    names = [f"a rather long name {number}" for number in range(8)]
    painted = painted_labels(Picture("p", image, label_map=label_map, label_names=names))
    assert painted.shape[1] == 200
    # Where nothing is said, the image is as it was, but for an outline.
    assert (painted[2:8, 2:-2] == 90).all()
    left, right = painted[40, 50].astype(int), painted[40, 150].astype(int)
    legend = painted[60:].reshape(-1, 3).astype(int)
    for inside in (left, right):
        colour = 2 * inside - 90
        assert (np.abs(legend - colour).max(axis=1) <= 3).sum() > 50
    assert (np.abs(left - right) > 20).any()
