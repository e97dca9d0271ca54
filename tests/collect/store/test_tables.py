"""Tables and items: created once, extended later, never mixed up with another study's."""

import pytest
from collect_people import RULES, arrive, assert_counts_are_true, at_once, do_batch, some_items

from hardlook.collect.store.store import Store
from hardlook.collect.study.tasks import Item
from hardlook.errors import DataError


def test_preparing_again_changes_nothing(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(10), ("pc",), "f")
        do_batch(store, arrive(store))
        before = store.progress()
        store.prepare(some_items(10), ("pc",), "f")
        assert store.progress().equals(before)
        assert before["valid"].sum() == 10


def test_servers_that_start_at_once_make_one_set_of_tables(database_url):
    def serve():
        with Store.open(database_url) as store:
            store.prepare(some_items(30), ("pc", "mobile"), "f")
            return len(store.progress())

    assert at_once([serve] * 6) == [60] * 6


def test_other_tasks_are_refused_and_the_remedy_named(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(3), ("pc",), "one")
        with pytest.raises(DataError, match="answers to other tasks") as refused:
            store.prepare(some_items(4), ("pc",), "other")
        assert "another database" in refused.value.remedy
        assert len(store.progress()) == 3


def test_a_mode_or_device_that_came_later_is_added_and_one_that_went_is_not_handed_out(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(4, modes=("text",)), ("pc",), "f")
        store.prepare(some_items(4, modes=("cut-out",)), ("pc", "mobile"), "f")
        assert len(store.progress()) == 4 + 8
        batch = store.next_batch(arrive(store, "mobile"), RULES, 0.0)
        assert {trial.item.mode for trial in batch.trials} == {"cut-out"}
        assert {trial.item.mode for trial in store.next_batch(arrive(store), RULES, 0.0).trials} == {"cut-out"}
    assert_counts_are_true(database_url)


def test_a_second_process_need_not_prepare(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(4), ("pc",), "f")
    with Store.open(database_url) as store:
        assert len(store.next_batch(arrive(store), RULES, 0.0).trials) == 4


@pytest.mark.parametrize(
    "item",
    [Item("i" * 65, "t", "", "s"), Item("i", "t", "", "s\0"), Item("i", "t", "", "\ud800"), Item("", "t", "", "s")],
)
def test_an_item_that_cannot_be_stored_is_named(database_url, item):
    with Store.open(database_url) as store, pytest.raises(DataError, match="an item that cannot be stored"):
        store.prepare([item], ("pc",), "f")


def test_reading_before_anything_was_served_gives_empty_tables(database_url):
    with Store.open(database_url) as store:
        for frame in (store.progress(), store.participants(), store.batches(), store.answers()):
            assert frame.height == 0 and frame.width > 5
        assert store.rules() == {}
        with pytest.raises(DataError, match="no study was ever served"):
            store.next_batch("x", RULES, 0.0)
