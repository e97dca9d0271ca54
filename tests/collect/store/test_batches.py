"""Participants and batches, by hand-made examples on both databases: who gets which items, what is returned when."""

from collections import Counter

import pytest
from collect_people import RULES, arrive, assert_counts_are_true, click, do_batch, some_items

from hardlook.collect.store.batches import choose_neediest
from hardlook.collect.store.records import BatchRules, NewAnswer, Refusal
from hardlook.collect.store.store import Store
from hardlook.collect.study.tasks import Item


@pytest.fixture
def store(database_url):
    with Store.open(database_url) as opened:
        yield opened


def subjects(batch):
    return [trial.item.subject for trial in batch.trials]


def test_the_open_batch_goes_on_until_it_is_answered(store):
    store.prepare(some_items(30), ("pc",), "f")
    person = arrive(store)
    first = store.next_batch(person, RULES, 1.0)
    assert (first.number, first.state, first.device, len(first.trials)) == (1, "open", "pc", 10)
    assert [trial.position for trial in first.trials] == list(range(10))
    assert store.next_batch(person, RULES, 2.0) == first
    store.answer(person, click("key", first.trials[0]), RULES.needed, 3.0)
    going_on = store.next_batch(person, RULES, 4.0)
    assert [trial.state for trial in going_on.trials] == ["answered"] + ["assigned"] * 9
    do_batch(store, person)
    second = store.next_batch(person, RULES, 5.0)
    assert second.number == 2 and not set(subjects(second)) & set(subjects(first))


def test_items_with_the_fewest_answers_come_first(store, database_url):
    store.prepare(some_items(12), ("pc",), "f")
    rules = BatchRules(size=4, target=25, most_batches=20, return_after=1800.0)
    counts = Counter()
    for _ in range(9):
        batch = store.next_batch(arrive(store), rules, 0.0)
        for subject in subjects(batch):
            counts[subject] += 1
        levels = [counts[f"image-{n}"] for n in range(12)]
        assert max(levels) - min(levels) <= 1
    assert set(levels) == {3}
    assert_counts_are_true(database_url)


def test_clicks_of_a_batch_that_does_not_count_are_asked_for_again(store):
    store.prepare(some_items(2), ("pc",), "f")
    rules = BatchRules(size=1, target=1, most_batches=9, return_after=1800.0)
    first = store.next_batch(arrive(store), rules, 0.0)
    bad = arrive(store)
    stored = do_batch(store, bad, rules, inside=lambda position: False)
    assert stored.batch_valid is False
    again = store.next_batch(arrive(store), rules, 0.0)
    assert subjects(again) == [name for name in ("image-0", "image-1") if name != subjects(first)[0]]
    # The other place is taken, and the bad one saw the rest already.
    assert store.next_batch(bad, rules, 0.0) is None


def test_devices_are_balanced(store):
    store.prepare(some_items(8), ("pc", "mobile"), "f")
    rules = BatchRules(size=4, target=2, most_batches=20, return_after=1800.0)
    on_pc = store.next_batch(arrive(store, "pc"), rules, 0.0)
    # Nothing on a phone yet, so all devices together decide: what the PC did not get.
    on_phone = store.next_batch(arrive(store, "mobile"), rules, 0.0)
    assert not set(subjects(on_pc)) & set(subjects(on_phone))
    for device in ("pc", "mobile"):
        while store.next_batch(arrive(store, device), rules, 0.0):
            pass
    both = store.progress().group_by("device").agg(pending=("pending")).to_dicts()
    assert {row["device"]: set(row["pending"]) for row in both} == {"pc": {2}, "mobile": {2}}


def test_of_a_subject_s_modes_a_participant_gets_one(store, database_url):
    modes = ("text", "cut-out", "silhouette")
    store.prepare(some_items(6, modes), ("pc",), "f")
    rules = BatchRules(size=4, target=1, most_batches=20, return_after=1800.0)
    for _ in range(3):
        person, seen = arrive(store), []
        while (batch := store.next_batch(person, rules, 0.0)) is not None:
            seen += subjects(batch)
            do_batch(store, person, rules)
        assert sorted(seen) == [f"image-{n}" for n in range(6)]
    assert store.progress()["valid"].to_list() == [1] * 18
    assert_counts_are_true(database_url, target=1)


def test_nothing_beyond_the_most_batches(store):
    store.prepare(some_items(30), ("pc",), "f")
    rules = BatchRules(size=5, target=25, most_batches=2, return_after=1800.0)
    person = arrive(store)
    assert do_batch(store, person, rules).batch_complete and do_batch(store, person, rules).batch_complete
    assert store.next_batch(person, rules, 7.0) is None
    assert store.next_batch(person, rules, 8.0) is None
    assert store.participant(person).finished == 7.0
    done = store.tally(person)
    assert (done.answered, done.complete, done.batches) == (10, 2, 2)


def test_a_short_batch_that_is_complete_counts_as_one(store):
    store.prepare(some_items(10), ("pc",), "f")
    rules = BatchRules(size=6, target=1, most_batches=1, return_after=1800.0)
    store.next_batch(arrive(store), rules, 0.0)
    person = arrive(store)
    assert do_batch(store, person, rules).of == 4
    # The six are free again, and this one has done their batch.
    assert store.return_abandoned(1800.0, 2000.0) == 1
    assert store.next_batch(person, rules, 2001.0) is None


def test_a_batch_that_went_back_does_not_use_up_the_most_batches(store):
    store.prepare(some_items(30), ("pc",), "f")
    rules = BatchRules(size=5, target=25, most_batches=1, return_after=1800.0)
    person = arrive(store)
    store.next_batch(person, rules, 0.0)
    assert store.return_abandoned(1800.0, 2000.0) == 1
    assert store.next_batch(person, rules, 2001.0).number == 2


def test_half_done_batches_add_up_to_the_most(store):
    store.prepare(some_items(30), ("pc",), "f")
    rules = BatchRules(size=2, target=25, most_batches=2, return_after=100.0)
    person = arrive(store)
    for turn in range(4):
        trial = store.next_batch(person, rules, 1000.0 * turn).trials[0]
        store.answer(person, click(f"key-{turn}", trial), rules.needed, 1000.0 * turn)
        store.return_abandoned(100.0, 1000.0 * turn + 500.0)
    assert store.next_batch(person, rules, 9000.0) is None


def test_going_on_with_another_device_gives_the_batch_back(store, database_url):
    store.prepare(some_items(30), ("pc", "mobile"), "f")
    person = arrive(store, "pc")
    first = store.next_batch(person, RULES, 1.0)
    store.answer(person, click("key", first.trials[0]), RULES.needed, 2.0)
    store.set_device(person, "mobile", 3.0)
    second = store.next_batch(person, RULES, 3.0)
    assert (second.device, second.number) == ("mobile", 2)
    assert not set(subjects(first)) & set(subjects(second))
    assert store.batches()["state"].to_list() == ["returned", "open"]
    assert store.progress().filter(device="pc")["pending"].sum() == 0
    assert_counts_are_true(database_url)


def test_participants_differ_in_what_they_get_first():
    items = {name: Item(name, name, "", name) for name in (f"t{n}" for n in range(50))}
    counts = [(name, 0, 0) for name in items]
    orders = [choose_neediest(counts, items, taken=(), participant=f"p{n}", size=50) for n in range(40)]
    assert len({tuple(order) for order in orders}) == 40
    # Each item's mean place over participants is near the middle, as of a fair draw: 24.5, deviation 14.4 / sqrt 40.
    places = [sum(order.index(name) for order in orders) / 40 for name in items]
    assert max(abs(place - 24.5) for place in places) < 4 * 14.43 / 40**0.5


def test_need_on_the_device_comes_before_need_on_all():
    items = {name: Item(name, name, "", name) for name in "abc"}
    counts = [("a", 1, 1), ("b", 0, 5), ("c", 0, 4)]
    assert choose_neediest(counts, items, taken=(), participant="p", size=3) == ["c", "b", "a"]
    assert choose_neediest(counts, items, taken={"c"}, participant="p", size=1) == ["b"]


@pytest.fixture
def returning_store(database_url):
    with Store.open(database_url) as opened:
        opened.prepare(some_items(10), ("pc",), "f")
        yield opened


def test_a_batch_goes_back_after_its_time_and_not_before(returning_store, database_url):
    person = arrive(returning_store)
    trial = returning_store.next_batch(person, RULES, 100.0).trials[0]
    assert returning_store.return_abandoned(1800.0, 1899.0) == 0
    assert returning_store.return_abandoned(1800.0, 1900.0) == 1
    assert returning_store.return_abandoned(1800.0, 1900.0) == 0
    for work in (
        lambda: returning_store.answer(person, click("key", trial), RULES.needed, 1901.0),
        lambda: returning_store.show(person, trial.id, 1901.0),
    ):
        with pytest.raises(Refusal) as refusal:
            work()
        assert refusal.value.code == "returned"
    assert returning_store.batches().select("state", "valid", "closed").row(0) == ("returned", False, 1900.0)
    assert returning_store.progress()["pending"].sum() == 0
    assert returning_store.trial(person, trial.id).state == "returned"
    assert_counts_are_true(database_url)


@pytest.mark.parametrize("sign", ["show", "answer", "touch", "next_batch"])
def test_every_sign_of_life_keeps_a_batch(returning_store, sign):
    person = arrive(returning_store)
    trial = returning_store.next_batch(person, RULES, 0.0).trials[0]
    {
        "show": lambda: returning_store.show(person, trial.id, 1000.0),
        "answer": lambda: returning_store.answer(person, click("key", trial), RULES.needed, 1000.0),
        "touch": lambda: returning_store.touch(person, 1000.0),
        "next_batch": lambda: returning_store.next_batch(person, RULES, 1000.0),
    }[sign]()
    assert returning_store.return_abandoned(1800.0, 2799.0) == 0
    assert returning_store.return_abandoned(1800.0, 2800.0) == 1


@pytest.mark.parametrize(("answered", "valid"), [(6, False), (7, True), (9, True)])
def test_what_was_answered_is_judged_against_the_whole_batch(returning_store, database_url, answered, valid):
    person = arrive(returning_store)
    for trial in returning_store.next_batch(person, RULES, 0.0).trials[:answered]:
        returning_store.answer(person, click(trial.id, trial), RULES.needed, 1.0)
    assert returning_store.return_abandoned(1800.0, 5000.0) == 1
    assert returning_store.batches().select("state", "valid").row(0) == ("returned", valid)
    assert returning_store.progress()["valid"].sum() == (answered if valid else 0)
    assert_counts_are_true(database_url)


def test_the_share_that_must_lie_inside_can_be_another(returning_store):
    person = arrive(returning_store)
    for trial in returning_store.next_batch(person, RULES, 0.0).trials[:2]:
        returning_store.answer(person, click(trial.id, trial), RULES.needed, 1.0)
    returning_store.return_abandoned(1800.0, 5000.0, needed=lambda clicks: clicks // 5)
    assert returning_store.progress()["valid"].sum() == 2


def test_ratings_of_a_batch_that_went_back_count(returning_store):
    person = arrive(returning_store)
    trial = returning_store.next_batch(person, RULES, 0.0).trials[0]
    returning_store.answer(person, NewAnswer("key", trial.id, value=3), RULES.needed, 1.0)
    returning_store.return_abandoned(1800.0, 5000.0)
    assert returning_store.progress()["valid"].sum() == 1


def test_what_goes_back_is_given_to_the_next(returning_store, database_url):
    rules = BatchRules(size=10, target=1, most_batches=9, return_after=1800.0)
    first, second = arrive(returning_store), arrive(returning_store)
    given = returning_store.next_batch(first, rules, 0.0)
    assert returning_store.next_batch(second, rules, 1.0) is None
    again = returning_store.next_batch(second, rules, 1801.0)
    assert {trial.item for trial in again.trials} == {trial.item for trial in given.trials}
    # Each subject once, ever: the first has seen them all.
    assert returning_store.next_batch(first, rules, 5000.0) is None
    assert_counts_are_true(database_url, target=1)
