"""Addresses without passwords, transactions that are whole or retried, and writes that share a commit."""

import shutil
import sqlite3
import sys
import threading
import time
from contextlib import closing

import pytest
from collect_people import RULES, arrive, do_batch, some_items
from sqlalchemy import create_engine, event, select, text
from sqlalchemy.exc import OperationalError

from hardlook.collect.store import database as database_module
from hardlook.collect.store.database import Conflict, Database, GroupCommit, format_address, parse_address
from hardlook.collect.store.store import Store
from hardlook.collect.store.tables import FACTS
from hardlook.errors import DataError, MissingExtra

SECRET = "s3cr:t/@ü"

QUOTED = "s3cr%3At%2F%40%C3%BC"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_all_spellings_of_postgresql_mean_psycopg(scheme):
    address = parse_address(f"{scheme}://ann:{QUOTED}@db:5433/study")
    assert (address.drivername, address.host, address.port, address.password) == (
        "postgresql+psycopg",
        "db",
        5433,
        SECRET,
    )
    assert format_address(address) == "postgresql+psycopg://ann:***@db:5433/study"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "cannot be read"),
        ("nonsense", "cannot be read"),
        (f"postgresql://ann:{QUOTED}@db:port/study", "cannot be read"),
        (f"mysql://ann:{QUOTED}@db/study", "'mysql' is not supported"),
        (f"postgresql+asyncpg://ann:{QUOTED}@db/study", "is not supported"),
        ("sqlite://", "would forget"),
        ("sqlite:///:memory:", "would forget"),
    ],
)
def test_other_addresses_are_refused_without_showing_them(url, words):
    with pytest.raises(DataError, match=words) as refused:
        parse_address(url)
    assert "s3cr" not in str(refused.value) and "sqlite:///PATH" in refused.value.remedy
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{QUOTED}@127.0.0.1:1/study",
        f"postgresql://ann@127.0.0.1:1/study?password={QUOTED}",
        # What is no integer is quoted by the driver, so a password in the wrong place would be shown.
        f"postgresql://ann:{QUOTED}@127.0.0.1:1/study?connect_timeout={QUOTED}",
    ],
)
def test_a_server_that_cannot_be_reached_is_named_and_the_password_is_not(url):
    pytest.importorskip("psycopg")
    with pytest.raises(DataError, match="cannot be used") as refused:
        Store.open(url)
    error = refused.value
    assert "127.0.0.1:1/study" in error.file and "PostgreSQL runs" in error.remedy
    assert "s3cr" not in str(error)
    assert error.__suppress_context__


def test_without_psycopg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"hardlook\[postgres\]"):
        Store.open("postgresql://ann@db/study")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match="unable to open") as refused:
        Store.open(f"sqlite:///{tmp_path}/nowhere/answers.sqlite")
    assert "nowhere" in refused.value.remedy and "writable" in refused.value.remedy


def test_a_file_that_cannot_be_written_is_told_in_words(tmp_path):
    path = tmp_path / "answers.sqlite"
    with Store.open(f"sqlite:///{path}") as store:
        store.prepare([], (), "f")
    # As on a read-only disk, which a test run as root cannot make of a folder.
    with (
        Store.open(f"sqlite:///file:{path}?mode=ro&uri=true") as store,
        pytest.raises(DataError, match="readonly") as no,
    ):
        store.join(None, "en", 0.0)
    assert "writable" in no.value.remedy


def test_a_file_that_is_no_database_is_told_in_words(tmp_path):
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"clicks\n" * 1000)
    with pytest.raises(DataError, match="not a database") as refused:
        Store.open(f"sqlite:///{path}")
    assert "restore it" in refused.value.remedy


@pytest.fixture
def database(database_url):
    with Store.open(database_url) as store:
        store.prepare([], (), "f")
    opened = Database(parse_address(database_url))
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
    one = Database(parse_address(postgres_url))
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
    database = Database(parse_address(postgres_url))
    own = text("SELECT pg_backend_pid()")
    first = database.read(lambda connection: connection.scalar(own))
    end = text("SELECT pg_terminate_backend(:pid)")
    other = Database(parse_address(postgres_url))
    other.write(lambda connection: connection.execute(end, {"pid": first}))
    assert database.write(lambda connection: connection.scalar(own)) != first
    other.close()
    database.close()


def test_sqlite_writes_ahead_and_in_full(tmp_path):
    database = Database(parse_address(f"sqlite:///{tmp_path}/a.sqlite"))
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


@pytest.mark.parametrize("other", ["idle", "reading a moment"])
def test_a_closed_database_is_complete_without_its_log(tmp_path, other):
    """Whoever copies the file alone has everything, also while other processes have it open."""
    path = tmp_path / "a.sqlite"
    store = Store.open(f"sqlite:///{path}")
    store.prepare(some_items(10), ("pc",), "f")
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as process:
        process.execute("BEGIN")
        assert process.execute("SELECT count(*) FROM answers").fetchone() == (0,)
        if other == "idle":
            process.execute("ROLLBACK")
        else:
            threading.Timer(0.2, process.execute, ["ROLLBACK"]).start()
        do_batch(store, arrive(store), RULES)
        store.close()
        shutil.copy(path, tmp_path / "alone.sqlite")
    with closing(sqlite3.connect(tmp_path / "alone.sqlite")) as alone:
        assert alone.execute("SELECT count(*) FROM answers").fetchone() == (10,)


def test_a_reader_that_stays_does_not_keep_a_database_from_closing(tmp_path, monkeypatch):
    monkeypatch.setattr(database_module, "_CHECKPOINT_SECONDS", 0.1)
    path = tmp_path / "a.sqlite"
    store = Store.open(f"sqlite:///{path}")
    store.prepare(some_items(10), ("pc",), "f")
    with closing(sqlite3.connect(path, isolation_level=None)) as process:
        process.execute("BEGIN")
        process.execute("SELECT count(*) FROM answers").fetchone()
        do_batch(store, arrive(store), RULES)
        store.close()
    with Store.open(f"sqlite:///{path}") as again:
        assert again.answers().height == 10


def test_closing_makes_no_file_where_there_is_none_any_more(tmp_path):
    path = tmp_path / "a.sqlite"
    database = Database(parse_address(f"sqlite:///{path}"))
    database.write(lambda connection: connection.execute(text("CREATE TABLE t (a int)")))
    path.unlink()
    database.close()
    assert not path.exists()


def test_a_write_asks_for_its_turn_at_the_start(tmp_path):
    path = tmp_path / "a.sqlite"
    database = Database(parse_address(f"sqlite:///{path}"))

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


@pytest.fixture
def engine(tmp_path):
    # The database's own engine, for its way of beginning transactions.
    database = Database(parse_address(f"sqlite:///{tmp_path}/a.sqlite"))
    made = database._engine
    with made.begin() as connection:
        connection.execute(text("CREATE TABLE written (name int PRIMARY KEY)"))
    yield made
    database.close()


def written(engine):
    with engine.begin() as connection:
        return list(connection.scalars(text("SELECT name FROM written ORDER BY rowid")))


def put(connection, name):
    connection.execute(text("INSERT INTO written VALUES (:name)"), {"name": name})
    return name


def queued(commits, works):
    """Do all works while a first one holds the turn, in line in this order; what each gave or raised."""
    held, results = threading.Event(), [None] * len(works)

    def attempt(index, work):
        try:
            results[index] = commits.write(work)
        except Exception as error:
            results[index] = error

    first = threading.Thread(target=commits.write, args=(lambda connection: held.wait(30),))
    first.start()
    while not commits._busy or commits._queue:
        time.sleep(0.0005)
    threads = []
    for index, work in enumerate(works):
        threads.append(threading.Thread(target=attempt, args=(index, work)))
        threads[-1].start()
        while len(commits._queue) <= index:
            time.sleep(0.0005)
    held.set()
    for thread in [first, *threads]:
        thread.join()
    assert not commits._busy and not commits._queue
    return results


def test_writers_come_in_the_order_of_asking_and_share_a_commit(engine):
    commits = []
    event.listen(engine, "commit", lambda connection: commits.append(1))
    works = [lambda connection, n=n: put(connection, n) for n in range(20)]
    assert queued(GroupCommit(engine), works) == list(range(20))
    # The one that held the turn, and one for all the others.
    assert len(commits) == 2
    assert written(engine) == list(range(20))


def test_more_than_go_together_take_further_commits(engine):
    works = [lambda connection, n=n: put(connection, n) for n in range(80)]
    assert queued(GroupCommit(engine), works) == list(range(80))
    assert written(engine) == list(range(80))


def test_one_that_fails_takes_nobody_with_it(engine):
    def half(connection):
        put(connection, 100)
        raise KeyError("mine alone")

    def twice(connection):
        put(connection, 0)

    works = [lambda connection: put(connection, 0), half, twice, lambda connection: put(connection, 1)]
    first, failed, refused, last = queued(GroupCommit(engine), works)
    assert (first, last) == (0, 1)
    assert isinstance(failed, KeyError)
    assert "UNIQUE constraint failed: written.name" in str(refused)
    assert written(engine) == [0, 1]


def test_when_the_commit_fails_nobody_is_told_that_it_is_stored(engine):
    commits = GroupCommit(engine)

    def fail(connection):
        if len(attempts) == 1:
            attempts.append("failed")
            raise OperationalError("COMMIT", {}, Exception("disk I/O error"))
        attempts.append("done")

    attempts = []
    event.listen(engine, "commit", fail)
    results = queued(commits, [lambda connection, n=n: put(connection, n) for n in range(5)])
    assert [str(result.orig) for result in results] == ["disk I/O error"] * 5
    event.remove(engine, "commit", fail)
    assert written(engine) == []
    assert commits.write(lambda connection: put(connection, 7)) == 7


def test_a_transaction_that_is_lost_in_the_middle_is_lost_for_all(engine):
    def lost(connection):
        # As SQLite itself does when the disk is full.
        connection.exec_driver_sql("ROLLBACK")
        raise OperationalError("INSERT", {}, Exception("database or disk is full"))

    works = [lambda connection: put(connection, 0), lost, lambda connection: put(connection, 1)]
    results = queued(GroupCommit(engine), works)
    assert [str(result.orig) for result in results] == ["database or disk is full"] * 3
    assert written(engine) == []


def test_a_thread_that_is_ended_hands_its_turn_on(engine):
    commits = GroupCommit(engine)

    def ended(connection):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commits.write(ended)
    assert commits.write(lambda connection: put(connection, 3)) == 3


def test_it_needs_no_engine_of_ours(tmp_path):
    plain = create_engine(f"sqlite:///{tmp_path}/b.sqlite")
    assert GroupCommit(plain).write(lambda connection: connection.scalar(text("SELECT 41 + 1"))) == 42
    plain.dispose()
