"""A server's process in miniature: people join, take batches and answer; every acknowledged key is a line of output.

Its arguments are URL NAME PEOPLE ITEMS SIZE TARGET BATCHES.
"""

import sys
import threading

from collect_people import click, some_items

from hardlook.collect.store.records import BatchRules
from hardlook.collect.store.store import Store

THREADS = 4


def main(url, name, people, items, size, target, batches):
    """Work through all people, a few at a time, as a server's threads do."""
    rules = BatchRules(int(size), int(target), int(batches), return_after=1800.0)
    waiting = [f"{name}-{number}" for number in range(int(people))]
    with Store.open(url) as store:
        # Every process prepares: servers may start at once.
        store.prepare(some_items(int(items)), ("pc", "mobile"), "f")
        threads = [threading.Thread(target=serve, args=(store, rules, waiting)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def serve(store, rules, waiting):
    """Serve people until none is waiting."""
    while waiting:
        try:
            invitation = waiting.pop()
        except IndexError:
            return
        person = store.join(invitation, "en", 0.0).id
        store.set_device(person, ("pc", "mobile")[sum(invitation.encode()) % 2], 0.0)
        while (batch := store.next_batch(person, rules, 0.0)) is not None:
            for trial in batch.trials:
                store.show(person, trial.id, 0.0)
                key = f"{invitation}-{batch.number}-{trial.position}"
                store.answer(person, click(key, trial, trial.position > 0), rules.needed, 0.0)
                # One write, so that lines of threads do not mix.
                sys.stdout.write(key + "\n")
                sys.stdout.flush()
