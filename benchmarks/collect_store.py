"""Storing answers: how many a second and how long one waits, against bare inserts of the same durability.

Run `python benchmarks/collect_store.py [--database URL] [--people N] [--threads N]`. Each of the people gets a batch of
ten before the clock starts. Then a server's threads store all answers, one transaction each, batches closed and
progress moved with the last. The peer inserts the same rows, one transaction each, and does nothing else: through
`sqlite3` with a write-ahead log and synchronous FULL, or through psycopg. Both are on disk before they return. The peer
has one connection and one thread; the store is measured with one thread and with many. Without `--database` a SQLite
file in a temporary folder is used. On PostgreSQL name a database that may be thrown away. Processor time is this
process's alone, an answer; other work on the machine hardly changes it.
"""

import argparse
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hardlook.collect.store.database import parse_address
from hardlook.collect.store.records import BatchRules, NewAnswer
from hardlook.collect.store.store import Store
from hardlook.collect.study.tasks import Item

ITEMS = [Item(f"t{n:06d}.cut-out", f"t{n:06d}", "cut-out", f"image-{n}") for n in range(1000)]
RULES = BatchRules(size=10, target=1_000_000, most_batches=1_000_000, return_after=1e9)
COLUMNS = ("key", "trial", "person", "item", "device", "x", "y", "inside", "near", "early", "durations", "received")
Work = Callable[[], object]


def handed_out(store: Store, people: int) -> list[list[Work]]:
    """The answers of each person's batch, ready to be stored."""
    works: list[list[Work]] = []
    for number in range(people):
        person = store.join(None, "en", time.time()).id
        store.set_device(person, ("pc", "mobile")[number % 2], time.time())
        batch = store.next_batch(person, RULES, time.time())
        assert batch is not None
        answers = [
            NewAnswer(trial.id, trial.id, x=12.5, y=7.25, inside=True, near=True, durations={"image": 1500.2})
            for trial in batch.trials
        ]
        works.append([_stored(store, person, answer) for answer in answers])
    return works


def _stored(store: Store, person: str, answer: NewAnswer) -> Work:
    return lambda: store.answer(person, answer, RULES.needed, time.time())


def timed(works: Sequence[Sequence[Work]], threads: int) -> tuple[float, float, list[float]]:
    """Seconds and processor seconds for all, and seconds of each; a person's answers come one after the other."""
    waiting, seconds = list(works), []

    def serve() -> None:
        while True:
            try:
                mine = waiting.pop()
            except IndexError:
                return
            for work in mine:
                start = time.perf_counter()
                work()
                seconds.append(time.perf_counter() - start)

    start, used = time.perf_counter(), time.process_time()
    serving = [threading.Thread(target=serve) for _ in range(threads)]
    for thread in serving:
        thread.start()
    for thread in serving:
        thread.join()
    return time.perf_counter() - start, time.process_time() - used, seconds


def bare(url: str, folder: Path, count: int) -> list[list[Work]]:
    """Inserts of the same rows in transactions of their own, through the driver alone."""
    sqlite = url.startswith("sqlite")
    connection: Any
    if sqlite:
        connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    else:
        import psycopg

        address = parse_address(url).set(drivername="postgresql")
        connection = psycopg.connect(address.render_as_string(hide_password=False), autocommit=True)
    kinds = ", ".join(f"{name} {'float' if name in 'xy' else 'text'}" for name in COLUMNS[1:])
    connection.execute("DROP TABLE IF EXISTS bare")
    connection.execute(f"CREATE TABLE bare (key text PRIMARY KEY, {kinds})")
    insert = f"INSERT INTO bare VALUES ({', '.join(['?' if sqlite else '%s'] * len(COLUMNS))})"

    def one(number: int) -> Work:
        key = f"{number:032x}"
        values = (key, key, key, "t000001", "pc", 12.5, 7.25, "1", "1", "0", '{"image": 1500.2}', str(time.time()))

        def work() -> None:
            connection.execute("BEGIN IMMEDIATE" if sqlite else "BEGIN")
            connection.execute(insert, values)
            connection.execute("COMMIT")

        return work

    return [[one(number) for number in range(count)]]


def line(name: str, total: float, used: float, seconds: list[float]) -> float:
    """Print a row; answers a second."""
    rate = len(seconds) / total
    median, late, worst = np.percentile(seconds, [50, 99, 100]) * 1000
    print(f"{name:<28}{rate:>10.0f}{median:>12.2f}{late:>10.2f}{worst:>10.2f}{used / len(seconds) * 1000:>14.2f}")
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", default="")
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--threads", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        url = given.database or f"sqlite:///{folder / 'answers.sqlite'}"
        with Store.open(url) as store:
            store.prepare(ITEMS, ("pc", "mobile"), "benchmark")
            print(f"{'':<28}{'answers/s':>10}{'median ms':>12}{'p99 ms':>10}{'worst ms':>10}{'processor ms':>14}")
            peer = line("bare inserts, 1 thread", *timed(bare(url, folder, given.people * 10), 1))
            alone = line("store, 1 thread", *timed(handed_out(store, given.people), 1))
            crowd = line(f"store, {given.threads} threads", *timed(handed_out(store, given.people), given.threads))
        print(f"of the peer's rate: {alone / peer:.2f} with 1 thread, {crowd / peer:.2f} with {given.threads}")


if __name__ == "__main__":
    main()
