"""Participants and their lives, on both databases."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from collect_people import RULES, arrive, do_batch, some_items
from sqlalchemy import text

from hardlook.collect.store.records import BatchRules, Refusal, Tally
from hardlook.collect.store.store import Store
from hardlook.collect.study.settings import StudySettings
from hardlook.errors import DataError


@pytest.fixture
def store(database_url):
    with Store.open(database_url) as opened:
        opened.prepare(some_items(20), ("pc", "mobile"), "f")
        yield opened


def refused(work, *arguments):
    """The code of the refusal that a call ends in."""
    with pytest.raises(Refusal) as refusal:
        work(*arguments)
    return refusal.value.code


def test_an_invitation_joins_once_and_an_open_link_anew(store):
    first = store.join("a", "en", 1.0)
    assert store.join("a", "de", 2.0) == first == store.participant(first.id)
    strangers = {store.join(None, "en", 3.0).id for _ in range(3)}
    assert len(strangers | {first.id}) == 4
    assert (first.joined, first.seen, first.device, first.trained, first.finished) == (1.0, 1.0, None, None, None)


def test_ids_are_random_and_long(store):
    ids = [store.join(None, "en", 0.0).id for _ in range(20)]
    # 128 bits in hexadecimal.
    assert all(len(id) == 32 and set(id) <= set("0123456789abcdef") for id in ids)


def test_language_device_training_and_signs_of_life(store):
    someone = store.join(None, "en", 1.0)
    store.set_language(someone.id, "de", 2.0)
    store.set_device(someone.id, "mobile", 3.0)
    store.set_trained(someone.id, 4.0)
    store.set_trained(someone.id, 5.0)
    store.touch(someone.id, 6.0)
    now = store.participant(someone.id)
    assert (now.language, now.device, now.trained, now.seen, now.joined) == ("de", "mobile", 4.0, 6.0, 1.0)


def test_nobody_knows_a_stranger(store):
    assert store.participant("nobody") is None
    assert store.tally("nobody") == Tally(0, 0, 0)
    for work in (store.touch, store.set_trained):
        assert refused(work, "nobody", 1.0) == "unknown-participant"
    assert refused(store.set_device, "nobody", "pc", 1.0) == "unknown-participant"
    assert refused(store.next_batch, "nobody", RULES, 1.0) == "unknown-participant"


def test_a_device_must_be_one_of_the_study(store):
    someone = store.join(None, "en", 1.0)
    assert refused(store.set_device, someone.id, "any", 2.0) == "unknown-device"
    assert refused(store.next_batch, someone.id, RULES, 2.0) == "no-device"


def test_another_ones_trial_cannot_be_seen_shown_or_answered(store):
    mine, other = arrive(store), arrive(store)
    trial = store.next_batch(mine, RULES, 1.0).trials[0]
    assert store.trial(mine, trial.id) == trial
    assert store.trial(other, trial.id) is None
    assert refused(store.show, other, trial.id, 2.0) == "unknown-trial"
    assert store.trial(mine, trial.id).shows == 0


def test_showings_are_counted(store):
    person = arrive(store)
    trial = store.next_batch(person, RULES, 1.0).trials[3]
    assert [store.show(person, trial.id, 2.0 + n).shows for n in range(3)] == [1, 2, 3]
    assert store.next_batch(person, RULES, 9.0).trials[3].shows == 3


def test_rules_of_exclusion_are_kept_as_set(store):
    assert store.rules() == {}
    for rules in ({"least_inside": 0.5, "participants": ["ü'"]}, {"least_answers": 3}):
        store.set_rules(rules)
        assert store.rules() == rules


def test_rules_of_a_study_s_settings():
    settings = StudySettings(kind="clicks", title="t", batch_size=4, least_inside=0.5, return_after_minutes=2)
    rules = BatchRules.of(settings)
    assert (rules.size, rules.target, rules.most_batches, rules.return_after) == (4, 25, 20, 120.0)
    assert rules.needed(4) == 2


def test_one_snapshot_is_what_the_first_read_saw(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(10), ("pc",), "f")
        who = arrive(store)
        with store.one_snapshot():
            assert store.answers().height == 0
            with ThreadPoolExecutor(1) as other:
                other.submit(do_batch, store, who).result()
                assert other.submit(store.answers).result().height == 10
            assert store.answers().height == 0 and store.progress()["valid"].sum() == 0
            # A write of its own is a transaction of its own.
            store.touch(who, 1.0)
        assert store.answers().height == 10
        with pytest.raises(DataError, match="cannot be used"), store.one_snapshot():
            store._database.read(lambda connection: connection.execute(text("SELECT * FROM nothing")))
        assert store.answers().height == 10
