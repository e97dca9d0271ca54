"""Participants and batches, by hand-made examples on both databases: who gets which items, what is returned when.

Answers are stored once, judged with the last of their batch, and refused where they cannot be stored.
"""

import json
from collections import Counter

import pytest
from collect_people import RULES, arrive, assert_counts_are_true, at_once, click, do_batch, rows, some_items

from hardlook.collect.store.batches import choose_neediest
from hardlook.collect.store.records import BatchRules, NewAnswer, Practice, Refusal, Stored
from hardlook.collect.store.store import Store
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.tasks import CHECK_SUBJECT, Item


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
    assert (first.number, first.device, len(first.trials)) == (1, "pc", 10)
    assert store.batches()["state"].to_list() == ["open"]
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
def prepared_store(database_url):
    with Store.open(database_url) as opened:
        opened.prepare(some_items(10), ("pc",), "f")
        yield opened


def test_a_batch_goes_back_after_its_time_and_not_before(prepared_store, database_url):
    person = arrive(prepared_store)
    trial = prepared_store.next_batch(person, RULES, 100.0).trials[0]
    assert prepared_store.return_abandoned(1800.0, 1899.0) == 0
    assert prepared_store.return_abandoned(1800.0, 1900.0) == 1
    assert prepared_store.return_abandoned(1800.0, 1900.0) == 0
    for work in (
        lambda: prepared_store.answer(person, click("key", trial), RULES.needed, 1901.0),
        lambda: prepared_store.show(person, trial.id, 1901.0),
    ):
        with pytest.raises(Refusal) as refusal:
            work()
        assert refusal.value.code == "returned"
    assert prepared_store.batches().select("state", "valid", "closed").row(0) == ("returned", False, 1900.0)
    assert prepared_store.progress()["pending"].sum() == 0
    assert prepared_store.trial(person, trial.id).state == "returned"
    assert_counts_are_true(database_url)


@pytest.mark.parametrize("sign", ["show", "answer", "touch", "next_batch"])
def test_every_sign_of_life_keeps_a_batch(prepared_store, sign):
    person = arrive(prepared_store)
    trial = prepared_store.next_batch(person, RULES, 0.0).trials[0]
    {
        "show": lambda: prepared_store.show(person, trial.id, 1000.0),
        "answer": lambda: prepared_store.answer(person, click("key", trial), RULES.needed, 1000.0),
        "touch": lambda: prepared_store.touch(person, 1000.0),
        "next_batch": lambda: prepared_store.next_batch(person, RULES, 1000.0),
    }[sign]()
    assert prepared_store.return_abandoned(1800.0, 2799.0) == 0
    assert prepared_store.return_abandoned(1800.0, 2800.0) == 1


@pytest.mark.parametrize(("answered", "valid"), [(6, False), (7, True), (9, True)])
def test_what_was_answered_is_judged_against_the_whole_batch(prepared_store, database_url, answered, valid):
    person = arrive(prepared_store)
    for trial in prepared_store.next_batch(person, RULES, 0.0).trials[:answered]:
        prepared_store.answer(person, click(trial.id, trial), RULES.needed, 1.0)
    assert prepared_store.return_abandoned(1800.0, 5000.0) == 1
    assert prepared_store.batches().select("state", "valid").row(0) == ("returned", valid)
    assert prepared_store.progress()["valid"].sum() == (answered if valid else 0)
    assert_counts_are_true(database_url)


def test_the_share_that_must_lie_inside_can_be_another(prepared_store):
    person = arrive(prepared_store)
    for trial in prepared_store.next_batch(person, RULES, 0.0).trials[:2]:
        prepared_store.answer(person, click(trial.id, trial), RULES.needed, 1.0)
    prepared_store.return_abandoned(1800.0, 5000.0, needed=lambda clicks: clicks // 5)
    assert prepared_store.progress()["valid"].sum() == 2


def test_ratings_of_a_batch_that_went_back_count(prepared_store):
    person = arrive(prepared_store)
    trial = prepared_store.next_batch(person, RULES, 0.0).trials[0]
    prepared_store.answer(person, NewAnswer("key", trial.id, value=3), RULES.needed, 1.0)
    prepared_store.return_abandoned(1800.0, 5000.0)
    assert prepared_store.progress()["valid"].sum() == 1


def test_what_goes_back_is_given_to_the_next(prepared_store, database_url):
    rules = BatchRules(size=10, target=1, most_batches=9, return_after=1800.0)
    first, second = arrive(prepared_store), arrive(prepared_store)
    given = prepared_store.next_batch(first, rules, 0.0)
    assert prepared_store.next_batch(second, rules, 1.0) is None
    again = prepared_store.next_batch(second, rules, 1801.0)
    assert {trial.item for trial in again.trials} == {trial.item for trial in given.trials}
    # Each subject once, ever: the first has seen them all.
    assert prepared_store.next_batch(first, rules, 5000.0) is None
    assert_counts_are_true(database_url, target=1)


def refused(store, person, new):
    with pytest.raises(Refusal) as refusal:
        store.answer(person, new, RULES.needed, 5.0)
    return refusal.value.code


def test_every_field_is_stored_as_it_came(prepared_store):
    person = arrive(prepared_store)
    trial = prepared_store.next_batch(person, RULES, 1.0).trials[2]
    prepared_store.show(person, trial.id, 1.5)
    new = NewAnswer(
        "a-key", trial.id, 0.1 + 0.2, 1e-300, True, False, 7, 3, 512.25, {"image": 1500.5}, {"pointer": "pen"}
    )
    assert prepared_store.answer(person, new, RULES.needed, 2.5) == Stored(False, False, None, 1, 10)
    row = prepared_store.answers().row(0, named=True)
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


def test_the_same_key_again_changes_nothing(prepared_store):
    person = arrive(prepared_store)
    trial = prepared_store.next_batch(person, RULES, 1.0).trials[0]
    prepared_store.answer(person, click("k", trial), RULES.needed, 2.0)
    before = prepared_store.answers()
    assert prepared_store.answer(person, click("k", trial, inside=False), RULES.needed, 3.0) == Stored(
        True, False, None, 1, 10
    )
    assert prepared_store.answers().equals(before)


def test_the_last_answer_again_tells_the_same(prepared_store):
    person = arrive(prepared_store)
    trials = prepared_store.next_batch(person, RULES, 1.0).trials
    last = do_batch(prepared_store, person)
    assert last == Stored(False, True, True, 10, 10)
    again = prepared_store.answer(person, click(f"key-{trials[-1].id}", trials[-1]), RULES.needed, 3.0)
    assert again == Stored(True, True, True, 10, 10)


def test_refusals_name_their_reason(prepared_store):
    person, other = arrive(prepared_store), arrive(prepared_store)
    trials = prepared_store.next_batch(person, RULES, 1.0).trials
    others = prepared_store.next_batch(other, RULES, 1.0).trials
    prepared_store.answer(person, click("k", trials[0]), RULES.needed, 2.0)
    assert refused(prepared_store, person, click("k2", trials[0])) == "already-answered"
    assert refused(prepared_store, person, click("k", trials[1])) == "key-used"
    assert refused(prepared_store, other, click("k", others[0])) == "key-used"
    assert refused(prepared_store, person, click("k3", others[0])) == "unknown-trial"
    assert refused(prepared_store, person, NewAnswer("k4", "no-such-trial")) == "unknown-trial"
    assert refused(prepared_store, "nobody", click("k5", trials[1])) == "unknown-participant"
    assert prepared_store.answers()["key"].to_list() == ["k"]
    with pytest.raises(Refusal) as shown:
        prepared_store.show(person, trials[0].id, 3.0)
    assert shown.value.code == "already-answered"


@pytest.mark.parametrize(("inside", "valid"), [(6, False), (7, True), (10, True)])
def test_seven_of_ten_inside_make_a_batch_count(prepared_store, database_url, inside, valid):
    person = arrive(prepared_store)
    assert do_batch(prepared_store, person, inside=lambda position: position < inside).batch_valid is valid
    assert prepared_store.progress()["valid"].sum() == (inside if valid else 0)
    assert prepared_store.batches().select("state", "valid", "trials", "answered").row(0) == ("complete", valid, 10, 10)
    assert_counts_are_true(database_url)


def test_a_click_near_the_object_counts_in_a_batch_that_does(prepared_store, database_url):
    person = arrive(prepared_store)
    trials = prepared_store.next_batch(person, RULES, 1.0).trials
    for trial in trials:
        stored = prepared_store.answer(
            person, click(trial.id, trial, trial.position >= 3, trial.position >= 1), RULES.needed, 2.0
        )
    assert stored.batch_valid
    assert prepared_store.progress()["valid"].sum() == 9
    assert_counts_are_true(database_url)


def test_ratings_have_no_inside_and_count(prepared_store, database_url):
    person = arrive(prepared_store)
    for trial in prepared_store.next_batch(person, RULES, 1.0).trials:
        stored = prepared_store.answer(person, NewAnswer(trial.id, trial.id, value=4), RULES.needed, 2.0)
    assert stored.batch_valid
    assert prepared_store.progress()["valid"].sum() == 10
    assert_counts_are_true(database_url)


def checks(count):
    return [Item(f"check-{n}", f"check-{n}", "", f"{CHECK_SUBJECT}{n}") for n in range(count)]


def test_a_check_is_added_to_every_batch_and_counts_for_nothing(store, database_url):
    store.prepare([*some_items(8), *checks(2)], ("pc",), "f")
    rules = BatchRules(size=4, target=3, most_batches=20, return_after=1800.0, checks=1)
    person = arrive(store)
    had = []
    for number in range(2):
        batch = store.next_batch(person, rules, 0.0)
        found = [trial.item.id for trial in batch.trials if trial.item.is_check]
        assert len(batch.trials) == 5 and len(found) == 1
        had += found
        for trial in batch.trials:
            # Every check is missed, and so is one click of four: three of four are needed.
            wrong = trial.item.is_check or trial.position == (1 if batch.trials[0].item.is_check else 0)
            store.answer(person, click(f"key-{trial.id}", trial, inside=not wrong), rules.needed, 0.0)
        assert store.batches()["valid"].to_list() == [True] * (number + 1)
    assert sorted(had) == ["check-0", "check-1"]
    assert store.answers().height == 8 and store.check_answers()["near"].to_list() == [False, False]
    assert store.progress().height == 8 and store.progress()["valid"].sum() == 6
    # All eight subjects were seen: a check alone is no batch, and answers to checks are not work that is wanted.
    assert store.next_batch(person, rules, 1.0) is None
    for _ in range(4):
        do_batch(store, arrive(store), rules)
        do_batch(store, arrive(store), rules)
    assert store.devices_with_work(rules, 2.0) == set() and not store.wants_answers(rules)
    assert_counts_are_true(database_url)


def test_work_is_left_until_every_item_is_awaited_or_answered(store):
    store.prepare(some_items(4), ("pc", "mobile"), "f")
    rules = BatchRules(size=4, target=1, most_batches=2, return_after=1800.0, return_unanswered=300.0)
    assert store.devices_with_work(rules, 0.0) == {"pc", "mobile"}
    person = arrive(store)
    batch = store.next_batch(person, rules, 0.0)
    assert store.devices_with_work(rules, 299.0) == {"mobile"} and store.wants_answers(rules)
    # Nothing was answered: it goes back, however active the participant is.
    store.touch(person, 299.0)
    assert store.devices_with_work(rules, 300.0) == {"pc", "mobile"}
    other = arrive(store, now=300.0)
    batch = store.next_batch(other, rules, 300.0)
    store.answer(other, click("one", batch.trials[0]), rules.needed, 310.0)
    assert store.devices_with_work(rules, 2109.0) == {"mobile"}
    assert store.devices_with_work(rules, 2110.0) == {"pc", "mobile"}


def test_a_batch_in_no_time_does_not_count_and_earns_nothing(store):
    store.prepare(some_items(6), ("pc",), "f")
    settings = StudySettings(kind="clicks", title="T", batch_size=3)
    rules = BatchRules.of(settings)
    person = arrive(store)
    for number, seconds in enumerate((5.3, 15.0)):
        batch = store.next_batch(person, rules, 0.0)
        for trial in batch.trials:
            store.show(person, trial.id, 100.0)
        for trial in batch.trials:
            answer = click(f"key-{trial.id}", trial)
            store.answer(person, answer, rules.needed, 100.0 + seconds, rules.is_too_quick)
        assert store.count_earned(person, rules) == number
    assert store.batches()["valid"].to_list() == [False, True] and store.progress()["valid"].sum() == 3
    assert store.count_earned(person, RULES) == 2 and store.count_earned("nobody", rules) == 0


def test_practice_and_platform_ids(store):
    store.prepare(some_items(1), ("pc",), "f")
    ids = {"PROLIFIC_PID": "5f1a", "STUDY_ID": "s"}
    person = store.join(None, "en", 1.0, ids)
    assert store.join(None, "de", 2.0, {"PROLIFIC_PID": "5f1a"}) == person == store.person("5f1a")
    assert store.join(None, "en", 3.0, {"PROLIFIC_PID": "other"}) != person and store.person("nobody") is None
    assert store.platform_ids_of(person.id) == ids and store.platform_ids_of("nobody") == {}
    assert store.invited("x") is None and store.join("x", "en", 4.0) == store.invited("x")
    store.show_practice(person.id, "training-0", 10.0)
    store.answer_practice(person.id, "training-0", False, 15.0)
    store.show_practice(person.id, "training-0", 20.0)
    store.answer_practice(person.id, "training-0", True, 25.0)
    store.answer_practice(person.id, "training-0", False, 26.0)
    assert store.practice(person.id) == {"training-0": Practice("training-0", 20.0, 3, True)}
    with pytest.raises(Refusal, match="no such participant"):
        store.show_practice("nobody", "training-0", 1.0)
    with pytest.raises(Refusal, match="1 to 128"):
        store.join(None, "en", 1.0, {"PROLIFIC_PID": "a" * 129})


PLACES = BatchRules(size=2, target=1, most_batches=9, return_after=1800.0, reserve_after=300.0)


def test_a_place_is_kept_for_who_is_in_the_practice(store):
    store.prepare(some_items(4), ("pc",), "f")
    first, second = arrive(store, invitation="a"), arrive(store, now=1.0, invitation="b")
    # Four answers are two batches, and both are promised.
    assert store.devices_with_work(PLACES, 2.0) == set()
    assert store.devices_with_work(PLACES, 2.0, first) == store.devices_with_work(PLACES, 2.0, second) == {"pc"}
    assert len(store.next_batch(first, PLACES, 3.0).trials) == 2
    do_batch(store, first, PLACES, now=4.0)
    # A second batch would be the place of the other one, who still has it.
    assert store.devices_with_work(PLACES, 5.0) == set()
    assert store.next_batch(first, PLACES, 5.0) is None
    assert store.devices_with_work(PLACES, 5.0, second) == {"pc"}
    assert len(store.next_batch(second, PLACES, 6.0).trials) == 2


def test_a_place_is_kept_while_people_are_active_and_for_a_practice_at_most(store):
    store.prepare(some_items(2), ("pc", "mobile"), "f")
    person = arrive(store, invitation="a")
    assert store.devices_with_work(PLACES, 299.0) == {"mobile"}
    assert store.devices_with_work(PLACES, 301.0) == {"pc", "mobile"}
    store.touch(person, 290.0)
    assert store.devices_with_work(PLACES, 301.0) == {"mobile"}
    for minute in range(25):
        store.touch(person, 60.0 * minute)
    assert store.devices_with_work(PLACES, 1441.0) == {"pc", "mobile"}
    # Who has not chosen a device yet may choose either.
    store.join(None, "en", 1450.0, {"PROLIFIC_PID": "5f1a"})
    assert store.devices_with_work(PLACES, 1451.0) == set()


def test_an_open_link_keeps_no_place_so_that_nobody_can_hold_them_all(store):
    store.prepare(some_items(2), ("pc",), "f")
    for _ in range(20):
        arrive(store)
    assert store.devices_with_work(PLACES, 1.0) == {"pc"}
    assert BatchRules.of(StudySettings(kind="clicks", title="Cups")).reserve_after == 300.0


def test_attention_checks_are_no_places(store):
    checks = [Item(f"c{n}", f"c{n}", "", f"{CHECK_SUBJECT}{n}") for n in range(20)]
    store.prepare([*some_items(2), *checks], ("pc",), "f")
    arrive(store, invitation="a")
    assert store.devices_with_work(PLACES, 1.0) == set()


def addresses(url):
    return sorted(row["address"] for row in rows(url, "batch_addresses")[0])


def test_two_servers_share_the_limit_of_open_batches_per_address(database_url):
    rules = BatchRules(
        size=2, target=25, most_batches=5, return_after=1800.0, return_unanswered=300.0, most_per_address=2
    )
    with Store.open(database_url) as first, Store.open(database_url) as second:
        first.prepare(some_items(6), ("pc",), "f")
        second.prepare(some_items(6), ("pc",), "f")
        one, two, three = (arrive(store) for store in (first, second, first))
        held = first.next_batch(one, rules, 0.0, "a1b2")
        assert held and second.next_batch(two, rules, 0.0, "a1b2")
        for store in (first, second):
            with pytest.raises(Refusal, match="internet address") as refused:
                store.next_batch(three, rules, 1.0, "a1b2")
            assert refused.value.code == "address-busy"
        # Whoever has a batch keeps it; other addresses, and who is asked for none, are not concerned.
        assert second.next_batch(one, rules, 2.0, "a1b2") == held
        four, five = arrive(second), arrive(first)
        assert second.next_batch(four, rules, 2.0, "c3d4") and first.next_batch(five, rules, 2.0)
        assert addresses(database_url) == ["a1b2", "a1b2", "c3d4"]
        # A batch that is complete, returned or deleted makes room, and nothing of its address stays.
        do_batch(second, one, rules, 3.0)
        assert addresses(database_url) == ["a1b2", "c3d4"] and first.next_batch(three, rules, 3.0, "a1b2")
        second.delete_participant(three)
        assert addresses(database_url) == ["a1b2", "c3d4"]
        assert second.return_abandoned(1800.0, 4000.0) and addresses(database_url) == []
        assert_counts_are_true(database_url)
        # With nothing left for somebody, that is what they are told.
        do_batch(first, four, rules, 4000.0)
        busy = BatchRules(size=2, target=25, most_batches=1, return_after=1e6, most_per_address=1)
        assert first.next_batch(two, busy, 4001.0, "c3d4") and second.next_batch(four, busy, 4001.0, "c3d4") is None


def test_two_servers_at_once_give_an_address_no_more_than_its_limit(database_url):
    rules = BatchRules(size=2, target=25, most_batches=5, return_after=1800.0, most_per_address=3)
    with Store.open(database_url) as first, Store.open(database_url) as second:
        first.prepare(some_items(6), ("pc",), "f")
        second.prepare(some_items(6), ("pc",), "f")
        people = [arrive(first) for _ in range(10)]
        works = [
            lambda store=store, person=person: store.next_batch(person, rules, 1.0, "a1b2")
            for person, store in zip(people, [first, second] * 5, strict=True)
        ]
        refused = [result for result in at_once(works) if isinstance(result, Refusal)]
        assert [one.code for one in refused] == ["address-busy"] * 7
        assert addresses(database_url) == ["a1b2"] * 3


def test_of_an_address_only_a_few_characters_can_be_stored(store):
    store.prepare(some_items(2), ("pc",), "f")
    with pytest.raises(Refusal, match="address: expected 1 to 8 characters"):
        store.next_batch(arrive(store), RULES, 0.0, "203.0.113.77")
