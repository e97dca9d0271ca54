"""The tables of the database (SQLite or PostgreSQL), and their creation from the items of a study.

What must never happen is a constraint here, not a check in code: a subject twice to one participant, two open batches
of one participant, two answers to one assignment. Times are seconds since 1970 as floats; ids are random text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from hardlook.collect.store.records import DEVICE, KEY, Refusal, check_text
from hardlook.collect.study.tasks import Item
from hardlook.errors import DataError

# Raised with every change of the tables below; `migrations.py` has the steps from earlier ones.
LAYOUT_VERSION = 4
FINGERPRINT, RULES = "fingerprint", "rules"
_MAX_MODE, _MAX_SUBJECT = 16, 2000

# The id of the advisory lock: arbitrary, but the same for all servers.
_POSTGRES_LOCK = 0x6861_7264
METADATA = sa.MetaData()

# Facts about the whole database: the layout's version, the fingerprint of the tasks, the rules of exclusion.
FACTS = sa.Table(
    "facts", METADATA, sa.Column("name", sa.String(64), primary_key=True), sa.Column("value", sa.Text, nullable=False)
)

# Locks the one row that all wait for who assign tasks or give numbers: one transaction at a time.
LOCK_ALL = sa.select(FACTS.c.value).where(FACTS.c.name == FINGERPRINT).with_for_update()

ITEMS = sa.Table(
    "items",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("task", sa.String(64), nullable=False),
    sa.Column("mode", sa.String(16), nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
)

# How many answers each item has and awaits, by device, so that the items with the fewest are found without counting.
PROGRESS = sa.Table(
    "progress",
    METADATA,
    sa.Column("item", sa.ForeignKey("items.id"), nullable=False),
    sa.Column("device", sa.String(8), nullable=False),
    sa.Column("pending", sa.Integer, nullable=False, default=0),
    sa.Column("valid", sa.Integer, nullable=False, default=0),
    sa.PrimaryKeyConstraint("item", "device"),
)

PARTICIPANTS = sa.Table(
    "participants",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("invitation", sa.String(64), unique=True, nullable=True),
    sa.Column("language", sa.String(16), nullable=False),
    sa.Column("device", sa.String(8), nullable=True),
    sa.Column("joined", sa.Float, nullable=False),
    sa.Column("trained", sa.Float, nullable=True),
    sa.Column("seen", sa.Float, nullable=False),
    sa.Column("finished", sa.Float, nullable=True),
)

# The number by which every file and the dashboard name a participant. It is stored, since the order of the times of
# joining changes where a clock is set back, or two servers disagree.
NUMBERS = sa.Table(
    "participant_numbers",
    METADATA,
    sa.Column("participant", sa.ForeignKey("participants.id"), primary_key=True),
    sa.Column("number", sa.Integer, unique=True, nullable=False),
)

# The training round of each participant: when a trial was last shown, how often it was answered, whether ever rightly.
PRACTICE = sa.Table(
    "practice",
    METADATA,
    sa.Column("participant", sa.ForeignKey("participants.id"), nullable=False),
    sa.Column("trial", sa.String(32), nullable=False),
    sa.Column("shown", sa.Float, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False, default=0),
    sa.Column("passed", sa.Integer, nullable=False, default=0),
    sa.PrimaryKeyConstraint("participant", "trial"),
)

# The id parameters with which a crowdsourcing platform sent a participant; `person` is the first of them.
PLATFORM_IDS = sa.Table(
    "platform_ids",
    METADATA,
    sa.Column("participant", sa.ForeignKey("participants.id"), primary_key=True),
    sa.Column("person", sa.String(128), unique=True, nullable=False),
    # JSON: all parameters by name
    sa.Column("parameters", sa.Text, nullable=False),
)

# The numbers of participants who were deleted on request; they are not given again.
DELETED = sa.Table(
    "deleted_participants", METADATA, sa.Column("number", sa.Integer, primary_key=True, autoincrement=False)
)

BATCHES = sa.Table(
    "batches",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("participant", sa.ForeignKey("participants.id"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("device", sa.String(8), nullable=False),
    # open, complete, returned
    sa.Column("state", sa.String(8), nullable=False),
    # of a closed batch: 1 where it counts, 0 where too few clicks lay inside or it was abandoned
    sa.Column("valid", sa.Integer, nullable=True),
    sa.Column("opened", sa.Float, nullable=False),
    sa.Column("touched", sa.Float, nullable=False),
    sa.Column("closed", sa.Float, nullable=True),
    sa.UniqueConstraint("participant", "number"),
)

sa.Index(
    "one_open_batch",
    BATCHES.c.participant,
    unique=True,
    sqlite_where=sa.text("state = 'open'"),
    postgresql_where=sa.text("state = 'open'"),
)

sa.Index("batches_by_state", BATCHES.c.state, BATCHES.c.touched)

# From which address each open batch was requested, for the limit per address that all servers share: not the address
# but a few bits of a keyed hash of it, which many addresses have in common. The row goes when the batch is closed.
BATCH_ADDRESSES = sa.Table(
    "batch_addresses",
    METADATA,
    sa.Column("batch", sa.ForeignKey("batches.id"), primary_key=True),
    sa.Column("address", sa.String(8), nullable=False, index=True),
)

ASSIGNMENTS = sa.Table(
    "assignments",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("batch", sa.ForeignKey("batches.id"), nullable=False),
    sa.Column("participant", sa.ForeignKey("participants.id"), nullable=False),
    sa.Column("item", sa.ForeignKey("items.id"), nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    # assigned, answered, returned
    sa.Column("state", sa.String(8), nullable=False),
    # how often its pictures were requested, and when first
    sa.Column("shows", sa.Integer, nullable=False, default=0),
    sa.Column("shown", sa.Float, nullable=True),
    sa.UniqueConstraint("participant", "subject"),
    sa.UniqueConstraint("batch", "position"),
)

ANSWERS = sa.Table(
    "answers",
    METADATA,
    # made by the browser, so that the same answer sent twice is one answer
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("assignment", sa.ForeignKey("assignments.id"), nullable=False, unique=True),
    sa.Column("participant", sa.ForeignKey("participants.id"), nullable=False, index=True),
    sa.Column("item", sa.ForeignKey("items.id"), nullable=False, index=True),
    sa.Column("device", sa.String(8), nullable=False),
    # of a click: pixels of the task's image, from its upper left corner
    sa.Column("x", sa.Float, nullable=True),
    sa.Column("y", sa.Float, nullable=True),
    sa.Column("inside", sa.Integer, nullable=True),
    sa.Column("near", sa.Integer, nullable=True),
    # of a review: 1 accepted, 0 not; of a rating: 1 to 10
    sa.Column("value", sa.Integer, nullable=True),
    sa.Column("early", sa.Integer, nullable=False, default=0),
    sa.Column("reaction_ms", sa.Float, nullable=True),
    # JSON: measured milliseconds by phase, and the state of screen and page
    sa.Column("durations", sa.Text, nullable=False),
    sa.Column("circumstances", sa.Text, nullable=False),
    sa.Column("received", sa.Float, nullable=False),
)


@dataclass(frozen=True)
class Catalogue:
    """The items of a study by id, and the devices over which answers are balanced."""

    items: Mapping[str, Item]
    devices: frozenset[str]


def create_tables(
    connection: sa.Connection, items: Sequence[Item], devices: Iterable[str], fingerprint: str
) -> Catalogue:
    """Create missing tables, items and progress rows, safe when two servers start; other tasks are a `DataError`.

    A database of an earlier layout must have been migrated.
    """
    catalogue = Catalogue({item.id: item for item in items}, frozenset(devices))
    _check_catalogue(catalogue)
    lock_layout(connection)
    if not is_prepared(connection):
        METADATA.create_all(connection)
    version = str(LAYOUT_VERSION)
    _store_or_check_fact(connection, "layout", version, "this database was made by another version of hardlook")
    _store_or_check_fact(connection, FINGERPRINT, fingerprint, "this database holds answers to other tasks")
    known = set(connection.scalars(sa.select(ITEMS.c.id)))
    new = [vars(item) for item in catalogue.items.values() if item.id not in known]
    if new:
        connection.execute(sa.insert(ITEMS), new)
    counted = {(row.item, row.device) for row in connection.execute(sa.select(PROGRESS.c.item, PROGRESS.c.device))}
    rows = [
        {"item": item, "device": device, "pending": 0, "valid": 0}
        for item in catalogue.items
        for device in sorted(catalogue.devices)
        if (item, device) not in counted
    ]
    if rows:
        connection.execute(sa.insert(PROGRESS), rows)
    return catalogue


def lock_progress(connection: sa.Connection, device: str, items: Collection[str]) -> None:
    """Lock the progress rows of these items, always in one order, so that no two transactions wait for each other."""
    connection.execute(
        sa.select(PROGRESS.c.item)
        .where(PROGRESS.c.device == device, PROGRESS.c.item.in_(items))
        .order_by(PROGRESS.c.item)
        .with_for_update(key_share=True)
    )


def lock_layout(connection: sa.Connection) -> None:
    """Let no other server create or migrate tables until this transaction ends."""
    # A write to SQLite is alone anyway.
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _POSTGRES_LOCK})


def read_catalogue(connection: sa.Connection) -> Catalogue:
    """The catalogue that `create_tables` wrote earlier; a `DataError` if it never ran."""
    if not is_prepared(connection):
        raise DataError("no study was ever served from this database", remedy="serve the study first")
    rows = connection.execute(sa.select(ITEMS.c.id, ITEMS.c.task, ITEMS.c.mode, ITEMS.c.subject))
    devices = connection.scalars(sa.select(PROGRESS.c.device).distinct())
    return Catalogue({row.id: Item(*row) for row in rows}, frozenset(devices))


def is_prepared(connection: sa.Connection) -> bool:
    """Whether the tables exist."""
    return sa.inspect(connection).has_table(FACTS.name)


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


def _store_or_check_fact(connection: sa.Connection, name: str, value: str, message: str) -> None:
    """Store a fact in a new database; raise `message` where another value is stored."""
    found = connection.scalar(sa.select(FACTS.c.value).where(FACTS.c.name == name))
    if found is None:
        connection.execute(sa.insert(FACTS), {"name": name, "value": value})
    elif found != value:
        remedy = "name another database, or serve the study that it belongs to"
        raise DataError(f"{message} ({name} {found}, not {value})", remedy=remedy)
