"""Migrations: how a database of an earlier version of hardlook gets the layout of this one.

A database knows the version of its layout. `MIGRATIONS` has a step from each version to the next; their statements are
written out, since the tables of `tables.py` change with every later version. All steps and the new version are one
transaction, so that a database is never between two layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from hardlook.collect.store.tables import FACTS, LAYOUT_VERSION, lock_layout
from hardlook.errors import DataError

# From 0.1.0: the training round, the ids of crowdsourcing platforms, numbers of deleted participants.
_FROM_1 = (
    """CREATE TABLE IF NOT EXISTS practice (
        participant VARCHAR(32) NOT NULL,
        trial VARCHAR(32) NOT NULL,
        shown FLOAT NOT NULL,
        tries INTEGER NOT NULL,
        passed INTEGER NOT NULL,
        PRIMARY KEY (participant, trial),
        FOREIGN KEY(participant) REFERENCES participants (id)
    )""",
    """CREATE TABLE IF NOT EXISTS platform_ids (
        participant VARCHAR(32) NOT NULL,
        person VARCHAR(128) NOT NULL,
        parameters TEXT NOT NULL,
        PRIMARY KEY (participant),
        FOREIGN KEY(participant) REFERENCES participants (id),
        UNIQUE (person)
    )""",
    "CREATE TABLE IF NOT EXISTS deleted_participants (number INTEGER NOT NULL, PRIMARY KEY (number))",
)

# From development versions of 0.2.0: the limit of open batches per address is shared by all servers.
_FROM_2 = (
    """CREATE TABLE IF NOT EXISTS batch_addresses (
        batch VARCHAR(32) NOT NULL,
        address VARCHAR(8) NOT NULL,
        PRIMARY KEY (batch),
        FOREIGN KEY(batch) REFERENCES batches (id)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_batch_addresses_address ON batch_addresses (address)",
)

# From development versions of 0.2.0: numbers of participants, until then counted in the order of joining without those
# of deleted ones, are stored.
_FROM_3 = (
    """CREATE TABLE IF NOT EXISTS participant_numbers (
        participant VARCHAR(32) NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (participant),
        FOREIGN KEY(participant) REFERENCES participants (id),
        UNIQUE (number)
    )""",
    """INSERT INTO participant_numbers (participant, number)
        WITH RECURSIVE counted(number) AS (
            SELECT 1 UNION ALL SELECT number + 1 FROM counted
            WHERE number < (SELECT count(*) FROM participants) + (SELECT count(*) FROM deleted_participants)
        ),
        free AS (
            SELECT number, row_number() OVER (ORDER BY number) AS place FROM counted
            WHERE number NOT IN (SELECT number FROM deleted_participants)
        ),
        people AS (SELECT id, row_number() OVER (ORDER BY joined, id) AS place FROM participants)
        SELECT people.id, free.number FROM people JOIN free ON free.place = people.place""",
)

# Statements by the version that they start from.
MIGRATIONS: Mapping[int, Sequence[str]] = {1: _FROM_1, 2: _FROM_2, 3: _FROM_3}

_IS_LAYOUT = FACTS.c.name == "layout"


def read_layout(connection: sa.Connection) -> int:
    """The version of a database's layout; that of this hardlook where the database is empty."""
    if not sa.inspect(connection).has_table(FACTS.name):
        return LAYOUT_VERSION
    stored = connection.scalar(sa.select(FACTS.c.value).where(_IS_LAYOUT))
    return int(stored) if stored and stored.isdecimal() else 0


def migrate(connection: sa.Connection) -> None:
    """Bring a database to the layout of this hardlook; a `DataError` where there is no way."""
    lock_layout(connection)
    stored = read_layout(connection)
    if stored > LAYOUT_VERSION:
        raise DataError(
            f"this database was made by a newer version of hardlook (layout {stored}, not {LAYOUT_VERSION})",
            remedy="install that version, or name another database",
        )
    for version in range(stored, LAYOUT_VERSION):
        if version not in MIGRATIONS:
            raise DataError(
                f"this database has a layout that is not known ({version})",
                remedy="restore it from a copy, or name another database",
            )
        for statement in MIGRATIONS[version]:
            connection.execute(sa.text(statement))
        connection.execute(sa.update(FACTS).where(_IS_LAYOUT).values(value=str(version + 1)))
