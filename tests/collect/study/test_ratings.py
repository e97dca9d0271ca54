import json
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_runs import small_run

from hardlook.collect.study.folder import open_study
from hardlook.collect.study.ratings import (
    RatedThing,
    RatingPlan,
    build_tasks,
    build_training_tasks,
    draw_labels,
    make_rating_study,
    sample_pairs,
    sample_stratified,
)
from hardlook.collect.study.settings import StudySettings
from hardlook.errors import DataError, OptionError, RunError
from hardlook.harness.runs.folder import RunFolder
from hardlook.harness.runs.launch import RunSettings, launch
from hardlook.harness.runs.scoring import score_run
from hardlook.harness.sections import Picture
from hardlook.metrics.open_miou import open_miou
from hardlook.open_vocabulary.miou.evaluation import read_cells
from hardlook.open_vocabulary.record_columns import read_label_names
from hardlook.similarity.label_sets import load_shipped_set
from hardlook.similarity.labels import Label, LabelSet
from hardlook.similarity.measures import compute_similarity

MEASURES = ("path", "wup", "identity")


def open_run(out, **given):
    args = {"sibling": 0.4, "stranger": 0.3}
    given = {"scenes": 10, "resamples": 0, **given}
    launch("open-miou", out=out, model="planted-segmenter", model_args=args, given=given, settings=RunSettings())
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return open_run(tmp_path_factory.mktemp("runs") / "open")


def study_of(path, run, question="fit", **plan):
    settings = StudySettings(kind="ratings", title="Pictures", devices=("any",), question=question)
    return make_rating_study(path, RatingPlan(measures=MEASURES, run=run, **plan), settings)


def test_values_are_the_open_miou_of_each_image(run, tmp_path):
    study = study_of(tmp_path / "study", run, pictures=6)
    assert {task.form for task in study.tasks if not task.training} == {"picture"}
    values = study.made["values"]
    assert len(values) == 6
    scored = score_run(RunFolder(run), {"resamples": 0})
    names = read_label_names(scored.records)
    from hardlook.open_vocabulary.label_similarity import find_labels
    from hardlook.similarity.measures import compute_similarity

    for row, unit in enumerate(scored.records["unit"]):
        shown = values.get(f"picture/{unit}")
        if shown is None:
            continue
        cells = read_cells(scored.records[row : row + 1])
        confusion = np.zeros(len(names) * (len(names) + 1), np.int64)
        confusion[cells.cell] = cells.pixels
        confusion = confusion.reshape(len(names), -1)
        for measure in MEASURES:
            matrix = compute_similarity(find_labels(names, []), measure).matrix
            expected = open_miou(confusion, matrix, mean_over="gt-only").open.miou
            assert shown[measure] == pytest.approx(expected)
        assert shown["identity"] <= min(shown["path"], shown["wup"])


def test_tasks_name_truth_and_prediction_and_have_a_picture(run, tmp_path):
    study = study_of(tmp_path / "study", run, "likeness", pictures=4)
    records = score_run(RunFolder(run), {"resamples": 0}).whole_records([f"scene-{i:04d}" for i in range(10)])
    tasks = [task for task in study.tasks if not task.training]
    assert len(tasks) == 4
    for task in tasks:
        record = records[task.subject.removeprefix("picture/")]
        names, width = record["names"].split("\n"), record["labels"] + 1
        true = {names[cell // width] for cell in record["cells"]} - {"background"}
        predicted = {names[cell % width] for cell in record["cells"] if cell % width < len(names)} - {"background"}
        assert set(task.labels[0].split(", ")) == true
        assert set(task.labels[1:]) == predicted
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


def test_a_run_with_free_words_is_refused(tmp_path):
    with pytest.raises(OptionError, match="the run has free words"):
        study_of(tmp_path / "study", open_run(tmp_path / "run", scenes=2, pred_words="free"))


def test_a_run_without_images_is_refused(tmp_path):
    for name in ("gt", "pred"):
        (tmp_path / name).mkdir()
        cv2.imwrite(str(tmp_path / name / "one.png"), np.array([[0, 1], [1, 1]], np.uint8))
    given = {"gt": Path(tmp_path / "gt"), "pred": Path(tmp_path / "pred"), "labels": "voc20", "resamples": 0}
    launch("open-miou", out=tmp_path / "run", model=None, model_args={}, given=given, settings=RunSettings())
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
    painted = draw_labels(Picture("p", image, label_map=label_map, label_names=names))
    assert painted.shape[1] == 200
    # Where there is no label, the image is as it was, but for an outline.
    assert (painted[2:8, 2:-2] == 90).all()
    left, right = painted[40, 50].astype(int), painted[40, 150].astype(int)
    legend = painted[60:].reshape(-1, 3).astype(int)
    for inside in (left, right):
        colour = 2 * inside - 90
        assert (np.abs(legend - colour).max(axis=1) <= 3).sum() > 50
    assert (np.abs(left - right) > 20).any()


VOC = load_shipped_set("voc20")

MATRICES = {name: compute_similarity(VOC, name).matrix for name in ("path", "wup")}


def settings(question="fit"):
    return StudySettings(kind="ratings", title="Pairs", devices=("any",), question=question, training_tasks=2)


def test_values_are_those_of_the_measures():
    for thing in sample_pairs(VOC, MATRICES, 30).things:
        _, first, second = thing.subject.split("/")
        rows = VOC.names.index(first), VOC.names.index(second)
        assert thing.values == {name: matrix[rows] for name, matrix in MATRICES.items()}


def test_cat_and_dog_have_the_published_values():
    # The spec's check: path .2, Wu-Palmer .857.
    everything = {thing.subject: thing for thing in sample_pairs(VOC, MATRICES, 1000).things}
    assert len(everything) == 190
    assert everything["pair/cat/dog"].values == pytest.approx({"path": 0.2, "wup": 0.857}, abs=0.0005)


def test_names_are_shown_as_they_are_read():
    shown = {label for thing in sample_pairs(VOC, MATRICES, 1000).things for label in thing.labels}
    assert "dining table" in shown
    assert "diningtable" not in shown


def test_labels_that_nobody_can_tell_apart_are_left_out_and_counted():
    names = ("cat", "dog", "crane", "crane", "background")
    labels = LabelSet("birds", "file", tuple(Label(row, name) for row, name in enumerate(names)))
    drawn = sample_pairs(labels, {"mine": np.eye(5)}, 10)
    assert [thing.subject for thing in drawn.things] == ["pair/cat/dog"]
    assert [(note.count, note.examples) for note in drawn.left_out] == [(1, ("background",)), (2, ("crane", "crane"))]


def test_one_label_makes_no_pair():
    labels = LabelSet("one", "file", (Label(0, "cat"), Label(1, "background")))
    with pytest.raises(OptionError, match="one has 1 labels to pair"):
        sample_pairs(labels, {"mine": np.eye(2)}, 3)


def test_the_seed_draws_other_pairs():
    drawn = [{thing.subject for thing in sample_pairs(VOC, MATRICES, 20, seed).things} for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_fit_asks_each_pair_once_a_measure_and_likeness_once():
    things = [RatedThing(f"pair/{a}/{b}", "pair", (a, b), {"x": 0.1, "y": 0.2}) for a, b in combinations("abc", 2)]
    fit, likeness = build_tasks(things, "fit"), build_tasks(things, "likeness")
    assert [(task.subject, task.measure, task.value) for task in fit] == [
        (thing.subject, name, thing.values[name]) for thing in things for name in ("x", "y")
    ]
    assert [(task.subject, task.measure) for task in likeness] == [(thing.subject, "") for thing in things]
    assert len({task.id for task in [*fit, *build_training_tasks(2)]}) == 8


def test_a_study_is_read_back_as_it_was_made(tmp_path):
    made = make_rating_study(tmp_path / "study", RatingPlan(measures=("path", "lesk"), pairs=6, seed=3), settings())
    study = open_study(tmp_path / "study")
    assert study.tasks == made.tasks
    assert study.settings == settings()
    assert len(study.items) == 12
    assert len(study.training) == 2
    assert study.made["pairs"] == {"asked": 6, "drawn": 6, "of": 190}
    assert set(study.made["values"]) == {item.subject for item in study.items}
    assert set(study.made["measures"]) == {"path", "lesk"}
    again = make_rating_study(tmp_path / "again", RatingPlan(measures=("path", "lesk"), pairs=6, seed=3), settings())
    assert again.fingerprint == study.fingerprint


def test_more_pairs_than_there_are_is_said(tmp_path):
    (tmp_path / "labels.txt").write_text("cat\ndog\nsheep\n")
    plan = RatingPlan(labels=str(tmp_path / "labels.txt"), measures=("identity",), pairs=40)
    study = make_rating_study(tmp_path / "study", plan, settings("likeness"))
    assert study.made["pairs"] == {"asked": 40, "drawn": 3, "of": 3}


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (RatingPlan(measures=("path", "path")), "different measures"),
        (RatingPlan(measures=()), "different measures"),
        (RatingPlan(measures=("pat",)), "there is no measure 'pat'"),
        (RatingPlan(measures=("word2vec",)), "needs a file"),
        (RatingPlan(pairs=0), "nothing to rate"),
        (RatingPlan(sources={"glove": "g.txt"}), "--source glove: this is none of the measures"),
        (RatingPlan(labels="voc21"), "no label set and no file 'voc21'"),
    ],
)
def test_plans_that_cannot_be_leave_no_study(tmp_path, plan, words):
    with pytest.raises(OptionError, match=words):
        make_rating_study(tmp_path / "study", plan, settings())
    assert not (tmp_path / "study" / "study.json").exists()


def test_a_study_is_never_overwritten(tmp_path):
    study = make_rating_study(tmp_path / "study", RatingPlan(measures=("path",), pairs=2), settings())
    with pytest.raises(DataError, match="a study here already"):
        make_rating_study(tmp_path / "study", RatingPlan(measures=("path",), pairs=3), settings())
    assert open_study(tmp_path / "study").secret == study.secret


def rng(seed=0):
    return np.random.default_rng(seed)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 60), st.integers(0, 70))
def test_draws_are_different_candidates_in_order(seed, measures, n, count):
    values = rng(seed).random((measures, n)).round(1)
    drawn = sample_stratified(values, count, rng(seed))
    assert len(drawn) == min(count, n)
    assert (np.diff(drawn) > 0).all()
    assert not len(drawn) or (drawn[0] >= 0 and drawn[-1] < n)
    assert np.array_equal(drawn, sample_stratified(values, count, rng(seed)))


@given(st.integers(0, 2**32 - 1), st.integers(10, 200), st.integers(1, 40))
def test_strata_of_one_measure_differ_by_one_at_most_unless_they_are_used_up(seed, n, count):
    values = rng(seed).permutation(n) / n
    drawn = sample_stratified(values[None], count, rng(seed))
    strata = max(1, min(10, count))
    # The literal rule: with n distinct values the k-th smallest lies in stratum floor(k * strata / n).
    of = {rank: rank * strata // n for rank in range(n)}
    ranks = np.argsort(np.argsort(values))
    held = np.bincount([of[int(rank)] for rank in ranks[drawn]], minlength=strata)
    size = np.bincount(list(of.values()), minlength=strata)
    open_strata = held[held < size]
    assert not len(open_strata) or held.max() - open_strata.min() <= 1


def test_rare_values_are_drawn_before_common_ones_repeat():
    values = np.concatenate([np.full(980, 0.1), np.linspace(0.5, 0.9, 20)])
    drawn = values[sample_stratified(values[None], 20, rng())]
    assert (drawn > 0.1).sum() >= 17


def test_every_measure_is_spread_by_the_same_draw():
    one = rng(1).beta(1, 8, 4000)
    other = rng(2).beta(8, 1, 4000)
    drawn = sample_stratified([one, other], 40, rng())
    for values in (one, other):
        held = np.histogram(values[drawn], np.quantile(values, np.linspace(0, 1, 11)))[0]
        # Ten strata of four each, where chance alone gives one of 40 draws a spread of about two.
        assert held.min() >= 3
        assert held.max() <= 5


def test_the_seed_decides_among_equals():
    values = np.zeros((1, 500))
    draws = {tuple(sample_stratified(values, 5, rng(seed)).tolist()) for seed in range(10)}
    assert len(draws) == 10


@pytest.mark.parametrize(
    ("values", "count"), [([1, 2], 1), ([[1, float("nan")]], 1), ([[1, 2]], -1), (np.zeros((0, 3)), 1)]
)
def test_refusals(values, count):
    with pytest.raises(ValueError, match="values: expected finite numbers"):
        sample_stratified(values, count, rng())
