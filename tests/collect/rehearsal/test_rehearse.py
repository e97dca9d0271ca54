"""A rehearsal finds nothing wrong where nothing is, and whatever is wrong where something is."""

import sqlite3
from dataclasses import replace

import PIL.Image
import polars as pl
import pytest

from hardlook.collect.rehearsal.participants import AnswerModel, TaskFinder, simulate_crowd
from hardlook.collect.rehearsal.rehearse import audit_answers, rehearse
from hardlook.collect.store.store import Store
from hardlook.collect.study.clicks import make_click_study
from hardlook.collect.study.folder import make_study
from hardlook.collect.study.instances import list_planted_instances
from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import RatingTask, ReviewTask
from hardlook.collect.study.validity import classify_points
from hardlook.collect.web.app import make_app
from hardlook.errors import DataError, OptionError, RunError
from hardlook.serving import serve_in_background
from hardlook.world.planted import PlantedWorld


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    settings = StudySettings(
        kind="clicks",
        title="Rehearsed",
        modes=("cut-out", "silhouette"),
        batch_size=4,
        target_answers=3,
        training_tasks=0,
    )
    world = PlantedWorld(seed=0, count=6)
    return make_click_study(tmp_path_factory.mktemp("rehearsal") / "study", list_planted_instances(world), settings)


@pytest.fixture(scope="module")
def played(study, tmp_path_factory):
    """A rehearsal that went to its end, and the file of its answers."""
    path = tmp_path_factory.mktemp("rehearsal") / "answers.sqlite"
    with Store.open(f"sqlite:///{path}") as store:
        return rehearse(study, store, participants=8, seed=3), path


def test_everybody_answers_everything_once(study, played, database_url):
    with Store.open(database_url) as store:
        found = rehearse(study, store, participants=8, seed=3)
        answers = store.answers()
    assert found.audit.clean
    assert found.audit.acknowledged == found.audit.stored == answers.height
    # Six images and eight people: each sees each image in one of the two modes.
    assert answers.group_by("participant").len()["len"].max() <= 6
    wanted = answers.filter(pl.col("near") == 1, pl.col("batch_valid") == 1).group_by("item", "device").len()["len"]
    assert wanted.max() <= 3
    # Whoever heard that nothing is left got a code of their own.
    assert len(set(found.crowd.codes)) == len(found.crowd.codes) > 0
    assert found.crowd.quantile(0.99) >= found.crowd.quantile(0.5) > 0


def test_clicks_are_drawn_inside_or_anywhere(study):
    task = study.tasks[0]
    mask = read_mask(study.file(task.mask))

    def inside(careless):
        model = AnswerModel(study, careless=careless)
        points = [tuple(model.answer(person, task).values()) for person in range(300)]
        return classify_points(mask, points, 0.0)[0].mean()

    assert inside(careless=0.0) == 1
    # Anywhere in the frame: as often inside as the mask is large, within four standard errors.
    share = mask.mean()
    assert abs(inside(careless=1.0) - share) < 4 * (share * (1 - share) / 300) ** 0.5


def test_the_same_seed_gives_the_same_answers(study):
    task = study.tasks[1]
    first, again, other = (AnswerModel(study, seed=seed).answer(5, task) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("harm", "count"),
    [
        ("delete from answers where rowid = 1", "lost"),
        ("update answers set x = x + 1 where rowid = 1", "changed"),
        ("update progress set valid = valid + 1 where rowid = 1", "miscounted"),
    ],
)
def test_harm_is_found(study, played, tmp_path, harm, count):
    rehearsal, path = played
    harmed = tmp_path / "harmed.sqlite"
    with sqlite3.connect(path) as whole, sqlite3.connect(harmed) as copy:
        whole.backup(copy)
        copy.execute(harm)
    with Store.open(f"sqlite:///{harmed}") as store:
        found = audit_answers(store, rehearsal.crowd.answers, target=3)
    assert getattr(found, count) >= 1
    assert not found.clean


def test_more_than_wanted_is_found(played):
    rehearsal, path = played
    with Store.open(f"sqlite:///{path}") as store:
        assert audit_answers(store, rehearsal.crowd.answers, target=3).beyond == 0
        assert audit_answers(store, rehearsal.crowd.answers, target=1).beyond > 0


def test_a_database_in_use_is_not_rehearsed_in(study, played):
    _, path = played
    with Store.open(f"sqlite:///{path}") as store, pytest.raises(OptionError, match="participants in this database"):
        rehearse(study, store, participants=1)


def test_a_picture_of_no_task_is_named(study):
    with pytest.raises(DataError, match="no task has"):
        TaskFinder(study).find(b"something else", None, {"id": "trial", "description": ""})


def test_targets_are_told_apart_by_their_bytes(study):
    finder = TaskFinder(study)
    for task in study.tasks:
        image = study.file(task.image).read_bytes()
        for name in task.targets.values():
            assert finder.find(image, study.file(name).read_bytes(), {}) == (task,)


def test_the_study_stays_as_it_was(study, tmp_path):
    """A rehearsal changes nothing in the study that it was given."""
    before = replace(study)
    with Store.open(f"sqlite:///{tmp_path / 'answers.sqlite'}") as store:
        rehearse(study, store, participants=1, batches=1)
    assert study == before and study.settings.timings.image == 1.5


def test_ratings_and_reviews_are_rehearsed_too(tmp_path):
    """Two measures may give one value, and then a rater cannot tell which was asked."""
    fit = StudySettings(kind="ratings", title="Pairs", devices=("any",), target_answers=2, batch_size=3)
    values = {"path": 0.25, "wup": 0.5, "lin": 0.25}
    pairs = [
        RatingTask(f"t{number}-{measure}", f"pair/{number}", "pair", ("cat", f"label {number}"), measure, value)
        for number in range(3)
        for measure, value in values.items()
    ]
    reviewed = StudySettings(kind="review", title="Cats", devices=("any",), target_answers=2)
    claims = [
        ReviewTask(f"r{number}", f"a/{context}", "a.jpg", "cat", context, "images/a.jpg")
        for number, context in enumerate(("snow", "grass"))
    ]
    for name, settings, tasks in (("ratings", fit, pairs), ("review", reviewed, claims)):
        study = make_study(tmp_path / name, settings, tasks, made={})
        if name == "review":
            (study.path / "images").mkdir()
            PIL.Image.new("RGB", (8, 6)).save(study.path / "images" / "a.jpg")
        with Store.open(f"sqlite:///{tmp_path / name}.sqlite") as store:
            found = rehearse(study, store, participants=6)
        assert found.audit.clean, found.audit
        assert found.audit.stored == {"ratings": 18, "review": 4}[name]


def test_a_study_that_is_shown_in_a_frame_is_rehearsed_without_one(study, tmp_path):
    framed = replace(study, settings=study.settings.model_copy(update={"frame_origins": ("https://a.example",)}))
    with Store.open(f"sqlite:///{tmp_path / 'answers.sqlite'}") as store:
        assert rehearse(framed, store, participants=2, batches=1).audit.clean


def test_who_cannot_join_ends_the_rehearsal_with_one_error(study, tmp_path):
    """Over plain HTTP a client sends no cookie of a framed page: each of the three fails, one is told of."""
    update = {"frame_origins": ("https://a.example",), "open_link": True}
    framed = replace(study, settings=study.settings.model_copy(update=update))
    with Store.open(f"sqlite:///{tmp_path / 'answers.sqlite'}") as store:
        store.prepare(framed.stored_items, framed.settings.devices, framed.fingerprint)
        with serve_in_background(make_app(framed, store, research_key="k" * 16)) as address:
            with pytest.raises(RunError, match="could not join"):
                simulate_crowd(framed, address, participants=3, batches=1)
