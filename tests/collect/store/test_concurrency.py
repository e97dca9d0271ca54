"""Many threads at once, on both databases: what the constraints and transactions promise holds."""

from collections import Counter

from collect_people import RULES, arrive, assert_counts_are_true, at_once, click, do_batch, some_items

from hardlook.collect.store.records import BatchRules, Refusal
from hardlook.collect.store.store import Store


def test_one_invitation_from_twenty_threads_is_one_participant(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(1), ("pc",), "f")
        joined = at_once([lambda: store.join("invited", "en", 1.0)] * 20)
        assert len({someone.id for someone in joined}) == 1
        assert store.participants()["invitation"].to_list() == ["invited"]


def test_one_key_from_twenty_threads_is_one_answer(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(10), ("pc",), "f")
        person = arrive(store)
        trial = store.next_batch(person, RULES, 0.0).trials[0]
        stored = at_once([lambda: store.answer(person, click("the-key", trial), RULES.needed, 1.0)] * 20)
        assert Counter(result.repeated for result in stored) == {False: 1, True: 19}
        assert store.answers()["key"].to_list() == ["the-key"]


def test_twenty_keys_for_one_trial_are_one_answer_and_refusals(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(10), ("pc",), "f")
        person = arrive(store)
        trial = store.next_batch(person, RULES, 0.0).trials[0]
        works = [lambda key=f"key-{n}": store.answer(person, click(key, trial), RULES.needed, 1.0) for n in range(20)]
        results = at_once(works)
        refused = [result.code for result in results if isinstance(result, Refusal)]
        assert refused == ["already-answered"] * 19
        assert len(store.answers()) == 1


def test_two_who_use_one_key_are_one_answer_and_a_refusal(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(10), ("pc",), "f")
        people = [arrive(store), arrive(store)]
        trials = [store.next_batch(person, RULES, 0.0).trials[0] for person in people]
        works = [
            lambda person=person, trial=trial: store.answer(person, click("shared", trial), RULES.needed, 1.0)
            for person, trial in zip(people, trials, strict=True)
        ]
        results = at_once(works)
        assert [result.code for result in results if isinstance(result, Refusal)] == ["key-used"]
        assert len(store.answers()) == 1


def test_many_asking_for_one_participants_batch_get_the_same(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(40), ("pc",), "f")
        person = arrive(store)
        batches = at_once([lambda: store.next_batch(person, RULES, 1.0)] * 12)
        assert len(set(batches)) == 1
        assert len(store.batches()) == 1
        assert_counts_are_true(database_url)


def test_the_last_places_are_not_given_twice(database_url):
    rules = BatchRules(size=3, target=2, most_batches=9, return_after=1800.0)
    with Store.open(database_url) as store:
        store.prepare(some_items(4), ("pc",), "f")
        people = [arrive(store) for _ in range(12)]
        batches = at_once([lambda person=person: store.next_batch(person, rules, 1.0) for person in people])
        assert not [batch for batch in batches if isinstance(batch, Exception)]
        # Four items that two may have each: eight places, all given.
        assert sum(len(batch.trials) for batch in batches if batch) == 8
        assert_counts_are_true(database_url, target=2)


def test_an_answer_and_its_batch_going_back_at_once_leave_true_counts(database_url):
    with Store.open(database_url) as store:
        store.prepare(some_items(20), ("pc",), "f")
        for turn in range(6):
            person = arrive(store, now=10_000.0 * turn)
            trial = store.next_batch(person, RULES, 10_000.0 * turn).trials[0]
            late = 10_000.0 * turn + 5000.0
            new = click(f"key-{turn}", trial)
            answered, returned = at_once(
                [
                    lambda person=person, new=new, late=late: store.answer(person, new, RULES.needed, late),
                    lambda late=late: store.return_abandoned(1800.0, late),
                ]
            )
            assert (returned, getattr(answered, "code", "stored")) in {(0, "stored"), (1, "returned")}
            assert_counts_are_true(database_url)
            store.return_abandoned(0.0, late + 1.0)


def test_a_crowd_of_threads_keeps_every_promise(database_url):
    rules = BatchRules(size=5, target=4, most_batches=3, return_after=1800.0)
    with Store.open(database_url) as store:
        store.prepare(some_items(12, modes=("text", "cut-out")), ("pc", "mobile"), "f")
        people = [arrive(store, ("pc", "mobile")[n % 2]) for n in range(16)]

        def work(person):
            while do_batch(store, person, rules, inside=lambda position: position != 0) is not None:
                pass

        results = at_once([lambda person=person: work(person) for person in people])
        assert results == [None] * len(people)
        assert_counts_are_true(database_url, target=4)
        assert store.progress()["pending"].sum() == 0
        assert store.participants()["finished"].null_count() == 0
