from itertools import combinations

import numpy as np
import pytest

from hardlook.collect.study.folder import open_study
from hardlook.collect.study.rating_study import RatingPlan, rating_study
from hardlook.collect.study.rating_tasks import Rated, draw_pairs, tasks_of, training_pairs
from hardlook.collect.study.settings import StudySettings
from hardlook.errors import DataError, OptionError
from hardlook.labels.label_set import Label, LabelSet
from hardlook.labels.measures import similarity_of
from hardlook.labels.shipped import read_shipped

VOC = read_shipped("voc20")
MATRICES = {name: similarity_of(VOC, name).matrix for name in ("path", "wup")}


def settings(question="fit"):
    return StudySettings(kind="ratings", title="Pairs", devices=("any",), question=question, training_tasks=2)


def test_values_are_those_of_the_measures():
    for thing in draw_pairs(VOC, MATRICES, 30).things:
        _, first, second = thing.subject.split("/")
        rows = VOC.names.index(first), VOC.names.index(second)
        assert thing.values == {name: matrix[rows] for name, matrix in MATRICES.items()}


def test_cat_and_dog_have_the_published_values():
    # The spec's check: path .2, Wu-Palmer .857.
    everything = {thing.subject: thing for thing in draw_pairs(VOC, MATRICES, 1000).things}
    assert len(everything) == 190
    assert everything["pair/cat/dog"].values == pytest.approx({"path": 0.2, "wup": 0.857}, abs=0.0005)


def test_names_are_shown_as_they_are_read():
    shown = {label for thing in draw_pairs(VOC, MATRICES, 1000).things for label in thing.labels}
    assert "dining table" in shown
    assert "diningtable" not in shown


def test_labels_that_nobody_can_tell_apart_are_left_out_and_counted():
    names = ("cat", "dog", "crane", "crane", "background")
    labels = LabelSet("birds", "file", tuple(Label(row, name) for row, name in enumerate(names)))
    drawn = draw_pairs(labels, {"mine": np.eye(5)}, 10)
    assert [thing.subject for thing in drawn.things] == ["pair/cat/dog"]
    assert [(row["count"], row["examples"]) for row in drawn.left_out] == [(1, ["background"]), (2, ["crane", "crane"])]


def test_one_label_makes_no_pair():
    labels = LabelSet("one", "file", (Label(0, "cat"), Label(1, "background")))
    with pytest.raises(OptionError, match="one has 1 labels to pair"):
        draw_pairs(labels, {"mine": np.eye(2)}, 3)


def test_the_seed_draws_other_pairs():
    drawn = [{thing.subject for thing in draw_pairs(VOC, MATRICES, 20, seed).things} for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_fit_asks_each_pair_once_a_measure_and_likeness_once():
    things = [Rated(f"pair/{a}/{b}", "pair", (a, b), {"x": 0.1, "y": 0.2}) for a, b in combinations("abc", 2)]
    fit, likeness = tasks_of(things, "fit"), tasks_of(things, "likeness")
    assert [(task.subject, task.measure, task.value) for task in fit] == [
        (thing.subject, name, thing.values[name]) for thing in things for name in ("x", "y")
    ]
    assert [(task.subject, task.measure) for task in likeness] == [(thing.subject, "") for thing in things]
    assert len({task.id for task in [*fit, *training_pairs(2)]}) == 8


def test_a_study_is_read_back_as_it_was_made(tmp_path):
    made = rating_study(tmp_path / "study", RatingPlan(measures=("path", "lesk"), pairs=6, seed=3), settings())
    study = open_study(tmp_path / "study")
    assert study.tasks == made.tasks
    assert study.settings == settings()
    assert len(study.items) == 12
    assert len(study.training) == 2
    assert study.made["pairs"] == {"asked": 6, "drawn": 6, "of": 190}
    assert set(study.made["values"]) == {item.subject for item in study.items}
    assert set(study.made["measures"]) == {"path", "lesk"}
    again = rating_study(tmp_path / "again", RatingPlan(measures=("path", "lesk"), pairs=6, seed=3), settings())
    assert again.fingerprint == study.fingerprint


def test_more_pairs_than_there_are_is_said(tmp_path):
    (tmp_path / "labels.txt").write_text("cat\ndog\nsheep\n")
    plan = RatingPlan(labels=str(tmp_path / "labels.txt"), measures=("identity",), pairs=40)
    study = rating_study(tmp_path / "study", plan, settings("likeness"))
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
        rating_study(tmp_path / "study", plan, settings())
    assert not (tmp_path / "study" / "study.json").exists()


def test_a_study_is_never_overwritten(tmp_path):
    study = rating_study(tmp_path / "study", RatingPlan(measures=("path",), pairs=2), settings())
    with pytest.raises(DataError, match="a study here already"):
        rating_study(tmp_path / "study", RatingPlan(measures=("path",), pairs=3), settings())
    assert open_study(tmp_path / "study").secret == study.secret
