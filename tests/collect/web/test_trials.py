"""A participant's operations: answers stored once and never too early, pictures for their own participant, state."""

from __future__ import annotations

from dataclasses import replace

import pytest
from web_visitors import StudyApp, session_cookie

from hardlook.collect.study.display_modes import draw_highlighted
from hardlook.collect.web import trials

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
