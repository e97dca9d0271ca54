"""Backups: all that a database holds at one moment, as a SQLite file, while servers keep writing to it.

A copy of a database file made by other means lacks what is still in its write-ahead log, or is damaged.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from hardlook.collect.store.database import Database, connect_to_file
from hardlook.collect.store.migrations import read_layout
from hardlook.collect.store.tables import LAYOUT_VERSION, METADATA, is_prepared
from hardlook.errors import DataError

_ROWS_AT_ONCE = 2000


def copy_database(database: Database, file: Path) -> None:
    """Write a database's content of one moment to a new SQLite file, which others see only when it is complete.

    A SQLite database is copied whatever its layout, a PostgreSQL one row by row.
    """
    if file.exists():
        raise DataError("there is a file already", file=file, remedy="name another, or remove it")
    file.parent.mkdir(parents=True, exist_ok=True)
    # Beside the file: renaming works within a disk only.
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    os.close(handle)
    try:
        if database.path is not None:
            _copy_pages(database.path, Path(name))
        else:
            database.read(_copy_rows, Path(name))
        _check_copy(Path(name))
        Path(name).replace(file)
    except sqlite3.Error as error:
        raise DataError(f"the backup failed: {error}", file=file, remedy="make room on the disk, then again") from None
    finally:
        Path(name).unlink(missing_ok=True)


def _copy_pages(source: Path, target: Path) -> None:
    with closing(connect_to_file(source)) as reading, closing(connect_to_file(target)) as writing:
        # In one step, which reads one snapshot: in several, every write in between would start it anew.
        reading.backup(writing, pages=-1)
        # One file, without a log beside it.
        writing.execute("PRAGMA journal_mode = DELETE")


def _copy_rows(connection: sa.Connection, target: Path) -> None:
    if not is_prepared(connection):
        raise DataError("no study was ever served from this database", remedy="serve the study first")
    if read_layout(connection) != LAYOUT_VERSION:
        remedy = "use pg_dump, or let `hardlook collect status STUDY` migrate the database first"
        raise DataError("this database has the layout of another version of hardlook", remedy=remedy)
    engine = sa.create_engine(f"sqlite:///{target}")
    try:
        METADATA.create_all(engine)
        with engine.begin() as writing:
            for table in METADATA.sorted_tables:
                rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(sa.select(table)).mappings()
                for part in rows.partitions():
                    values: list[dict[str, Any]] = [dict(row) for row in part]
                    writing.execute(sa.insert(table), values)
    finally:
        engine.dispose()


def _check_copy(file: Path) -> None:
    with closing(connect_to_file(file)) as connection:
        damage = connection.execute("PRAGMA quick_check").fetchone()[0]
        orphans = connection.execute("PRAGMA foreign_key_check").fetchone()
    if damage != "ok" or orphans is not None:
        what = f"the copy is not sound: {damage if damage != 'ok' else f'a row of {orphans[0]} refers to none'}"
        raise DataError(what, file=file, remedy="the database itself may be damaged: check its disk")
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
