"""People who take part in a study, and a recount of what the store keeps count of."""

import threading
from collections import Counter

from sqlalchemy import text

from hardlook.collect.store.database import Database, parse_address
from hardlook.collect.store.records import BatchRules, NewAnswer, Refusal
from hardlook.collect.study.tasks import Item

RULES = BatchRules(size=10, target=25, most_batches=20, return_after=1800.0)


def some_items(count, modes=("",)):
    """Items of `count` subjects, one a mode."""
    return [Item(f"t{n}.{mode}", f"t{n}", mode, f"image-{n}") for n in range(count) for mode in modes]


def arrive(store, device="pc", now=0.0, invitation=None):
    """Somebody new, with a device; their id."""
    someone = store.join(invitation, "en", now)
    store.set_device(someone.id, device, now)
    return someone.id


def click(key, trial, inside=True, near=None):
    """A click's answer."""
    return NewAnswer(key, trial.id, x=1.5, y=2.5, inside=inside, near=inside if near is None else near)


def do_batch(store, person, rules=RULES, now=0.0, inside=lambda position: True):
    """Take a batch and answer all of it; what the last answer gave, or None when nothing was left."""
    batch = store.next_batch(person, rules, now)
    if batch is None:
        return None
    stored = None
    for trial in batch.trials:
        if trial.state == "assigned":
            new = click(f"key-{trial.id}", trial, inside(trial.position))
            stored = store.answer(person, new, rules.needed, now)
    return stored


def rows(url, *tables):
    """All rows of some tables as dicts, past the store and all of one moment."""
    database = Database(parse_address(url))
    found = database.read(
        lambda connection: [
            [dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()] for table in tables
        ]
    )
    database.close()
    return found


def assert_counts_are_true(url, target=None):
    """Progress equals what counting trials and answers one by one gives, and no promise is broken."""
    found = rows(url, "batches", "answers", "assignments", "progress")
    batches = {row["id"]: row for row in found[0]}
    answers = {row["assignment"]: row for row in found[1]}
    assignments, progress = found[2:]
    pending, valid = Counter(), Counter()
    for trial in assignments:
        batch = batches[trial["batch"]]
        where = (trial["item"], batch["device"])
        given = answers.get(trial["id"])
        assert (given is not None) == (trial["state"] == "answered")
        if batch["state"] == "open":
            pending[where] += 1
            assert trial["state"] != "returned"
        elif given is not None and batch["valid"] and given["near"] != 0:
            valid[where] += 1
        assert trial["state"] != "assigned" or batch["state"] == "open"
    for row in progress:
        where = (row["item"], row["device"])
        assert (row["pending"], row["valid"]) == (pending[where], valid[where]), where
        assert target is None or row["pending"] + row["valid"] <= target, where
    seen = Counter((trial["participant"], trial["subject"]) for trial in assignments)
    assert max(seen.values(), default=0) <= 1
    opened = Counter(batch["participant"] for batch in batches.values() if batch["state"] == "open")
    assert max(opened.values(), default=0) <= 1
    held = Counter(trial["batch"] for trial in assignments)
    assert set(held) == set(batches)


def at_once(works):
    """Call all of these at the same moment, each in a thread; what they gave or raised, in their order."""
    gate = threading.Barrier(len(works))
    results = [None] * len(works)

    def run(index, work):
        gate.wait()
        try:
            results[index] = work()
        except Refusal as refusal:
            results[index] = refusal
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
