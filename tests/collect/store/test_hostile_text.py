"""SQL, quotes, NULs and odd numbers in every field: stored as they are, or refused cleanly."""

import math

import pytest
from collect_people import RULES, arrive, assert_counts_are_true, some_items
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardlook.collect.store.records import NewAnswer, Refusal, check_integer, check_number, check_text, is_storable
from hardlook.collect.store.store import Store
from hardlook.collect.study.tasks import Item

STORED = ["'", '"', "';--", "a' OR 1=1", "$1", ":x", "%s", "?", "\\", "\n\t\x01", "<b>", "𝕏ü", "NULL", "{}"]

REFUSED = ["\0", "a\0b", "\ud800", "x\udfff", "", "y" * 65]

UNSTORABLE = [
    {"x": math.nan},
    {"y": math.inf},
    {"x": "1"},
    {"x": True},
    {"x": 10**400},
    {"value": 2**31},
    {"value": 1.5},
    {"early": -(2**40)},
    {"early": None},
    {"reaction_ms": -math.inf},
    {"durations": {"a": math.nan}},
    {"durations": {"a": object()}},
    {"circumstances": {"a": "x" * 20_000}},
    {"key": 5},
]


@pytest.fixture
def store(database_url):
    with Store.open(database_url) as opened:
        opened.prepare(
            [*some_items(10), *(Item(text, text, text, text) for text in STORED)], ("pc", "'; DROP"), "'; DROP --"
        )
        yield opened


def refused(work, *arguments):
    with pytest.raises(Refusal) as refusal:
        work(*arguments)
    return refusal.value.code


def test_items_are_handed_out_as_they_are_named(store):
    rules = RULES.__class__(100, 25, 20, 1800.0)
    person = arrive(store, "'; DROP")
    given_out = {trial.item for trial in store.next_batch(person, rules, 0.0).trials}
    assert {Item(text, text, text, text) for text in STORED} <= given_out


def test_text_of_participants_is_stored_or_refused(store):
    for text in STORED:
        someone = store.join(text, text, 0.0)
        assert store.join(text, "en", 0.0) == store.participant(someone.id) == someone
        store.set_language(someone.id, text, 1.0)
        assert store.participant(someone.id).language == text
    assert sorted(store.participants()["invitation"]) == sorted(STORED)
    for text in REFUSED:
        assert refused(store.join, text, "en", 0.0) == "bad-value"
        assert refused(store.join, None, text, 0.0) == "bad-value"
        assert refused(store.set_language, someone.id, text, 0.0) == "bad-value"


def test_text_of_answers_is_stored_or_refused(store, database_url):
    person = arrive(store)
    trials = iter(store.next_batch(person, RULES.__class__(100, 25, 20, 1800.0), 0.0).trials)
    for text in STORED:
        trial = next(trials)
        new = NewAnswer(text, trial.id, durations={text: text}, circumstances={"a": [text, "\0", "\ud800"]})
        assert not store.answer(person, new, RULES.needed, 1.0).repeated
        assert store.answer(person, new, RULES.needed, 1.0).repeated
    trial = next(trials)
    for text in REFUSED:
        assert refused(store.answer, person, NewAnswer(text, trial.id), RULES.needed, 1.0) == "bad-value"
    assert sorted(store.answers()["key"]) == sorted(STORED)
    assert_counts_are_true(database_url)


def test_ids_that_nobody_has_are_unknown(store):
    person = arrive(store)
    for text in (*STORED, *REFUSED, None, 3, b"x"):
        unknown(store, person, text)


def unknown(store, person, text):
    assert store.participant(text) is None
    assert store.trial(person, text) is None and store.trial(text, person) is None
    assert store.tally(text).batches == 0
    assert refused(store.touch, text, 0.0) == "unknown-participant"
    assert refused(store.show, person, text, 0.0) == "unknown-trial"
    assert refused(store.answer, person, NewAnswer("key", text), RULES.needed, 0.0) == "unknown-trial"
    assert refused(store.answer, text, NewAnswer("key", "t"), RULES.needed, 0.0) == "unknown-participant"
    assert refused(store.set_device, person, text, 0.0) == "unknown-device"
    assert refused(store.next_batch, text, RULES, 0.0) == "unknown-participant"


def test_numbers_and_json_that_cannot_be_stored_are_refused(store):
    person = arrive(store)
    trial = store.next_batch(person, RULES, 0.0).trials[0]
    for fields in UNSTORABLE:
        new = NewAnswer(**{"key": "key", "trial": trial.id, **fields})
        assert refused(store.answer, person, new, RULES.needed, 1.0) == "bad-value", fields
    assert store.answers().height == 0


def test_a_time_that_is_none_is_refused(store):
    assert refused(store.join, None, "en", math.nan) == "bad-value"
    assert refused(store.touch, arrive(store), math.inf) == "bad-value"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(codec=None), max_size=70))
def test_any_text_comes_back_as_it_went_or_is_refused(store, text):
    if is_storable(text, 16):
        someone = store.join(text, text, 0.0)
        assert (store.participant(someone.id).invitation, someone.language) == (text, text)
    else:
        assert refused(store.join, text, text, 0.0) == "bad-value"


@given(st.floats())
def test_finite_numbers_pass_and_others_do_not(value):
    if math.isfinite(value) and abs(value) <= 1e300:
        assert check_number("x", value) == value
    else:
        assert refused(check_number, "x", value) == "bad-value"


@given(st.integers())
def test_whole_numbers_of_32_bits_pass(value):
    if abs(value) < 2**31:
        assert check_integer("value", value) == value
    else:
        assert refused(check_integer, "value", value) == "bad-value"


def test_lengths_are_counted_in_characters():
    assert check_text("name", "ü" * 16, 16) == "ü" * 16
    assert refused(check_text, "name", "ü" * 17, 16) == "bad-value"
