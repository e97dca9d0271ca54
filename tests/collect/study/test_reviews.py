"""Candidates as tasks: every claim once, pictures as they are, training with known answers."""

import json

import cv2
import numpy as np
import pytest

from hardlook.collect.study.folder import open_study
from hardlook.collect.study.reviews import TRAINING, format_subject, list_planted_claims, make_review_study
from hardlook.collect.study.settings import StudySettings
from hardlook.data.images import read_image
from hardlook.errors import DataError, OptionError
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import render_scene
from hardlook.world.scene import describe_scene


def settings(**given):
    return StudySettings(**{"kind": "review", "title": "T", "devices": ("any",), "target_answers": 2, **given})


def picture(path, seed=0, shape=(20, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (*shape, 3), np.uint8)
    cv2.imwrite(str(path), pixels)


@pytest.fixture
def folder(tmp_path):
    for number, place in enumerate(("cat/snow/a.png", "cat/grass/b.png", "dog/snow/c.png")):
        picture(tmp_path / "found" / place, number)
    return tmp_path / "found"


def test_every_image_of_a_folder_is_a_task(folder, tmp_path):
    study = make_review_study(tmp_path / "study", folder, settings())
    tasks = [task for task in study.tasks if not task.training]
    assert {(task.name, task.concept, task.context, task.split) for task in tasks} == {
        ("cat/snow/a.png", "cat", "snow", ""),
        ("cat/grass/b.png", "cat", "grass", ""),
        ("dog/snow/c.png", "dog", "snow", ""),
    }
    for task in tasks:
        assert np.array_equal(read_image(study.file(task.image)), read_image(folder / task.name))
        assert task.answer is None and task.concept not in task.image
    again = open_study(study.path)
    assert again.tasks == study.tasks and again.fingerprint == study.fingerprint
    assert len(again.items) == 3


def test_one_image_under_two_contexts_is_two_claims_and_one_picture(folder, tmp_path):
    rows = ["cat/snow/a.png,cat,snow,train", "cat/snow/a.png,cat,winter,train", "cat/snow/a.png,cat,snow,test"]
    (folder / "list.csv").write_text("\n".join(["path,concept,context,split", *rows]) + "\n")
    study = make_review_study(tmp_path / "study", folder / "list.csv", settings(training_tasks=0))
    assert [task.context for task in study.tasks] == ["snow", "winter"]
    assert len({task.subject for task in study.tasks}) == 2
    assert len({task.image for task in study.tasks}) == 1
    [note] = study.made["left_out"]
    assert (note["count"], note["what"]) == (1, "rows of the manifest")
    assert study.made["data"]["candidates"] == str(folder.resolve())


def test_claims_are_told_apart_whatever_their_names():
    claims = {
        format_subject("a", "b", "c"),
        format_subject("a/b", "", "c"),
        format_subject("a", "b/c", ""),
        format_subject('a", "b', "c", ""),
    }
    assert len(claims) == 4


def test_a_draw_depends_on_the_seed_alone(folder, tmp_path):
    drawn = [
        [task.name for task in make_review_study(tmp_path / name, folder, settings(), at_most=2, seed=seed).tasks][:2]
        for name, seed in (("one", 1), ("two", 1))
    ]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 2
    whole = make_review_study(tmp_path / "whole", folder, settings(), at_most=7)
    assert len(whole.items) == 3 and whole.made["left_out"] == []
    some = make_review_study(tmp_path / "some", folder, settings(), at_most=1)
    assert len(some.items) + sum(note["count"] for note in some.made["left_out"]) == 3
    with pytest.raises(OptionError, match="at most 0"):
        make_review_study(tmp_path / "none", folder, settings(), at_most=0)


def test_training_tasks_have_known_answers_and_are_not_handed_out(folder, tmp_path):
    study = make_review_study(tmp_path / "study", folder, settings(training_tasks=8))
    assert [task.id for task in study.training] == [f"training-{place}" for place in range(8)]
    assert {task.answer for task in study.training} == {0, 1}
    for place, task in enumerate(study.training):
        one = TRAINING[place % len(TRAINING)]
        assert task.answer == int((task.concept, task.context) == one.actual)
        scene = describe_scene(20_240_902, place, *one.actual, salient=True, distractors=0, size=(320, 240))
        assert np.array_equal(read_image(study.file(task.image)), render_scene(scene).image)
    assert all(not item.task.startswith("training") for item in study.items)


def test_the_planted_claims_are_in_the_study_itself(tmp_path):
    study = make_review_study(tmp_path / "study", None, settings(), scenes=12, seed=5)
    world = PlantedWorld(seed=5, count=12, salient=True)
    shown = {f"images/{i + 1:06d}.png": (world.concept(i), world.context(i)) for i in range(12)}
    tasks = [task for task in study.tasks if not task.training]
    wrong = [task for task in tasks if (task.concept, task.context) != shown[task.name]]
    assert len(tasks) == 12 and len(wrong) == 3
    assert any(task.concept != shown[task.name][0] for task in wrong)
    assert any(task.context != shown[task.name][1] for task in wrong)
    assert study.made["data"]["candidates"] == "candidates"
    assert json.loads((study.path / "made.json").read_text())["images"] == 12


def test_planted_claims_do_not_depend_on_how_many_there_are():
    assert list_planted_claims(3, 96)[:20] == list_planted_claims(3, 96)[:20]
    assert sum(one.answer for one in list_planted_claims(3, 96)) == 72


def test_large_images_are_shown_smaller(tmp_path):
    picture(tmp_path / "found" / "cat" / "snow" / "a.png", shape=(30, 4096))
    study = make_review_study(tmp_path / "study", tmp_path / "found", settings(training_tasks=0))
    assert read_image(study.file(study.tasks[0].image)).shape == (15, 2048, 3)


def test_what_cannot_be_read_is_named_and_leaves_no_study(folder, tmp_path):
    (folder / "dog" / "snow" / "broken.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match="broken"):
        make_review_study(tmp_path / "study", folder, settings())
    with pytest.raises(DataError, match="no study here"):
        open_study(tmp_path / "study")
    (folder / "dog" / "snow" / "broken.png").unlink()
    assert len(make_review_study(tmp_path / "study", folder, settings()).items) == 3
    with pytest.raises(DataError, match="a study here already"):
        make_review_study(tmp_path / "study", folder, settings())
    with pytest.raises(DataError, match="no such folder"):
        make_review_study(tmp_path / "other", tmp_path / "nowhere", settings())
    assert not (tmp_path / "other").exists()
