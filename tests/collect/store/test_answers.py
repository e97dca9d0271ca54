"""Answers: stored once, judged with the last of their batch, refused where they cannot be."""

import json

import pytest
from collect_people import RULES, arrive, assert_counts_are_true, click, do_batch, some_items

from hardlook.collect.store.records import NewAnswer, Refusal, Stored
from hardlook.collect.store.store import Store


@pytest.fixture
def store(database_url):
    with Store.open(database_url) as opened:
        opened.prepare(some_items(10), ("pc",), "f")
        yield opened


def refused(store, person, new):
    with pytest.raises(Refusal) as refusal:
        store.answer(person, new, RULES.needed, 5.0)
    return refusal.value.code


def test_every_field_is_stored_as_it_came(store):
    person = arrive(store)
    trial = store.next_batch(person, RULES, 1.0).trials[2]
    store.show(person, trial.id, 1.5)
    new = NewAnswer(
        "a-key", trial.id, 0.1 + 0.2, 1e-300, True, False, 7, 3, 512.25, {"image": 1500.5}, {"pointer": "pen"}
    )
    assert store.answer(person, new, RULES.needed, 2.5) == Stored(False, False, None, 1, 10)
    row = store.answers().row(0, named=True)
    assert (row["key"], row["assignment"], row["participant"]) == ("a-key", trial.id, person)
    assert (row["item"], row["task"], row["mode"], row["subject"], row["device"]) == (
        trial.item.id,
        trial.item.task,
        "",
        trial.item.subject,
        "pc",
    )
    assert (row["x"], row["y"], row["inside"], row["near"], row["value"]) == (0.1 + 0.2, 1e-300, True, False, 7)
    assert (row["early"], row["reaction_ms"], row["received"]) == (3, 512.25, 2.5)
    assert json.loads(row["durations"]) == {"image": 1500.5}
    assert json.loads(row["circumstances"]) == {"pointer": "pen"}
    assert (row["batch_number"], row["batch_state"], row["batch_valid"]) == (1, "open", None)
    assert (row["position"], row["shows"]) == (2, 1)


def test_the_same_key_again_changes_nothing(store):
    person = arrive(store)
    trial = store.next_batch(person, RULES, 1.0).trials[0]
    store.answer(person, click("k", trial), RULES.needed, 2.0)
    before = store.answers()
    assert store.answer(person, click("k", trial, inside=False), RULES.needed, 3.0) == Stored(True, False, None, 1, 10)
    assert store.answers().equals(before)


def test_the_last_answer_again_tells_the_same(store):
    person = arrive(store)
    trials = store.next_batch(person, RULES, 1.0).trials
    last = do_batch(store, person)
    assert last == Stored(False, True, True, 10, 10)
    again = store.answer(person, click(f"key-{trials[-1].id}", trials[-1]), RULES.needed, 3.0)
    assert again == Stored(True, True, True, 10, 10)


def test_refusals_name_their_reason(store):
    person, other = arrive(store), arrive(store)
    trials = store.next_batch(person, RULES, 1.0).trials
    others = store.next_batch(other, RULES, 1.0).trials
    store.answer(person, click("k", trials[0]), RULES.needed, 2.0)
    assert refused(store, person, click("k2", trials[0])) == "already-answered"
    assert refused(store, person, click("k", trials[1])) == "key-used"
    assert refused(store, other, click("k", others[0])) == "key-used"
    assert refused(store, person, click("k3", others[0])) == "unknown-trial"
    assert refused(store, person, NewAnswer("k4", "no-such-trial")) == "unknown-trial"
    assert refused(store, "nobody", click("k5", trials[1])) == "unknown-participant"
    assert store.answers()["key"].to_list() == ["k"]
    with pytest.raises(Refusal) as shown:
        store.show(person, trials[0].id, 3.0)
    assert shown.value.code == "already-answered"


@pytest.mark.parametrize(("inside", "valid"), [(6, False), (7, True), (10, True)])
def test_seven_of_ten_inside_make_a_batch_count(store, database_url, inside, valid):
    person = arrive(store)
    assert do_batch(store, person, inside=lambda position: position < inside).batch_valid is valid
    assert store.progress()["valid"].sum() == (inside if valid else 0)
    assert store.batches().select("state", "valid", "trials", "answered").row(0) == ("complete", valid, 10, 10)
    assert_counts_are_true(database_url)


def test_a_click_near_the_object_counts_in_a_batch_that_does(store, database_url):
    person = arrive(store)
    trials = store.next_batch(person, RULES, 1.0).trials
    for trial in trials:
        stored = store.answer(
            person, click(trial.id, trial, trial.position >= 3, trial.position >= 1), RULES.needed, 2.0
        )
    assert stored.batch_valid
    assert store.progress()["valid"].sum() == 9
    assert_counts_are_true(database_url)


def test_ratings_have_no_inside_and_count(store, database_url):
    person = arrive(store)
    for trial in store.next_batch(person, RULES, 1.0).trials:
        stored = store.answer(person, NewAnswer(trial.id, trial.id, value=4), RULES.needed, 2.0)
    assert stored.batch_valid
    assert store.progress()["valid"].sum() == 10
    assert_counts_are_true(database_url)
