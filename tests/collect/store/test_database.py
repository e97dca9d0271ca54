"""Transactions: whole or not at all, done again where that helps, and reads that keep nobody waiting."""

import sqlite3
import threading

import pytest
from collect_people import RULES, arrive, do_batch, some_items
from sqlalchemy import select, text

from hardlook.collect.store import database as database_module
from hardlook.collect.store.addresses import address_of
from hardlook.collect.store.database import Database
from hardlook.collect.store.shared_commits import Conflict
from hardlook.collect.store.store import Store
from hardlook.collect.store.tables import FACTS
from hardlook.errors import DataError


@pytest.fixture
def database(database_url):
    with Store.open(database_url) as store:
        store.prepare([], (), "f")
    opened = Database(address_of(database_url))
    yield opened
    opened.close()


def names(connection):
    return set(connection.scalars(select(FACTS.c.name)))


def test_what_raises_leaves_nothing(database):
    def work(connection):
        connection.execute(FACTS.insert(), {"name": "half", "value": ""})
        raise KeyError("whatever")

    with pytest.raises(KeyError, match="whatever"):
        database.write(work)
    assert "half" not in database.read(names)


def test_a_conflict_is_tried_again_and_then_told(database):
    calls = []

    def work(connection, failures):
        calls.append(1)
        connection.execute(FACTS.insert(), {"name": f"n{len(calls)}", "value": ""})
        if len(calls) <= failures:
            raise Conflict
        return "done"

    assert database.write(lambda connection: work(connection, 2)) == "done"
    assert {name for name in database.read(names) if name.startswith("n")} == {"n3"}
    with pytest.raises(DataError, match="cannot be used"):
        database.write(lambda connection: work(connection, 10**6))


def test_a_long_read_sees_one_moment_and_keeps_no_writer_waiting(database):
    def work(connection):
        before = names(connection)
        database.write(lambda other: other.execute(FACTS.insert(), {"name": "meanwhile", "value": ""}))
        return before, names(connection)

    before, after = database.read(work)
    assert before == after and "meanwhile" not in after
    assert "meanwhile" in database.read(names)


def test_a_deadlock_is_tried_again(postgres_url):
    # Two transactions that take two rows in opposite order; PostgreSQL ends one of them after a second.
    one = Database(address_of(postgres_url))
    one.write(lambda connection: connection.execute(text("CREATE TABLE pair (id int PRIMARY KEY, n int)")))
    one.write(lambda connection: connection.execute(text("INSERT INTO pair VALUES (1, 0), (2, 0)")))
    met = threading.Barrier(2, timeout=10)

    raise_row = text("UPDATE pair SET n = n + 1 WHERE id = :id")
    first_tries = [(1, 2), (2, 1)]

    def raise_both(order):
        def work(connection):
            connection.execute(raise_row, {"id": order[0]})
            if order in first_tries:
                first_tries.remove(order)
                met.wait()
            connection.execute(raise_row, {"id": order[1]})

        one.write(work)

    threads = [threading.Thread(target=raise_both, args=(order,)) for order in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.read(lambda connection: connection.scalars(text("SELECT n FROM pair ORDER BY id")).all()) == [2, 2]
    one.write(lambda connection: connection.execute(text("DROP TABLE pair")))
    one.close()


def test_a_lost_connection_is_made_anew(postgres_url):
    database = Database(address_of(postgres_url))
    own = text("SELECT pg_backend_pid()")
    first = database.read(lambda connection: connection.scalar(own))
    end = text("SELECT pg_terminate_backend(:pid)")
    other = Database(address_of(postgres_url))
    other.write(lambda connection: connection.execute(end, {"pid": first}))
    assert database.write(lambda connection: connection.scalar(own)) != first
    other.close()
    database.close()


def test_sqlite_writes_ahead_and_in_full(tmp_path):
    database = Database(address_of(f"sqlite:///{tmp_path}/a.sqlite"))
    asked = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    for work in (database.read, database.write):
        # 2 is FULL.
        assert [work(lambda c, name=name: c.exec_driver_sql(f"PRAGMA {name}").scalar()) for name in asked] == [
            "wal",
            2,
            1,
            30_000,
        ]
    database.close()


def test_a_write_asks_for_its_turn_at_the_start(tmp_path):
    path = tmp_path / "a.sqlite"
    database = Database(address_of(f"sqlite:///{path}"))

    def other_writer_is_kept_out(connection):
        other = sqlite3.connect(path, timeout=0)
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            return "locked" in str(error)
        finally:
            other.close()
        return False

    # Before anything was written by this transaction.
    assert database.write(other_writer_is_kept_out)
    assert not database.read(other_writer_is_kept_out)
    database.close()


def test_a_file_that_stays_locked_is_told_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.01)
    path = tmp_path / "a.sqlite"
    with Store.open(f"sqlite:///{path}") as store:
        store.prepare(some_items(10), ("pc",), "f")
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(DataError, match="locked") as refused:
            store.join(None, "en", 0.0)
        assert "another program" in refused.value.remedy
        assert store.participants().height == 0
        holder.execute("ROLLBACK")
        holder.close()
        assert do_batch(store, arrive(store), RULES).batch_complete
