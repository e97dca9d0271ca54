"""Batches that nobody goes on with go back, judged by what they have."""

import pytest
from collect_people import RULES, arrive, assert_counts_are_true, click, some_items

from hardlook.collect.store.records import BatchRules, NewAnswer, Refusal
from hardlook.collect.store.store import Store


@pytest.fixture
def store(database_url):
    with Store.open(database_url) as opened:
        opened.prepare(some_items(10), ("pc",), "f")
        yield opened


def test_a_batch_goes_back_after_its_time_and_not_before(store, database_url):
    person = arrive(store)
    trial = store.next_batch(person, RULES, 100.0).trials[0]
    assert store.return_abandoned(1800.0, 1899.0) == 0
    assert store.return_abandoned(1800.0, 1900.0) == 1
    assert store.return_abandoned(1800.0, 1900.0) == 0
    for work in (
        lambda: store.answer(person, click("key", trial), RULES.needed, 1901.0),
        lambda: store.show(person, trial.id, 1901.0),
    ):
        with pytest.raises(Refusal) as refusal:
            work()
        assert refusal.value.code == "returned"
    assert store.batches().select("state", "valid", "closed").row(0) == ("returned", False, 1900.0)
    assert store.progress()["pending"].sum() == 0
    assert store.trial(person, trial.id).state == "returned"
    assert_counts_are_true(database_url)


@pytest.mark.parametrize("sign", ["show", "answer", "touch", "next_batch"])
def test_every_sign_of_life_keeps_a_batch(store, sign):
    person = arrive(store)
    trial = store.next_batch(person, RULES, 0.0).trials[0]
    {
        "show": lambda: store.show(person, trial.id, 1000.0),
        "answer": lambda: store.answer(person, click("key", trial), RULES.needed, 1000.0),
        "touch": lambda: store.touch(person, 1000.0),
        "next_batch": lambda: store.next_batch(person, RULES, 1000.0),
    }[sign]()
    assert store.return_abandoned(1800.0, 2799.0) == 0
    assert store.return_abandoned(1800.0, 2800.0) == 1


@pytest.mark.parametrize(("answered", "valid"), [(6, False), (7, True), (9, True)])
def test_what_was_answered_is_judged_against_the_whole_batch(store, database_url, answered, valid):
    person = arrive(store)
    for trial in store.next_batch(person, RULES, 0.0).trials[:answered]:
        store.answer(person, click(trial.id, trial), RULES.needed, 1.0)
    assert store.return_abandoned(1800.0, 5000.0) == 1
    assert store.batches().select("state", "valid").row(0) == ("returned", valid)
    assert store.progress()["valid"].sum() == (answered if valid else 0)
    assert_counts_are_true(database_url)


def test_the_share_that_must_lie_inside_can_be_another(store):
    person = arrive(store)
    for trial in store.next_batch(person, RULES, 0.0).trials[:2]:
        store.answer(person, click(trial.id, trial), RULES.needed, 1.0)
    store.return_abandoned(1800.0, 5000.0, needed=lambda clicks: clicks // 5)
    assert store.progress()["valid"].sum() == 2


def test_ratings_of_a_batch_that_went_back_count(store):
    person = arrive(store)
    trial = store.next_batch(person, RULES, 0.0).trials[0]
    store.answer(person, NewAnswer("key", trial.id, value=3), RULES.needed, 1.0)
    store.return_abandoned(1800.0, 5000.0)
    assert store.progress()["valid"].sum() == 1


def test_what_goes_back_is_given_to_the_next(store, database_url):
    rules = BatchRules(size=10, target=1, most_batches=9, return_after=1800.0)
    first, second = arrive(store), arrive(store)
    given = store.next_batch(first, rules, 0.0)
    assert store.next_batch(second, rules, 1.0) is None
    again = store.next_batch(second, rules, 1801.0)
    assert {trial.item for trial in again.trials} == {trial.item for trial in given.trials}
    # Each subject once, ever: the first has seen them all.
    assert store.next_batch(first, rules, 5000.0) is None
    assert_counts_are_true(database_url, target=1)
