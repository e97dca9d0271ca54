"""An answer: stored once, within its image, and never before its trial was shown and its phases can have passed."""

import pytest

from .visitors import Hall

PHASES = 1.5 + 2.0 + 1.5


def test_the_same_answer_twice_is_one_answer(hall):
    visitor = hall.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    hall.now += PHASES
    assert not visitor.answer(trial, x=1.0, y=2.0).json["repeated"]
    again = visitor.answer(trial, x=1.0, y=2.0)
    assert again.status == 200 and again.json["repeated"]
    other = visitor.answer(trial, x=1.0, y=2.0, key="another-key")
    assert (other.status, other.error) == (409, "already-answered")
    assert hall.store.answers().height == 1


def test_no_answer_before_its_trial_was_shown(hall):
    visitor = hall.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    assert visitor.answer(trial, x=1.0, y=2.0).error == "not-shown"


def test_no_answer_before_its_phases_can_have_passed(hall):
    visitor = hall.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    hall.now += PHASES - 0.26
    refused = visitor.answer(trial, x=1.0, y=2.0)
    assert (refused.status, refused.error) == (409, "too-early")
    # Shown again, since the window was resized: the first show counts.
    visitor.show(trial)
    hall.now += 0.02
    assert visitor.answer(trial, x=1.0, y=2.0).status == 200


def test_the_phases_that_end_too_early_are_those_of_the_display_mode(hall_of, clicks_study):
    hall = hall_of(clicks_study, modes=("text",))
    visitor = hall.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    hall.now += PHASES
    # Words take half a second longer to read.
    assert visitor.answer(trial, x=1.0, y=2.0).error == "too-early"
    hall.now += 0.5
    assert visitor.answer(trial, x=1.0, y=2.0).status == 200


def test_another_server_on_the_database_knows_when_it_was_shown(hall):
    visitor = hall.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    with Hall(hall.study, hall.database) as restarted:
        visitor.hall, restarted.now = restarted, hall.now + PHASES - 0.26
        assert visitor.answer(trial, x=1.0, y=2.0).error == "too-early"
        assert visitor.show(trial).status == 200
        restarted.now += 0.02
        assert visitor.answer(trial, x=1.0, y=2.0).status == 200


def test_a_clock_that_is_set_back_loses_no_answer(hall):
    visitor = hall.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    hall.now -= 3600
    assert visitor.answer(trial, x=1.0, y=2.0).status == 200


def test_a_queued_answer_is_never_too_late(hall):
    visitor = hall.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    hall.now += 50 * 86_400
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
def test_a_click_lies_within_its_image(hall, fields):
    visitor = hall.participant()
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(trial)
    hall.now += PHASES
    refused = visitor.answer(trial, **fields)
    assert (refused.status, refused.error) == (422, "field")
    assert visitor.answer(trial, x=159.999, y=0.0).status == 200
