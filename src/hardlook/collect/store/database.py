"""Connections and transactions: SQLite with a write-ahead log, or PostgreSQL through psycopg.

SQLAlchemy Core generates the SQL for both; values are always bound parameters, never part of the SQL text.

>>> import tempfile
>>> database = Database(parse_address(f"sqlite:///{tempfile.mkdtemp()}/answers.sqlite"))
>>> database.read(lambda connection: connection.exec_driver_sql("PRAGMA journal_mode").scalar())
'wal'
>>> database.close()
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, NestedTransaction, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError, SQLAlchemyError, TimeoutError

from hardlook.errors import DataError
from hardlook.extras import require

T = TypeVar("T")
P = ParamSpec("P")

# Writes per commit: enough to be fast, few enough that the first does not wait for long.
MAX_GROUP = 32
_Transaction = Callable[[Callable[[Connection], Any]], Any]
BUSY_SECONDS = 30.0
_ATTEMPTS = 6

# How long closing waits for readers that keep the write-ahead log from being copied into the file.
_CHECKPOINT_SECONDS = 2.0

# PostgreSQL's codes: serialization failure, deadlock, lock not available.
_TRANSIENT = {"40001", "40P01", "55P03"}

# A connection per server thread (40): the pool does not queue fairly, and opening one takes longer than an answer.
_POOL: dict[str, Any] = {"pool_size": 40, "max_overflow": 0, "pool_timeout": BUSY_SECONDS}

_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}

_EXPECTED = "give sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE"


def parse_address(url: str) -> URL:
    """The address with the driver that hardlook uses; a `DataError` if it is malformed or of another kind of database.

    >>> parse_address("postgresql://ann:secret@db/study").drivername
    'postgresql+psycopg'
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # Not chained and not shown: a malformed address may hold a password anywhere.
        raise DataError("the address of the database cannot be read", remedy=_EXPECTED) from None
    driver = _DRIVERS.get(parsed.drivername)
    if driver is None:
        raise DataError(f"a database of kind {parsed.drivername!r} is not supported", remedy=_EXPECTED)
    if driver == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise DataError("a database in memory would forget the answers", remedy=_EXPECTED)
    if driver != "sqlite":
        require("psycopg", extra="postgres")
    return parsed.set(drivername=driver)


def format_address(address: URL) -> str:
    """The address without its password and its query, which may hold one too.

    >>> format_address(parse_address("postgresql://ann:secret@db/study?sslmode=require"))
    'postgresql+psycopg://ann:***@db/study'
    """
    return address.set(query={}).render_as_string(hide_password=True)


def describe_error(address: URL, error: SQLAlchemyError) -> DataError:
    """A driver's error as one that names the database and a remedy, never a password."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        message = str(error.orig).strip()
    elif isinstance(error, TimeoutError):
        message = "all connections were in use for too long"
    else:
        # An error of SQLAlchemy itself may quote values; its type is enough.
        message = type(error).__name__
    secrets: list[Any] = [address.password, *(address.query.get(name) for name in ("password", "sslpassword"))]
    for secret in (str(value) for value in secrets if value):
        message = message.replace(secret, "***").replace(quote(secret, safe=""), "***")
    what, remedy = f"the database cannot be used: {message}", _find_remedy(address, message)
    return DataError(what, file=format_address(address), remedy=remedy)


def _find_remedy(address: URL, message: str) -> str:
    if address.get_backend_name() != "sqlite":
        return "check that PostgreSQL runs there, and the name, user and password in the address"
    folder = Path(str(address.database)).parent
    if "readonly" in message or "unable to open" in message:
        return f"SQLite creates files in {folder}: the folder must exist and be writable, with free space on its disk"
    if "not a database" in message or "malformed" in message:
        return "this file is damaged or not a database: restore it from a copy, or name another"
    if "locked" in message:
        return "another program holds the database: close it"
    if "full" in message:
        return "make room on the disk"
    return f"check the folder {folder}"


class Conflict(SQLAlchemyError):
    """A transaction that failed because of another one, and is retried."""


class _Write:
    """A write in the queue, its result, and an event: set when it is done, or when its thread is to commit a group."""

    def __init__(self, work: Callable[[Connection], Any]) -> None:
        self.work = work
        self.done = False
        self.result: Any = None
        self.error: Exception | None = None
        self.wake = threading.Event()


class GroupCommit:
    """Group commit: a queue of writes to one engine, in which those that wait share a commit.

    SQLite allows one writer at a time; others sleep and retry, and some wait for long. So threads of one process
    queue here in the order of arrival. A commit waits for the disk, mostly longer than the writing took. So the first
    in the queue executes all waiting writes, each within a savepoint of its own, and commits once: a write is on
    disk before its caller continues. Correctness never depends on this queue, since other processes write too.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._busy = False
        self._queue: deque[_Write] = deque()

    def write(self, work: Callable[[Connection], T]) -> T:
        """The result of `work(connection)`, once it is on disk; if `work` raises, nothing of it is written."""
        own = _Write(work)
        with self._lock:
            self._queue.append(own)
            is_leader, self._busy = not self._busy, True
        if not is_leader:
            own.wake.wait()
        if not own.done:
            self._commit_next_group()
        if own.error is not None:
            raise own.error
        result: T = own.result
        return result

    def _commit_next_group(self) -> None:
        with self._lock:
            group = [self._queue.popleft() for _ in range(min(MAX_GROUP, len(self._queue)))]
        try:
            self._commit(group)
        except Exception as error:
            for write in group:
                write.error = error
        except BaseException:
            # This thread is being stopped: the threads of the other writes retry.
            for write in group:
                write.error = Conflict()
            raise
        finally:
            self._finish(group)

    def _finish(self, group: list[_Write]) -> None:
        with self._lock:
            following = self._queue[0] if self._queue else None
            self._busy = following is not None
        for write in group:
            write.done = True
            write.wake.set()
        if following is not None:
            following.wake.set()

    def _commit(self, group: list[_Write]) -> None:
        with self._engine.begin() as connection:
            if len(group) == 1:
                group[0].result = group[0].work(connection)
                return
            for write in group:
                savepoint = connection.begin_nested()
                try:
                    write.result = write.work(connection)
                except Exception as error:
                    _undo(savepoint, error)
                    write.error = error
                else:
                    savepoint.commit()


def _undo(savepoint: NestedTransaction, error: Exception) -> None:
    try:
        savepoint.rollback()
    except SQLAlchemyError:
        # The whole transaction is gone, as with a full disk: nothing is kept, and all callers get the error.
        if isinstance(error, SQLAlchemyError):
            raise error from None
        raise


class Database:
    """One database, used by any number of threads and processes.

    `read` and `write` call `work(connection, ...)` in a transaction and return its result. A read sees one snapshot and
    blocks no writer. If `work` raises, the transaction is rolled back and the error is raised; errors of the database
    become a `DataError`. After a transient failure (a deadlock, a busy file, a lost connection, a constraint violated
    by another transaction) `work` is called again, so it must be safe to repeat.
    """

    def __init__(self, address: URL) -> None:
        self.address = address
        sqlite = address.get_backend_name() == "sqlite"
        self._engine = _create_sqlite_engine(address) if sqlite else _create_postgresql_engine(address)
        writing = self._engine.execution_options(hardlook_write=True)
        # PostgreSQL has a group commit of its own.
        self._write = GroupCommit(writing).write if sqlite else _make_transaction(writing)
        self._reading = self._engine if sqlite else self._engine.execution_options(isolation_level="REPEATABLE READ")
        self._read = _make_transaction(self._reading)
        # The connection of each thread that reads one snapshot several times.
        self._shared = threading.local()

    def read(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work(connection, ...)`, which reads one snapshot."""
        shared: Connection | None = getattr(self._shared, "connection", None)
        if shared is None:
            return self._retry(self._read, lambda connection: work(connection, *args, **kwargs))
        try:
            return work(shared, *args, **kwargs)
        except SQLAlchemyError as error:
            raise describe_error(self.address, error) from None

    @contextmanager
    def one_snapshot(self) -> Iterator[None]:
        """Inside, all reads of this thread see the database as it is at the first one."""
        try:
            connection = self._reading.connect()
        except SQLAlchemyError as error:
            raise describe_error(self.address, error) from None
        with connection, connection.begin():
            self._shared.connection = connection
            try:
                yield
            finally:
                del self._shared.connection

    def write(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work(connection, ...)`, once all that it wrote is on disk."""
        return self._retry(self._write, lambda connection: work(connection, *args, **kwargs))

    @property
    def path(self) -> Path | None:
        """The file of a SQLite database; None on a server."""
        return Path(str(self.address.database)) if self.address.get_backend_name() == "sqlite" else None

    def close(self) -> None:
        """Close all connections that are not in use; of SQLite, the file is complete then without its log."""
        self._engine.dispose()
        if self.path is not None:
            _checkpoint(self.path)

    def _retry(self, transaction: _Transaction, work: Callable[[Connection], T]) -> T:
        for attempt in range(_ATTEMPTS):
            try:
                result: T = transaction(work)
                return result
            except SQLAlchemyError as error:
                if attempt == _ATTEMPTS - 1 or not _is_transient(error):
                    raise describe_error(self.address, error) from None
                time.sleep(0.005 * 3**attempt)
        raise AssertionError("unreachable")


def _make_transaction(engine: Engine) -> _Transaction:
    """A function that calls its argument in a transaction of its own."""

    def transaction(work: Callable[[Connection], Any]) -> Any:
        with engine.begin() as connection:
            return work(connection)

    return transaction


def _is_transient(error: SQLAlchemyError) -> bool:
    if isinstance(error, IntegrityError | Conflict):
        return True
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _TRANSIENT:
        return True
    return isinstance(error, OperationalError) and "database is locked" in str(error.orig)


def _create_sqlite_engine(address: URL) -> Engine:
    engine = create_engine(address, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}, **_POOL)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, record: object) -> None:
        # The driver's own transactions start late and never immediately; ours are begun below.
        connection.isolation_level = None
        _enable_wal(connection)
        # FULL: a commit is on disk before it returns, also when the power fails.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # What is deleted on a participant's request is overwritten.
        connection.execute("PRAGMA secure_delete = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A write that began as a read cannot wait for another writer: SQLite fails it at once. So lock at the start.
        immediate = connection.get_execution_options().get("hardlook_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _enable_wal(connection: sqlite3.Connection) -> None:
    # Two processes that switch a new file to WAL at once may fail without waiting, whatever the timeout.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _checkpoint(path: Path) -> None:
    """Copy the write-ahead log into the file, for those who copy the file alone; SQLite does so only at the last close.

    Connections of other threads and processes do not prevent it, unless they are reading.
    """
    deadline = time.monotonic() + _CHECKPOINT_SECONDS
    # An error loses nothing: the log stays beside the file.
    with suppress(sqlite3.Error), closing(connect_to_file(path)) as connection:
        while True:
            # PASSIVE: no reader or writer has to wait.
            _, logged, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if copied == logged or time.monotonic() > deadline:
                return
            time.sleep(0.02)


def connect_to_file(path: Path) -> sqlite3.Connection:
    """A plain connection to a database file that exists."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def _create_postgresql_engine(address: URL) -> Engine:
    # Without a limit, connecting to a machine that is gone would take minutes.
    arguments = {} if "connect_timeout" in address.query else {"connect_timeout": 10}
    return create_engine(address, isolation_level="READ COMMITTED", connect_args=arguments, **_POOL)
