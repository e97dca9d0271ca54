"""Pictures are for the one they were handed to, from the show to the answer; masks for nobody."""

import pytest

from hardlook.collect.study.display_modes import highlighted

from .visitors import session_cookie

PHASES = 5.0


@pytest.fixture
def shown(hall):
    """A visitor with a trial that is shown, and another participant."""
    visitor = hall.participant()
    trials = [trial["id"] for trial in visitor.batch()["batch"]["trials"]]
    visitor.show(trials[0])
    return visitor, trials, hall.participant()


def test_the_bytes_are_those_of_the_study(hall, shown):
    visitor, trials, _ = shown
    participant = hall.store.batches()["participant"][0]
    item = hall.store.trial(participant, trials[0]).item
    task = hall.study.by_id[item.task]
    assert visitor.get(f"/pictures/{trials[0]}/image").content == hall.study.file(task.image).read_bytes()
    assert visitor.get(f"/pictures/{trials[0]}/target").content == hall.study.file(task.targets[item.mode]).read_bytes()


@pytest.mark.parametrize("what", ["image", "target"])
def test_only_in_their_time_and_only_to_their_participant(hall, shown, what):
    visitor, trials, other = shown
    assert visitor.get(f"/pictures/{trials[1]}/{what}").status == 404  # not shown yet
    assert visitor.get(f"/pictures/{trials[0]}/{what}").status == 200
    assert other.get(f"/pictures/{trials[0]}/{what}").status == 404
    assert hall.visitor().get(f"/pictures/{trials[0]}/{what}").status == 401
    name, value = session_cookie(visitor)
    visitor.cookies[name] = value[:-2]
    assert visitor.get(f"/pictures/{trials[0]}/{what}").status == 401
    visitor.cookies[name] = value
    hall.now += PHASES
    assert visitor.answer(trials[0], x=1.0, y=1.0).status == 200
    assert visitor.get(f"/pictures/{trials[0]}/{what}").status == 404  # answered
    assert visitor.show(trials[0]).error == "already-answered"


def test_a_stranger_cannot_tell_what_exists(hall, shown):
    _, trials, other = shown
    replies = [other.get(f"/pictures/{trial}/image") for trial in (trials[0], trials[1], "f" * 32)]
    assert {(reply.status, reply.content) for reply in replies} == {(404, replies[0].content)}
    assert {other.show(trial).error for trial in (trials[0], "f" * 32)} == {"unknown-trial"}
    answers = [other.answer(trial, x=1.0, y=1.0) for trial in (trials[0], "f" * 32)]
    assert {(reply.status, reply.error) for reply in answers} == {(404, "unknown-trial")}
    assert hall.store.answers().height == 0


def test_a_returned_trial_is_closed(hall, shown):
    visitor, trials, other = shown
    hall.now += 31 * 60
    other.batch()
    assert visitor.get(f"/pictures/{trials[0]}/image").status == 404
    assert visitor.show(trials[0]).error == "returned"
    assert visitor.answer(trials[0], x=1.0, y=1.0).error == "returned"


@pytest.mark.parametrize("what", ["mask", "feedback", "masks", "image.png", "", "IMAGE", "image%00", "%2e%2e"])
def test_there_are_no_other_pictures(hall, shown, what):
    visitor, trials, _ = shown
    assert visitor.get(f"/pictures/{trials[0]}/{what}").status == 404


def test_no_mask_is_ever_sent(hall, shown):
    """Whatever a participant is sent, none of it is a mask's file, nor names one."""
    visitor, trials, _ = shown
    names = {name for task in hall.study.tasks for name in (task.mask, task.image, *task.targets.values())}
    masks = {hall.study.file(task.mask).read_bytes() for task in hall.study.tasks}
    paths = ["/work", "/api/state", f"/pictures/{trials[0]}/image", f"/pictures/{trials[0]}/target"]
    paths += [f"/{name}" for name in names] + [f"/static/{name}" for name in names]
    replies = [visitor.get(path) for path in paths] + [visitor.show(trials[0]), visitor.post("/api/batch", {})]
    for reply in replies:
        assert reply.content not in masks
        assert not any(name.encode() in reply.content for name in names)
    assert {reply.status for reply in replies[4 : 4 + 2 * len(names)]} == {404}


def test_training_pictures_need_a_session_alone(hall):
    visitor = hall.visitor()
    visitor.join()
    for what in ("image", "target", "feedback"):
        assert visitor.get(f"/pictures/training-0/{what}").status == 200
        assert hall.visitor().get(f"/pictures/training-0/{what}").status == 401
    for trial in ("training-1", "training-00", "training--1", "training-", "training-999999999999", "training-0x"):
        assert visitor.get(f"/pictures/{trial}/image").status == 404
        assert visitor.show(trial).status == 404
        assert visitor.post("/api/training", {"trial": trial, "x": 1.0, "y": 1.0}).status in (404, 422)


def test_a_picture_that_is_gone_is_said_without_a_path(hall, shown, monkeypatch):
    visitor, trials, _ = shown
    monkeypatch.setattr(type(hall.study), "file", lambda study, name: study.path / "nowhere" / name)
    reply = visitor.get(f"/pictures/{trials[0]}/image")
    assert (reply.status, reply.error) == (503, "not-now")
    assert str(hall.study.path) not in reply.text and "nowhere" not in reply.text


def test_feedback_is_painted_once_however_often_it_is_asked_for(hall, monkeypatch):
    painted = []

    def paint(image, mask, kind):
        painted.append(kind)
        return highlighted(image, mask, kind)

    monkeypatch.setattr("hardlook.collect.web.picture_routes.highlighted", paint)
    visitor, other = hall.participant(), hall.participant()
    replies = [one.get("/pictures/training-0/feedback") for one in (visitor, other, visitor)]
    assert {(reply.status, reply.content) for reply in replies} == {(200, replies[0].content)}
    assert painted == ["first"]
