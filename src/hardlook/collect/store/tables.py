"""The tables, for SQLite and PostgreSQL alike.

What must never happen is a constraint here, not a check in code: a subject twice to one participant, two open batches
of one participant, two answers to one assignment. Times are seconds since 1970 as floats; ids are random text.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
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
    text,
)

METADATA = MetaData()

# What is true of the whole database: the layout's version, the fingerprint of the tasks, the rules of exclusion.
FACTS = Table("facts", METADATA, Column("name", String(64), primary_key=True), Column("value", Text, nullable=False))

ITEMS = Table(
    "items",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("task", String(64), nullable=False),
    Column("mode", String(16), nullable=False),
    Column("subject", Text, nullable=False),
)

# How many answers each item has and awaits, by device, so that the neediest are found without counting.
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
    # of a closed batch: 1 where it counts, 0 where too few clicks lay inside or it was given up
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
    # how often its pictures were asked for, and when first
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
    # JSON: measured milliseconds by phase, and what the screen was like
    Column("durations", Text, nullable=False),
    Column("circumstances", Text, nullable=False),
    Column("received", Float, nullable=False),
)
