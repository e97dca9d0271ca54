"""The whole way by HTTP: consent, device, training, batches, the code; nothing on it says what is right."""

import pytest
from web_visitors import middle_of

from hardlook.collect.web.tokens import derive_completion_code, make_invitation_links

PHASES = 1.5 + 2.0 + 1.5


def test_a_study_of_clicks_from_consent_to_code(study_app):
    visitor = study_app.visitor()
    page = visitor.get("/")
    assert page.status == 200 and 'name="agree"' in page.text
    joined = visitor.join()
    assert (joined.status, joined.headers["location"]) == (303, "/work")
    state = visitor.get("/api/state").json
    assert state["kind"] == "clicks" and state["device"] is None and not state["trained"] and not state["done"]
    assert state["timings"] == {"image": 1.5, "target": 2.0, "target_text": 2.5, "again": 1.5}
    assert state["training"] == ["training-0"] and state["code"] is None
    assert visitor.post("/api/batch", {}).error == "no-device"
    assert visitor.post("/api/device", {"device": "pc", "pointer": "mouse"}).json == {"device": "pc"}
    assert visitor.post("/api/batch", {}).error == "not-trained"

    shown = visitor.show("training-0").json
    assert {shown["image"], shown["target"]} == {"/pictures/training-0/image", "/pictures/training-0/target"}
    task = study_app.study.training[0]
    x, y = middle_of(study_app.study, task)
    study_app.now += PHASES
    right = visitor.post("/api/training", {"trial": "training-0", "x": x, "y": y}).json
    assert right == {"right": True, "inside": True, "near": True, "feedback": "/pictures/training-0/feedback"}
    wrong = visitor.post("/api/training", {"trial": "training-0", "x": 0.0, "y": 0.0}).json
    assert not wrong["inside"]
    assert visitor.get("/pictures/training-0/feedback").headers["content-type"] == "image/png"
    assert visitor.post("/api/trained", {}).json == {"trained": True}

    done_of = []
    while not (given := visitor.batch())["done"]:
        assert given["batch"]["number"] == len(done_of) + 1
        trials = given["batch"]["trials"]
        assert [trial["position"] for trial in trials] == list(range(3))
        for place, trial in enumerate(trials):
            shown = visitor.show(trial["id"]).json
            assert (shown["width"], shown["height"]) == (160, 120)
            assert visitor.get(shown["image"]).status == visitor.get(shown["target"]).status == 200
            study_app.now += PHASES
            stored = visitor.answer(trial["id"], x=3.5, y=4.5, reaction_ms=300.0).json
            assert stored == {
                "stored": True, "repeated": False, "batch_complete": place == 2, "answered": place + 1, "of": 3,
            }  # fmt: skip
        done_of.append(trials)
    assert len(done_of) == 2
    state = visitor.get("/api/state").json
    assert state["progress"]["answered"] == 6 and state["progress"]["batches"] == 2
    answers = study_app.store.answers()
    assert answers["x"].to_list() == [3.5] * 6 and answers["device"].unique().to_list() == ["pc"]
    code = derive_completion_code(study_app.study.secret, answers["participant"][0])
    assert given["code"] == state["code"] == code
    assert code in visitor.get("/done").text


def test_stored_verdicts_are_those_of_the_mask(study_app):
    visitor = study_app.participant()
    for number, trial in enumerate(visitor.batch()["batch"]["trials"]):
        visitor.show(trial["id"])
        study_app.now += PHASES
        found = study_app.store.trial(whose(study_app), trial["id"])
        x, y = middle_of(study_app.study, study_app.study.by_id[found.item.task]) if number else (0.0, 0.0)
        assert visitor.answer(trial["id"], x=x, y=y).status == 200
    assert study_app.store.answers().sort("received")["inside"].to_list() == [0, 1, 1]


def whose(study_app):
    return study_app.store.participants()["id"][0]


def test_a_review(make_study_app, review_study):
    study_app = make_study_app(review_study)
    visitor = study_app.visitor()
    visitor.join()
    assert visitor.get("/api/state").json["device"] == "any"
    visitor.show("training-0")
    wrong, right = (visitor.post("/api/training", {"trial": "training-0", "value": value}).json for value in (1, 0))
    assert not wrong["right"] and right["right"]
    visitor.post("/api/trained", {})
    trial = visitor.batch()["batch"]["trials"][0]["id"]
    shown = visitor.show(trial).json
    assert set(shown) == {"id", "image", "concept", "context"}
    assert [visitor.answer(trial, value=value).status for value in (2, None, 1)] == [422, 422, 200]
    assert visitor.post("/api/device", {"device": "pc"}).error == "no-device"
    assert study_app.store.answers()["value"].to_list() == [1]


@pytest.mark.parametrize(("question", "value"), [("fit", 0.25), ("likeness", None)])
def test_a_rating(make_study_app, ratings_study, question, value):
    study_app = make_study_app(ratings_study, question=question)
    visitor = study_app.participant()
    trials = visitor.batch()["batch"]["trials"]
    shown = visitor.show(trials[0]["id"]).json
    assert shown["value"] == value and shown["labels"][0] == "cat" and shown["image"] is None
    assert visitor.get(f"/pictures/{trials[0]['id']}/image").status == 404
    assert [visitor.answer(trials[0]["id"], value=value).status for value in (0, 11, 10)] == [422, 422, 200]
    visitor.show(trials[1]["id"])
    last = visitor.answer(trials[1]["id"], value=1)
    assert last.json["batch_complete"]
    # Where nothing can lie inside, every whole batch counts.
    assert study_app.store.batches()["valid"].to_list() == [1]


def test_an_invitation_is_one_participant_on_any_browser(make_study_app, clicks_study):
    study_app = make_study_app(clicks_study, open_link=False)
    assert study_app.visitor().get("/").status == 403
    links = make_invitation_links(study_app.study.secret, "http://x", count=2, expires=study_app.now + 60)
    first, second = (link.removeprefix("http://x") for link in links)
    for link in (first, second, first):
        assert study_app.visitor().join(link).status == 303
    assert study_app.store.participants().height == 2
    known = study_app.visitor()
    known.join(second)
    study_app.now += 61
    assert study_app.visitor().get(first).status == known.get(first).status == 403
    # Too old to join by, but the one who did goes on with it.
    assert known.get(second).headers["location"] == "/work"


def test_without_consent_there_is_no_participant(study_app):
    for agree in ("", "no", "YES"):
        assert study_app.visitor().join(agree=agree).status == 422
    assert study_app.store.participants().height == 0


def test_a_browser_that_is_known_goes_on(study_app):
    visitor = study_app.participant()
    assert visitor.get("/").headers["location"] == "/work"
    # From another site's link the cookie comes only with the form.
    stranger = study_app.visitor()
    page = stranger.get("/")
    stranger.cookies |= visitor.cookies | stranger.cookies
    fields = {"agree": "yes", "token": "", "csrf": page.text.partition('name="csrf" value="')[2][:32]}
    assert stranger.form("/join", fields).status == 303
    assert study_app.store.participants().height == 1


def test_the_code_is_for_those_who_did_something(study_app):
    visitor = study_app.participant()
    participant = whose(study_app)
    code = derive_completion_code(study_app.study.secret, participant)
    for trial in visitor.batch()["batch"]["trials"]:
        assert code not in visitor.get("/done").text and visitor.get("/api/state").json["code"] is None
        visitor.show(trial["id"])
        study_app.now += PHASES
        visitor.answer(trial["id"], x=1.0, y=1.0)
    assert code in visitor.get("/done").text


def test_another_device_gets_another_batch(study_app):
    visitor = study_app.participant("pc")
    first = visitor.batch()["batch"]
    assert visitor.batch()["batch"] == first
    assert visitor.post("/api/device", {"device": "mobile"}).status == 200
    second = visitor.batch()["batch"]
    assert second["id"] != first["id"]
    assert visitor.show(first["trials"][0]["id"]).error == "returned"
    assert set(study_app.store.batches()["device"].to_list()) == {"pc", "mobile"}


def test_a_device_that_the_study_does_not_want(make_study_app, clicks_study):
    visitor = make_study_app(clicks_study, devices=("pc",)).visitor()
    visitor.join()
    refused = visitor.post("/api/device", {"device": "mobile"})
    assert (refused.status, refused.error) == (409, "needs-pc")


def test_a_pause_keeps_the_batch(study_app):
    visitor, other = study_app.participant(), study_app.participant()
    first = visitor.batch()["batch"]["trials"][0]["id"]
    visitor.show(first)
    study_app.now += PHASES
    assert visitor.answer(first, x=1.0, y=1.0).status == 200
    batch = visitor.batch()["batch"]
    study_app.now += 1700
    assert visitor.post("/api/pause", {}).json == {"paused": True}
    study_app.now += 1700
    other.batch()
    assert visitor.batch()["batch"] == batch
