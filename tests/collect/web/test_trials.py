"""A participant's operations: answers stored once and never too early, pictures for their own participant, state."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from web_visitors import StudyApp, middle_of, session_cookie

from hardlook.collect.results.exclusion_rules import ExclusionRules, find_excluded
from hardlook.collect.results.quality import measure_participants
from hardlook.collect.study.clicks import make_click_study
from hardlook.collect.study.display_modes import draw_highlighted
from hardlook.collect.study.folder import open_study
from hardlook.collect.study.instances import list_planted_instances
from hardlook.collect.study.ratings import RatingPlan, make_rating_study
from hardlook.collect.study.reviews import make_review_study
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.web import trials
from hardlook.collect.web.tokens import make_invitation_links, shorten_address
from hardlook.world.planted import PlantedWorld

PHASES = 1.5 + 2.0 + 1.5


def test_the_same_answer_twice_is_one_answer(study_app):
    visitor = study_app.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    study_app.now += PHASES
    assert not visitor.answer(trial, x=1.0, y=2.0).json["repeated"]
    again = visitor.answer(trial, x=1.0, y=2.0)
    assert again.status == 200 and again.json["repeated"]
    other = visitor.answer(trial, x=1.0, y=2.0, key="another-key")
    assert (other.status, other.error) == (409, "already-answered")
    assert study_app.store.answers().height == 1


def test_no_answer_before_its_trial_was_shown(study_app):
    visitor = study_app.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    assert visitor.answer(trial, x=1.0, y=2.0).error == "not-shown"


def test_no_answer_before_its_phases_can_have_passed(study_app):
    visitor = study_app.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    study_app.now += PHASES - 0.26
    refused = visitor.answer(trial, x=1.0, y=2.0)
    assert (refused.status, refused.error) == (409, "too-early")
    # Shown again, since the window was resized: the first show counts.
    visitor.show(trial)
    study_app.now += 0.02
    assert visitor.answer(trial, x=1.0, y=2.0).status == 200


def test_the_phases_that_end_too_early_are_those_of_the_display_mode(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, modes=("text",))
    visitor = study_app.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    study_app.now += PHASES
    # Words take half a second longer to read.
    assert visitor.answer(trial, x=1.0, y=2.0).error == "too-early"
    study_app.now += 0.5
    assert visitor.answer(trial, x=1.0, y=2.0).status == 200


def test_another_server_on_the_database_knows_when_it_was_shown(study_app):
    visitor = study_app.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    with StudyApp(study_app.study, study_app.database) as restarted:
        visitor.study_app, restarted.now = restarted, study_app.now + PHASES - 0.26
        assert visitor.answer(trial, x=1.0, y=2.0).error == "too-early"
        assert visitor.show(trial).status == 200
        restarted.now += 0.02
        assert visitor.answer(trial, x=1.0, y=2.0).status == 200


def test_a_clock_that_is_set_back_loses_no_answer(study_app):
    visitor = study_app.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    study_app.now -= 3600
    assert visitor.answer(trial, x=1.0, y=2.0).status == 200


def test_a_queued_answer_is_never_too_late(study_app):
    visitor = study_app.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    study_app.now += 50 * 86_400
    assert visitor.answer(trial, x=1.0, y=2.0).status == 200


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"x": 1.0},
        {"y": 1.0},
        {"x": 160.0, "y": 1.0},
        {"x": 1.0, "y": 120.0},
        {"x": -0.001, "y": 1.0},
        {"x": 1.0, "y": 1.0, "value": 1},
        {"value": 1},
        {"x": "1", "y": 1.0},
        {"x": 1.0, "y": None},
        {"x": 1.0, "y": 1.0, "early": -1},
        {"x": 1.0, "y": 1.0, "inside": True},
        {"x": 1.0, "y": 1.0, "durations": {"image": -1}},
        {"x": 1.0, "y": 1.0, "circumstances": {"pointer": "nose"}},
        {"x": float("nan"), "y": 1.0},
        {"x": 1.0, "y": float("-inf")},
        {"x": 1.0, "y": 1.0, "reaction_ms": float("nan")},
        {"x": 1.0, "y": 1.0, "durations": {"again": float("inf")}},
        {"x": 1.0, "y": 1.0, "circumstances": {"ratio": float("nan")}},
    ],
)
def test_a_click_lies_within_its_image(study_app, fields):
    visitor = study_app.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    study_app.now += PHASES
    refused = visitor.answer(trial, **fields)
    assert (refused.status, refused.error) == (422, "field")
    assert visitor.answer(trial, x=159.999, y=0.0).status == 200


PICTURES_PHASES = 5.0


@pytest.fixture
def shown(study_app):
    """A visitor with a trial that is shown, and another participant."""
    visitor = study_app.participant()
    trials = [trial["id"] for trial in visitor.batch()["batch"]["trials"]]
    visitor.show(trials[0])
    return visitor, trials, study_app.participant()


def test_the_bytes_are_those_of_the_study(study_app, shown):
    visitor, trials, _ = shown
    participant = study_app.store.batches()["participant"][0]
    item = study_app.store.trial(participant, trials[0]).item
    task = study_app.study.by_id[item.task]
    assert visitor.get(f"/pictures/{trials[0]}/image").content == study_app.study.file(task.image).read_bytes()
    assert (
        visitor.get(f"/pictures/{trials[0]}/target").content
        == study_app.study.file(task.targets[item.mode]).read_bytes()
    )


@pytest.mark.parametrize("what", ["image", "target"])
def test_only_in_their_time_and_only_to_their_participant(study_app, shown, what):
    visitor, trials, other = shown
    assert visitor.get(f"/pictures/{trials[1]}/{what}").status == 404  # not shown yet
    assert visitor.get(f"/pictures/{trials[0]}/{what}").status == 200
    assert other.get(f"/pictures/{trials[0]}/{what}").status == 404
    assert study_app.visitor().get(f"/pictures/{trials[0]}/{what}").status == 401
    name, value = session_cookie(visitor)
    visitor.cookies[name] = value[:-2]
    assert visitor.get(f"/pictures/{trials[0]}/{what}").status == 401
    visitor.cookies[name] = value
    study_app.now += PICTURES_PHASES
    assert visitor.answer(trials[0], x=1.0, y=1.0).status == 200
    assert visitor.get(f"/pictures/{trials[0]}/{what}").status == 404  # answered
    assert visitor.show(trials[0]).error == "already-answered"


def test_a_stranger_cannot_tell_what_exists(study_app, shown):
    _, trials, other = shown
    replies = [other.get(f"/pictures/{trial}/image") for trial in (trials[0], trials[1], "f" * 32)]
    assert {(reply.status, reply.content) for reply in replies} == {(404, replies[0].content)}
    assert {other.show(trial).error for trial in (trials[0], "f" * 32)} == {"unknown-trial"}
    answers = [other.answer(trial, x=1.0, y=1.0) for trial in (trials[0], "f" * 32)]
    assert {(reply.status, reply.error) for reply in answers} == {(404, "unknown-trial")}
    assert study_app.store.answers().height == 0


def test_a_returned_trial_is_closed(study_app, shown):
    visitor, trials, other = shown
    study_app.now += 31 * 60
    other.batch()
    assert visitor.get(f"/pictures/{trials[0]}/image").status == 404
    assert visitor.show(trials[0]).error == "returned"
    assert visitor.answer(trials[0], x=1.0, y=1.0).error == "returned"


@pytest.mark.parametrize("what", ["mask", "feedback", "masks", "image.png", "", "IMAGE", "image%00", "%2e%2e"])
def test_there_are_no_other_pictures(study_app, shown, what):
    visitor, trials, _ = shown
    assert visitor.get(f"/pictures/{trials[0]}/{what}").status == 404


def test_no_mask_is_ever_sent(study_app, shown):
    """Whatever a participant is sent, none of it is a mask's file, nor names one."""
    visitor, trials, _ = shown
    names = {name for task in study_app.study.tasks for name in (task.mask, task.image, *task.targets.values())}
    masks = {study_app.study.file(task.mask).read_bytes() for task in study_app.study.tasks}
    paths = ["/work", "/api/state", f"/pictures/{trials[0]}/image", f"/pictures/{trials[0]}/target"]
    paths += [f"/{name}" for name in names] + [f"/static/{name}" for name in names]
    replies = [visitor.get(path) for path in paths] + [visitor.show(trials[0]), visitor.post("/api/batch", {})]
    for reply in replies:
        assert reply.content not in masks
        assert not any(name.encode() in reply.content for name in names)
    assert {reply.status for reply in replies[4 : 4 + 2 * len(names)]} == {404}


def test_training_pictures_need_a_session_alone(study_app):
    visitor = study_app.visitor()
    visitor.join()
    for what in ("image", "target", "feedback"):
        assert visitor.get(f"/pictures/training-0/{what}").status == 200
        assert study_app.visitor().get(f"/pictures/training-0/{what}").status == 401
    for trial in ("training-1", "training-00", "training--1", "training-", "training-999999999999", "training-0x"):
        assert visitor.get(f"/pictures/{trial}/image").status == 404
        assert visitor.show(trial).status == 404
        assert visitor.post("/api/training", {"trial": trial, "x": 1.0, "y": 1.0}).status in (404, 422)


def test_a_picture_that_is_gone_is_said_without_a_path(study_app, shown, monkeypatch):
    visitor, trials, _ = shown
    monkeypatch.setattr(type(study_app.study), "file", lambda study, name: study.path / "nowhere" / name)
    reply = visitor.get(f"/pictures/{trials[0]}/image")
    assert (reply.status, reply.error) == (503, "not-now")
    assert str(study_app.study.path) not in reply.text and "nowhere" not in reply.text


def test_feedback_is_painted_once_however_often_it_is_asked_for(study_app, monkeypatch):
    painted = []

    def paint(image, mask, kind):
        painted.append(kind)
        return draw_highlighted(image, mask, kind)

    monkeypatch.setattr(trials, "draw_highlighted", paint)
    visitor, other = study_app.participant(), study_app.participant()
    replies = [one.get("/pictures/training-0/feedback") for one in (visitor, other, visitor)]
    assert {(reply.status, reply.content) for reply in replies} == {(200, replies[0].content)}
    assert painted == ["first"]


def whose(study_app):
    return study_app.store.participants()["id"][0]


def test_who_was_told_that_nothing_is_left_may_ask_again(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, modes=("cut-out",), target_answers=1, batch_size=6, devices=("pc",))
    first, second = study_app.participant(), study_app.participant()
    first.batch()
    assert second.batch() == {"done": True, "code": None}
    assert not second.get("/api/state").json["done"]
    study_app.now += 1801
    assert len(second.batch()["batch"]["trials"]) == 6


def test_who_did_all_that_is_asked_for_is_done(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, most_batches=1)
    visitor = study_app.participant()
    for trial in visitor.batch()["batch"]["trials"]:
        assert not visitor.get("/api/state").json["done"]
        visitor.show(trial["id"])
        study_app.now += PHASES
        visitor.answer(trial["id"], x=1.0, y=1.0)
    # Noted with the last answer, so that it does not hang on a page that asks once more.
    assert study_app.store.participant(whose(study_app)).finished == study_app.now
    assert visitor.get("/api/state").json["done"] and visitor.batch()["done"]


def test_who_may_go_on_is_not_done_and_gets_nothing_unasked(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, most_batches=2)
    visitor = study_app.participant()
    for trial in visitor.batch()["batch"]["trials"]:
        visitor.show(trial["id"])
        study_app.now += PHASES
        visitor.answer(trial["id"], x=1.0, y=1.0)
    assert study_app.store.participant(whose(study_app)).finished is None
    assert study_app.store.batches()["state"].to_list() == ["complete"]


def test_the_end_is_noted_by_an_answer_that_is_sent_again(make_study_app, clicks_study, monkeypatch):
    study_app = make_study_app(clicks_study, most_batches=1, batch_size=1)
    visitor = study_app.participant()
    [trial] = visitor.batch()["batch"]["trials"]
    visitor.show(trial["id"])
    study_app.now += PHASES
    with monkeypatch.context() as broken:
        # As if the server was killed between the answer and the note.
        broken.setattr(type(study_app.store), "tally", lambda *_: 1 / 0)
        assert visitor.answer(trial["id"], x=1.0, y=1.0).status == 500
    assert study_app.store.answers().height == 1 and study_app.store.participant(whose(study_app)).finished is None
    assert visitor.answer(trial["id"], x=1.0, y=1.0).json["repeated"]
    assert study_app.store.participant(whose(study_app)).finished == study_app.now


def test_languages(study_app):
    visitor = study_app.visitor()
    assert '<html lang="de">' in visitor.get("/?lang=de").text
    assert '<html lang="en">' in visitor.get("/?lang=xx").text
    visitor.join("/?lang=de")
    state = visitor.get("/api/state").json
    assert state["language"] == "de" and state["languages"] == {"en": "English", "de": "Deutsch"}
    assert visitor.post("/api/language", {"language": "en"}).json["texts"]["work.pause"] == "Pause"
    assert visitor.get("/api/state").json["language"] == "en"
    assert visitor.post("/api/language", {"language": "fr"}).status == 422


def test_a_language_without_texts_of_its_own_goes_by_its_code(make_study_app, clicks_study):
    visitor = make_study_app(clicks_study, languages=("tlh", "de")).visitor()
    visitor.join()
    assert visitor.get("/api/state").json["languages"] == {"tlh": "tlh", "de": "Deutsch"}


@pytest.mark.parametrize("types", [("first",), ("fn",), ("fn", "fp")])
def test_the_state_says_what_is_clicked_on(make_study_app, clicks_study, types):
    tasks = [replace(task, click_type=types[place % len(types)]) for place, task in enumerate(clicks_study.tasks)]
    visitor = make_study_app(replace(clicks_study, tasks=tuple(tasks))).visitor()
    visitor.join()
    assert visitor.get("/api/state").json["click_types"] == list(types)


def test_studies_have_marks_of_their_own(study_app, make_study_app, review_study):
    marks = []
    for one in (study_app, make_study_app(review_study)):
        visitor = one.visitor()
        visitor.join()
        marks.append(visitor.get("/api/state").json["study"])
        assert session_cookie(visitor)[0].endswith(f"_{marks[-1]}")
    assert len(set(marks)) == 2
    assert visitor.get("/api/state").json["click_types"] == []


def test_a_program_that_skips_the_practice_gets_no_batch(study_app):
    visitor = study_app.visitor()
    visitor.join()
    visitor.post("/api/device", {"device": "pc"})
    assert visitor.post("/api/trained", {}).error == "not-trained"
    assert visitor.post("/api/training", {"trial": "training-0", "x": 1.0, "y": 1.0}).error == "not-shown"
    visitor.show("training-0")
    study_app.now += PHASES - 0.26
    assert visitor.post("/api/training", {"trial": "training-0", "x": 1.0, "y": 1.0}).error == "too-early"
    study_app.now += 0.02
    assert visitor.post("/api/training", {"trial": "training-0", "x": 0.0, "y": 0.0}).status == 200
    # One wrong answer: the page asks for another, and so does the server.
    assert visitor.post("/api/trained", {}).error == "not-trained"
    assert visitor.batch()["error"] == "not-trained"
    task = study_app.study.training[0]
    x, y = middle_of(study_app.study, task)
    assert visitor.post("/api/training", {"trial": "training-0", "x": x, "y": y}).json["right"]
    assert visitor.post("/api/trained", {}).json == {"trained": True}
    assert not visitor.batch()["done"]


def test_joining_alone_takes_no_work_from_others(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, modes=("cut-out",), target_answers=1, batch_size=3, devices=("pc",))
    for _ in range(18):
        assert study_app.visitor(client="10.0.0.9").join().status == 303
    assert len(study_app.participant(client="10.0.0.7").batch()["batch"]["trials"]) == 3


def test_few_batches_are_open_at_one_address(make_study_app, clicks_study):
    limits = clicks_study.settings.limits.model_copy(update={"open_batches_per_address": 2})
    study_app = make_study_app(clicks_study, limits=limits)
    first, second, third = (study_app.participant(client="10.0.0.9") for _ in range(3))
    assert not first.batch()["done"] and not second.batch()["done"]
    refused = third.post("/api/batch", {})
    assert (refused.status, refused.error) == (409, "address-busy")
    # Whoever has one keeps it; other addresses, and people with an invitation, are not concerned.
    assert first.batch() == first.batch()
    assert not study_app.participant(client="10.0.0.8").batch()["done"]
    [link] = make_invitation_links(study_app.study.secret, "http://x", count=1, expires=study_app.now + 1e6)
    invited = study_app.visitor(client="10.0.0.9")
    invited.join(link.removeprefix("http://x"))
    invited.post("/api/device", {"device": "pc"})
    invited.practise()
    assert not invited.batch()["done"]
    # One that is done makes room, and so does one that was never begun, soon.
    first.do_batch()
    assert not third.batch()["done"]
    fourth = study_app.participant(client="10.0.0.9")
    assert fourth.post("/api/batch", {}).error == "address-busy"
    study_app.now += 301
    assert not fourth.batch()["done"]
    assert_no_address_is_stored(study_app, "10.0.0.9")


def assert_no_address_is_stored(study_app, address):
    """No file of the database has the address in it; of open batches there are four characters that say nothing."""
    database = Path(study_app.database.removeprefix("sqlite:///"))
    for file in database.parent.glob(f"{database.name}*"):
        assert address.encode() not in file.read_bytes()
    with sqlite3.connect(database) as connection:
        stored = connection.execute("SELECT address FROM batch_addresses").fetchall()
    connection.close()
    assert stored and all(re.fullmatch("[0-9a-f]{4}", one) for (one,) in stored)
    assert {one for (one,) in stored} <= {shorten_address(study_app.study.secret, f"10.0.0.{n}") for n in (8, 9)}


def test_a_batch_without_an_answer_goes_back_soon_and_one_with_an_answer_late(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, modes=("cut-out",), target_answers=1, batch_size=6, devices=("pc",))
    idle, other, third = (study_app.participant(client=f"10.0.0.{n}") for n in range(3))
    trials = idle.batch()["batch"]["trials"]
    assert other.batch()["done"]
    study_app.now += 299
    idle.post("/api/pause", {})
    assert other.batch()["done"]
    study_app.now += 2
    # Being active is not enough: nothing was answered.
    idle.post("/api/pause", {})
    taken = other.batch()["batch"]["trials"]
    assert len(taken) == 6 and idle.show(trials[0]["id"]).error == "returned"
    other.show(taken[0]["id"])
    study_app.now += PHASES
    other.answer(taken[0]["id"], x=1.0, y=1.0)
    study_app.now += 1790
    assert third.batch()["done"]
    study_app.now += 11
    assert len(third.batch()["batch"]["trials"]) == 6


def rush(study_app, visitor, seconds):
    """Have all trials of a batch shown at once, wait, and answer all of them rightly."""
    trials = [trial["id"] for trial in visitor.batch()["batch"]["trials"]]
    for trial in trials:
        visitor.show(trial)
    study_app.now += seconds
    for trial in trials:
        assert visitor.answer(trial, **study_app.right_click(trial)).status == 200


def test_a_batch_that_is_rushed_earns_no_code_and_does_not_count(study_app):
    visitor = study_app.participant()
    rush(study_app, visitor, 5.3)
    assert visitor.get("/api/state").json["code"] is None
    assert "no completion code" in visitor.get("/done").text
    assert study_app.store.batches()["valid"].to_list() == [False]
    assert study_app.store.progress()["valid"].sum() == 0
    # Three times the phases are three clicks' time.
    rush(study_app, visitor, 3 * PHASES)
    assert visitor.get("/api/state").json["code"] and study_app.store.batches()["valid"].to_list() == [False, True]


def test_a_study_may_keep_rushed_batches(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, quick_batches="keep")
    visitor = study_app.participant()
    rush(study_app, visitor, 5.3)
    assert visitor.get("/api/state").json["code"] and study_app.store.batches()["valid"].to_list() == [True]


def test_a_study_may_give_codes_for_valid_batches_only(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, code_for="valid")
    visitor = study_app.participant()
    for trial in visitor.batch()["batch"]["trials"]:
        visitor.show(trial["id"])
        study_app.now += PHASES
        visitor.answer(trial["id"], x=0.0, y=0.0)
    assert visitor.get("/api/state").json["code"] is None
    assert "must be right, too" in visitor.get("/done").text
    visitor.do_batch()
    assert visitor.get("/api/state").json["code"]


def test_reviews_in_no_time_earn_no_code(make_study_app, review_study):
    study_app = make_study_app(review_study, least_answer_seconds=0.5)
    quick, slow = study_app.participant(), study_app.participant()
    quick.do_batch(seconds=0.3, value=1)
    slow.do_batch(seconds=0.6, value=1)
    assert quick.get("/api/state").json["code"] is None and slow.get("/api/state").json["code"]
    assert study_app.store.batches()["valid"].sum() == 1
    # What does not count is collected again.
    assert study_app.store.progress()["valid"].sum() == 2


@pytest.fixture(scope="module")
def checked_study(tmp_path_factory):
    settings = StudySettings(
        kind="clicks", title="Cups", modes=("cut-out", "silhouette"), batch_size=2, training_tasks=0, most_batches=3,
        attention_checks=1, open_link=True,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("checked") / "study"
    return make_click_study(folder, list_planted_instances(PlantedWorld(seed=0, count=4)), settings)


def test_attention_checks_come_with_every_batch_and_are_no_result(make_study_app, checked_study):
    study_app = make_study_app(checked_study)
    assert open_study(checked_study.path).checks == checked_study.checks and len(checked_study.checks) == 3
    good = study_app.participant()
    study_app.now += 1
    bad, seen = study_app.participant(), []
    for _ in range(2):
        batch = good.batch()["batch"]["trials"]
        found = [study_app.store.trial(study_app.store.participants()["id"][0], one["id"]).item for one in batch]
        assert [one.is_check for one in found].count(True) == 1 and len(found) == 3
        seen += [one.subject for one in found]
        good.do_batch()
    assert len(set(seen)) == 6
    for trial in bad.batch()["batch"]["trials"]:
        item = study_app.store.trial(study_app.store.participants()["id"][1], trial["id"]).item
        bad.show(trial["id"])
        study_app.now += PHASES
        click = {"x": 0.0, "y": 0.0} if item.is_check else study_app.right_click(trial["id"])
        assert bad.answer(trial["id"], **click).status == 200
    assert study_app.store.answers().height == 6 and study_app.store.check_answers().height == 3
    # A failed check is not one of the clicks that a batch is judged by.
    assert study_app.store.batches().select("trials", "answered", "valid").unique().rows() == [(2, 2, True)]
    assert study_app.store.progress()["item"].n_unique() == len(checked_study.items)
    frames = (study_app.store.answers(), study_app.store.batches(), study_app.store.participants())
    people = measure_participants(checked_study, *frames, study_app.store.check_answers())
    assert people.select("answers", "checks", "failed_checks").rows() == [(4, 2, 0), (2, 1, 1)]
    assert find_excluded(people, ExclusionRules(most_failed_checks=0)).keys() == {people["participant"][1]}


@pytest.mark.parametrize(("make", "right", "wrong"), [("review", "answer", "other"), ("ratings", 10, 2)])
def test_attention_checks_of_questions(make_study_app, tmp_path, make, right, wrong):
    settings = StudySettings(
        kind=make, title="T", devices=("any",), batch_size=2, training_tasks=0, attention_checks=1, most_batches=1,
        open_link=True, least_answer_seconds=0,
    )  # fmt: skip
    if make == "review":
        study = make_review_study(tmp_path / "study", None, settings, scenes=4)
    else:
        study = make_rating_study(tmp_path / "study", RatingPlan(measures=("path",), pairs=4), settings)
    study_app = make_study_app(study)
    for passes in (True, False):
        study_app.now += 1
        visitor = study_app.participant()
        who = study_app.store.participants()["id"][-1]
        for trial in visitor.batch()["batch"]["trials"]:
            item = study_app.store.trial(who, trial["id"]).item
            known = getattr(study.by_id[item.task], "answer", None)
            value = {"answer": known, "other": 1 - (known or 0)}.get(
                right if passes else wrong, right if passes else wrong
            )
            visitor.show(trial["id"])
            assert visitor.answer(trial["id"], value=value if item.is_check else 1).status == 200
    assert study_app.store.check_answers()["near"].to_list() == [True, False]
    assert study_app.store.answers().height == 4
