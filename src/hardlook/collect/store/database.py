"""Connections and transactions: SQLite with a write-ahead log, or PostgreSQL through psycopg.

SQLAlchemy Core writes one set of statements for both, with every value bound and none pasted into SQL.
A write is one transaction. It is done again when it failed for a passing reason: a deadlock, a busy file, a lost
connection, or a constraint that says that somebody else was faster. So `work` must be safe to do again.

>>> import tempfile
>>> from hardlook.collect.store.addresses import address_of
>>> database = Database(address_of(f"sqlite:///{tempfile.mkdtemp()}/answers.sqlite"))
>>> database.read(lambda connection: connection.exec_driver_sql("PRAGMA journal_mode").scalar())
'wal'
>>> database.close()
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from hardlook.collect.store.addresses import in_words
from hardlook.collect.store.shared_commits import Conflict, SharedCommits

T = TypeVar("T")
_Way = Callable[[Callable[[Connection], Any]], Any]
BUSY_SECONDS = 30.0
_ATTEMPTS = 6
# PostgreSQL's codes: serialization failure, deadlock, lock not available.
_PASSING = {"40001", "40P01", "55P03"}
# One for each of a server's forty threads: the pool is no fair queue, and opening one anew costs more than an answer.
_POOL: dict[str, Any] = {"pool_size": 40, "max_overflow": 0, "pool_timeout": BUSY_SECONDS}


class Database:
    """One database, used by any number of threads and processes.

    `read(work)` and `write(work)` call `work(connection)` in a transaction and give what it gives. A read sees one
    moment and keeps no writer waiting. What `work` raises rolls back and is passed on; what the database raises comes
    as a `DataError` in words.
    """

    def __init__(self, address: URL) -> None:
        self.address = address
        sqlite = address.get_backend_name() == "sqlite"
        self._engine = _sqlite(address) if sqlite else _postgresql(address)
        writing = self._engine.execution_options(hardlook_write=True)
        # PostgreSQL lets transactions share a commit by itself.
        self._write = SharedCommits(writing).write if sqlite else _alone(writing)
        reading = self._engine if sqlite else self._engine.execution_options(isolation_level="REPEATABLE READ")
        self._read = _alone(reading)

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a file rather than a server."""
        return self._engine.dialect.name == "sqlite"

    def read(self, work: Callable[[Connection], T]) -> T:
        """What `work` reads, all of one moment."""
        return self._tried(self._read, work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """What `work` gives, once all that it wrote is on disk."""
        return self._tried(self._write, work)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._engine.dispose()

    def _tried(self, way: _Way, work: Callable[[Connection], T]) -> T:
        for attempt in range(_ATTEMPTS):
            try:
                result: T = way(work)
                return result
            except SQLAlchemyError as error:
                if attempt == _ATTEMPTS - 1 or not _passing(error):
                    raise in_words(self.address, error) from None
                time.sleep(0.005 * 3**attempt)
        raise AssertionError("unreachable")


def _alone(engine: Engine) -> _Way:
    def transaction(work: Callable[[Connection], Any]) -> Any:
        with engine.begin() as connection:
            return work(connection)

    return transaction


def _passing(error: SQLAlchemyError) -> bool:
    if isinstance(error, IntegrityError | Conflict):
        return True
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _PASSING:
        return True
    return isinstance(error, OperationalError) and "database is locked" in str(error.orig)


def _sqlite(address: URL) -> Engine:
    engine = create_engine(address, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}, **_POOL)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, record: object) -> None:
        # The driver's own idea of transactions starts them late and never immediately; ours are begun below.
        connection.isolation_level = None
        _write_ahead(connection)
        # FULL: a commit is on disk before it returns, also when the power fails.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A write that began as a read cannot wait for another writer: SQLite fails it at once. So ask at the start.
        immediate = connection.get_execution_options().get("hardlook_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    # Two processes that switch a new file at once may fail without waiting, whatever the timeout.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _postgresql(address: URL) -> Engine:
    # A hidden wait for a machine that is gone would last minutes.
    arguments = {} if "connect_timeout" in address.query else {"connect_timeout": 10}
    return create_engine(address, isolation_level="READ COMMITTED", connect_args=arguments, **_POOL)
