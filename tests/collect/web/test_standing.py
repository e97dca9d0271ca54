"""Where a participant stands, as the page is told: languages, what is clicked on, and whether all is done."""

from dataclasses import replace

import pytest

from .visitors import session_cookie

PHASES = 1.5 + 2.0 + 1.5


def whose(hall):
    return hall.store.participants()["id"][0]


def test_who_was_told_that_nothing_is_left_may_ask_again(hall_of, clicks_study):
    hall = hall_of(clicks_study, modes=("cut-out",), target_answers=1, batch_size=6, devices=("pc",))
    first, second = hall.participant(), hall.participant()
    first.batch()
    assert second.batch() == {"done": True, "code": None}
    assert not second.get("/api/state").json["done"]
    hall.now += 1801
    assert len(second.batch()["batch"]["trials"]) == 6


def test_who_did_all_that_is_asked_for_is_done(hall_of, clicks_study):
    hall = hall_of(clicks_study, most_batches=1)
    visitor = hall.participant()
    for trial in visitor.batch()["batch"]["trials"]:
        assert not visitor.get("/api/state").json["done"]
        visitor.show(trial["id"])
        hall.now += PHASES
        visitor.answer(trial["id"], x=1.0, y=1.0)
    # Noted with the last answer, so that it does not hang on a page that asks once more.
    assert hall.store.participant(whose(hall)).finished == hall.now
    assert visitor.get("/api/state").json["done"] and visitor.batch()["done"]


def test_who_may_go_on_is_not_done_and_gets_nothing_unasked(hall_of, clicks_study):
    hall = hall_of(clicks_study, most_batches=2)
    visitor = hall.participant()
    for trial in visitor.batch()["batch"]["trials"]:
        visitor.show(trial["id"])
        hall.now += PHASES
        visitor.answer(trial["id"], x=1.0, y=1.0)
    assert hall.store.participant(whose(hall)).finished is None
    assert hall.store.batches()["state"].to_list() == ["complete"]


def test_the_end_is_noted_by_an_answer_that_is_sent_again(hall_of, clicks_study, monkeypatch):
    hall = hall_of(clicks_study, most_batches=1, batch_size=1)
    visitor = hall.participant()
    [trial] = visitor.batch()["batch"]["trials"]
    visitor.show(trial["id"])
    hall.now += PHASES
    with monkeypatch.context() as broken:
        # As if the server was killed between the answer and the note.
        broken.setattr(type(hall.store), "tally", lambda *_: 1 / 0)
        assert visitor.answer(trial["id"], x=1.0, y=1.0).status == 500
    assert hall.store.answers().height == 1 and hall.store.participant(whose(hall)).finished is None
    assert visitor.answer(trial["id"], x=1.0, y=1.0).json["repeated"]
    assert hall.store.participant(whose(hall)).finished == hall.now


def test_languages(hall):
    visitor = hall.visitor()
    assert '<html lang="de">' in visitor.get("/?lang=de").text
    assert '<html lang="en">' in visitor.get("/?lang=xx").text
    visitor.join("/?lang=de")
    state = visitor.get("/api/state").json
    assert state["language"] == "de" and state["languages"] == {"en": "English", "de": "Deutsch"}
    assert visitor.post("/api/language", {"language": "en"}).json["texts"]["work.pause"] == "Pause"
    assert visitor.get("/api/state").json["language"] == "en"
    assert visitor.post("/api/language", {"language": "fr"}).status == 422


def test_a_language_without_texts_of_its_own_goes_by_its_code(hall_of, clicks_study):
    visitor = hall_of(clicks_study, languages=("tlh", "de")).visitor()
    visitor.join()
    assert visitor.get("/api/state").json["languages"] == {"tlh": "tlh", "de": "Deutsch"}


@pytest.mark.parametrize("types", [("first",), ("fn",), ("fn", "fp")])
def test_the_state_says_what_is_clicked_on(hall_of, clicks_study, types):
    tasks = [replace(task, click_type=types[place % len(types)]) for place, task in enumerate(clicks_study.tasks)]
    visitor = hall_of(replace(clicks_study, tasks=tuple(tasks))).visitor()
    visitor.join()
    assert visitor.get("/api/state").json["click_types"] == list(types)


def test_studies_have_marks_of_their_own(hall, hall_of, review_study):
    marks = []
    for one in (hall, hall_of(review_study)):
        visitor = one.visitor()
        visitor.join()
        marks.append(visitor.get("/api/state").json["study"])
        assert session_cookie(visitor)[0].endswith(f"_{marks[-1]}")
    assert len(set(marks)) == 2
    assert visitor.get("/api/state").json["click_types"] == []
