"""The tables of the database (SQLite or PostgreSQL), and their creation from the items of a study.

What must never happen is a constraint here, not a check in code: a subject twice to one participant, two open batches
of one participant, two answers to one assignment. Times are seconds since 1970 as floats; ids are random text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import (
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    insert,
    inspect,
    select,
    text,
)

from hardlook.collect.store.records import DEVICE, KEY, Refusal, check_text
from hardlook.collect.study.tasks import Item
from hardlook.errors import DataError

LAYOUT_VERSION = "1"

FINGERPRINT = "fingerprint"

_MAX_MODE, _MAX_SUBJECT = 16, 2000

# The id of the advisory lock: arbitrary, but the same for all servers.
_POSTGRES_LOCK = 0x6861_7264

METADATA = MetaData()

# Facts about the whole database: the layout's version, the fingerprint of the tasks, the rules of exclusion.
FACTS = Table("facts", METADATA, Column("name", String(64), primary_key=True), Column("value", Text, nullable=False))

ITEMS = Table(
    "items",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("task", String(64), nullable=False),
    Column("mode", String(16), nullable=False),
    Column("subject", Text, nullable=False),
)

# How many answers each item has and awaits, by device, so that the items with the fewest are found without counting.
PROGRESS = Table(
    "progress",
    METADATA,
    Column("item", ForeignKey("items.id"), nullable=False),
    Column("device", String(8), nullable=False),
    Column("pending", Integer, nullable=False, default=0),
    Column("valid", Integer, nullable=False, default=0),
    PrimaryKeyConstraint("item", "device"),
)

PARTICIPANTS = Table(
    "participants",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("invitation", String(64), unique=True, nullable=True),
    Column("language", String(16), nullable=False),
    Column("device", String(8), nullable=True),
    Column("joined", Float, nullable=False),
    Column("trained", Float, nullable=True),
    Column("seen", Float, nullable=False),
    Column("finished", Float, nullable=True),
)

BATCHES = Table(
    "batches",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("participant", ForeignKey("participants.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("device", String(8), nullable=False),
    # open, complete, returned
    Column("state", String(8), nullable=False),
    # of a closed batch: 1 where it counts, 0 where too few clicks lay inside or it was abandoned
    Column("valid", Integer, nullable=True),
    Column("opened", Float, nullable=False),
    Column("touched", Float, nullable=False),
    Column("closed", Float, nullable=True),
    UniqueConstraint("participant", "number"),
)

Index(
    "one_open_batch",
    BATCHES.c.participant,
    unique=True,
    sqlite_where=text("state = 'open'"),
    postgresql_where=text("state = 'open'"),
)

Index("batches_by_state", BATCHES.c.state, BATCHES.c.touched)

ASSIGNMENTS = Table(
    "assignments",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("batch", ForeignKey("batches.id"), nullable=False),
    Column("participant", ForeignKey("participants.id"), nullable=False),
    Column("item", ForeignKey("items.id"), nullable=False),
    Column("subject", Text, nullable=False),
    Column("position", Integer, nullable=False),
    # assigned, answered, returned
    Column("state", String(8), nullable=False),
    # how often its pictures were requested, and when first
    Column("shows", Integer, nullable=False, default=0),
    Column("shown", Float, nullable=True),
    UniqueConstraint("participant", "subject"),
    UniqueConstraint("batch", "position"),
)

ANSWERS = Table(
    "answers",
    METADATA,
    # made by the browser, so that the same answer sent twice is one answer
    Column("key", String(64), primary_key=True),
    Column("assignment", ForeignKey("assignments.id"), nullable=False, unique=True),
    Column("participant", ForeignKey("participants.id"), nullable=False, index=True),
    Column("item", ForeignKey("items.id"), nullable=False, index=True),
    Column("device", String(8), nullable=False),
    # of a click: pixels of the task's image, from its upper left corner
    Column("x", Float, nullable=True),
    Column("y", Float, nullable=True),
    Column("inside", Integer, nullable=True),
    Column("near", Integer, nullable=True),
    # of a review: 1 accepted, 0 not; of a rating: 1 to 10
    Column("value", Integer, nullable=True),
    Column("early", Integer, nullable=False, default=0),
    Column("reaction_ms", Float, nullable=True),
    # JSON: measured milliseconds by phase, and the state of screen and page
    Column("durations", Text, nullable=False),
    Column("circumstances", Text, nullable=False),
    Column("received", Float, nullable=False),
)


@dataclass(frozen=True)
class Catalogue:
    """The items of a study by id, and the devices over which answers are balanced."""

    items: Mapping[str, Item]
    devices: frozenset[str]


def create_tables(connection: Connection, items: Sequence[Item], devices: Iterable[str], fingerprint: str) -> Catalogue:
    """Create missing tables, items and progress rows; safe when two servers start at once.

    A database of other tasks is a `DataError`: its answers would be taken for answers to these.
    """
    catalogue = Catalogue({item.id: item for item in items}, frozenset(devices))
    _check_catalogue(catalogue)
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _POSTGRES_LOCK})
    METADATA.create_all(connection)
    _store_or_check_fact(connection, "layout", LAYOUT_VERSION, "this database was made by another version of hardlook")
    _store_or_check_fact(connection, FINGERPRINT, fingerprint, "this database holds answers to other tasks")
    known = set(connection.scalars(select(ITEMS.c.id)))
    new = [vars(item) for item in catalogue.items.values() if item.id not in known]
    if new:
        connection.execute(insert(ITEMS), new)
    counted = {(row.item, row.device) for row in connection.execute(select(PROGRESS.c.item, PROGRESS.c.device))}
    rows = [
        {"item": item, "device": device, "pending": 0, "valid": 0}
        for item in catalogue.items
        for device in sorted(catalogue.devices)
        if (item, device) not in counted
    ]
    if rows:
        connection.execute(insert(PROGRESS), rows)
    return catalogue


def read_catalogue(connection: Connection) -> Catalogue:
    """The catalogue that `create_tables` wrote earlier; a `DataError` if it never ran."""
    if not is_prepared(connection):
        raise DataError("no study was ever served from this database", remedy="serve the study first")
    rows = connection.execute(select(ITEMS.c.id, ITEMS.c.task, ITEMS.c.mode, ITEMS.c.subject))
    devices = connection.scalars(select(PROGRESS.c.device).distinct())
    return Catalogue({row.id: Item(*row) for row in rows}, frozenset(devices))


def is_prepared(connection: Connection) -> bool:
    """Whether the tables exist."""
    return inspect(connection).has_table(FACTS.name)


def _check_catalogue(catalogue: Catalogue) -> None:
    for item in catalogue.items.values():
        try:
            check_text("id", item.id, KEY)
            check_text("task", item.task, KEY)
            check_text("subject", item.subject, _MAX_SUBJECT)
            # A review has no mode.
            check_text("mode", item.mode or "-", _MAX_MODE)
        except Refusal as refusal:
            raise DataError(f"an item that cannot be stored: {refusal}", unit=repr(item.id)) from None
    for device in catalogue.devices:
        try:
            check_text("device", device, DEVICE)
        except Refusal as refusal:
            raise DataError(f"a device that cannot be stored: {refusal}") from None


def _store_or_check_fact(connection: Connection, name: str, value: str, message: str) -> None:
    """Store a fact in a new database; raise `message` where another value is stored."""
    found = connection.scalar(select(FACTS.c.value).where(FACTS.c.name == name))
    if found is None:
        connection.execute(insert(FACTS), {"name": name, "value": value})
    elif found != value:
        remedy = "name another database, or serve the study that it belongs to"
        raise DataError(f"{message} ({name} {found}, not {value})", remedy=remedy)
