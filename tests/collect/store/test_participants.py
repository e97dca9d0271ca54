"""Deleting a participant: nothing of them stays but a number that nobody else gets, and all counts are true."""

import contextlib
import random
import threading
from pathlib import Path

import pytest
from collect_people import RULES, arrive, assert_counts_are_true, at_once, click, do_batch, rows, some_items

from hardlook.collect.store.records import Refusal
from hardlook.collect.store.store import Store

TABLES = ("participants", "batches", "assignments", "answers", "practice", "platform_ids", "facts")


@pytest.fixture
def store(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(30), ("pc", "mobile"), "f")
        yield store


def test_nothing_of_a_participant_stays(store, database_url):
    others = [arrive(store, device, now=float(number)) for number, device in enumerate(("pc", "mobile"))]
    who = store.join("their-invitation", "en", 2.0, {"PROLIFIC_PID": "their-number"}).id
    store.set_device(who, "pc", 2.0)
    store.show_practice(who, "training-0", 2.0)
    store.set_rules({"participants": [who, "3", others[0]], "least_answers": 2})
    for person in (*others, who):
        do_batch(store, person, now=3.0)
    # Nobody's code yet: a batch that was begun, one that changed hands, and one that does not count.
    begun = store.next_batch(who, RULES, 4.0)
    store.answer(who, click("their-key", begun.trials[0]), RULES.needed, 5.0)
    before = store.progress()["valid"].sum()
    assert store.delete_participant(who) == 3
    assert store.progress()["valid"].sum() == before - 10 and store.progress()["pending"].sum() == 0
    for table, found in zip(TABLES, rows(database_url, *TABLES), strict=True):
        for row in found:
            values = " ".join(map(str, row.values()))
            assert not any(word in values for word in (who, "their-invitation", "their-number", "their-key")), table
    assert_counts_are_true(database_url)
    assert store.rules() == {"participants": [others[0]], "least_answers": 2}
    assert store.participant(who) is None and store.count_deleted() == 1
    with pytest.raises(Refusal, match="no such participant"):
        store.answer(who, click("late", begun.trials[1]), RULES.needed, 6.0)
    with pytest.raises(Refusal, match="no such participant"):
        store.delete_participant(who)


@pytest.mark.parametrize("id", ["", "x", "\0", "é" * 40, "' OR 1=1 --"])
def test_an_id_of_nobody_deletes_nobody(store, id):
    arrive(store)
    with pytest.raises(Refusal, match="no such participant"):
        store.delete_participant(id)
    assert store.participants().height == 1


def test_numbers_stay_when_others_join_or_are_deleted(store):
    # In the order of joining, whatever their ids.
    people = [arrive(store, now=float(number)) for number in range(6)]

    def numbers():
        return dict(store.participants().select("id", "number").iter_rows())

    assert numbers() == {who: number for number, who in enumerate(people, 1)}
    assert [store.delete_participant(people[place]) for place in (1, 4, 5, 0)] == [2, 5, 6, 1]
    assert numbers() == {people[2]: 3, people[3]: 4}
    last = arrive(store, now=10.0)
    assert numbers() == {people[2]: 3, people[3]: 4, last: 7}


def test_their_tasks_go_to_others(store, database_url):
    rules = RULES.__class__(size=10, target=1, most_batches=20, return_after=1800.0)
    first, second = arrive(store), arrive(store, now=1.0)
    while do_batch(store, first, rules) is not None:
        pass
    assert store.next_batch(second, rules, 1.0) is None
    store.delete_participant(first)
    assert len(store.next_batch(second, rules, 2.0).trials) == 10
    assert_counts_are_true(database_url, target=1)


def test_a_batch_that_was_returned_half_done(store, database_url):
    """Its valid answers count, the others were given back already."""
    who = arrive(store)
    batch = store.next_batch(who, RULES, 0.0)
    for trial in batch.trials[:8]:
        store.answer(who, click(f"k{trial.position}", trial, near=trial.position != 3), RULES.needed, 1.0)
    store.return_abandoned(10.0, 100.0)
    assert store.progress()["valid"].sum() == 7
    assert_counts_are_true(database_url)
    store.delete_participant(who)
    assert store.progress()["valid"].sum() == 0
    assert_counts_are_true(database_url)


def test_a_clock_that_is_set_back_changes_no_number(store):
    """Rules, exported files and deletion name people by number: it must not become another person's."""
    first = arrive(store, now=1000.0)
    second = arrive(store, now=500.0)
    third = arrive(store, now=750.0)
    assert store.participants().select("id", "number").rows() == [(first, 1), (second, 2), (third, 3)]
    assert store.delete_participant(second) == 2
    last = arrive(store, now=10.0)
    assert store.participants().select("id", "number").rows() == [(first, 1), (third, 3), (last, 4)]


def test_people_who_join_at_once_have_different_numbers(store):
    people = at_once([lambda: store.join(None, "en", 5.0).id for _ in range(24)])
    table = store.participants()
    assert table["number"].to_list() == list(range(1, 25)) and set(table["id"]) == set(people)


def test_people_are_deleted_while_they_work(store, database_url):
    people = [arrive(store, ("pc", "mobile")[number % 2], float(number)) for number in range(8)]
    started = threading.Barrier(len(people) + 1)

    def work(who):
        started.wait()
        with contextlib.suppress(Refusal):
            while do_batch(store, who, now=20.0) is not None:
                pass

    threads = [threading.Thread(target=work, args=(who,)) for who in people]
    for thread in threads:
        thread.start()
    started.wait()
    gone = random.Random(0).sample(people, 4)
    assert {store.delete_participant(who) for who in gone} == {people.index(who) + 1 for who in gone}
    for thread in threads:
        thread.join()
    assert_counts_are_true(database_url)
    assert set(store.participants()["id"]) == set(people) - set(gone)
    assert not {row["participant"] for row in rows(database_url, "answers")[0]} & set(gone)


def test_a_file_does_not_keep_what_was_deleted(tmp_path):
    file = tmp_path / "answers.sqlite"
    with Store.open(f"sqlite:///{file}") as store:
        store.prepare(some_items(30), ("pc",), "f")
        who = store.join("their-invitation", "en", 2.0).id
        store.set_device(who, "pc", 2.0)
        do_batch(store, who, now=3.0)
        store.delete_participant(who)
    content = b"".join(Path(path).read_bytes() for path in tmp_path.iterdir())
    assert who.encode() not in content and b"their-invitation" not in content
