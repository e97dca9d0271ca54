"""What must never happen is refused by the database itself, by the name of its constraint."""

import pytest
from sqlalchemy import create_engine, insert
from sqlalchemy.exc import IntegrityError

from hardlook.collect.store.database import parse_address
from hardlook.collect.store.store import Store
from hardlook.collect.store.tables import ANSWERS, ASSIGNMENTS, BATCHES, FACTS, ITEMS, PARTICIPANTS, PROGRESS

PERSON = {"id": "p1", "invitation": "i1", "language": "en", "joined": 0.0, "seen": 0.0}

BATCH = {"id": "b1", "participant": "p1", "number": 1, "device": "pc", "state": "open", "opened": 0.0, "touched": 0.0}

TRIAL = {
    "id": "a1",
    "batch": "b1",
    "participant": "p1",
    "item": "t1",
    "subject": "s1",
    "position": 0,
    "state": "assigned",
}

ANSWER = {
    "key": "k1",
    "assignment": "a1",
    "participant": "p1",
    "item": "t1",
    "device": "pc",
    "durations": "{}",
    "circumstances": "{}",
    "received": 0.0,
}

THERE = [
    (FACTS, {"name": "n", "value": "v"}),
    (ITEMS, {"id": "t1", "task": "t1", "mode": "", "subject": "s1"}),
    (ITEMS, {"id": "t2", "task": "t2", "mode": "", "subject": "s2"}),
    (PROGRESS, {"item": "t1", "device": "pc"}),
    (PARTICIPANTS, PERSON),
    (BATCHES, BATCH),
    (ASSIGNMENTS, TRIAL),
    (ASSIGNMENTS, {**TRIAL, "id": "a2", "item": "t2", "subject": "s2", "position": 1}),
    (ANSWERS, ANSWER),
]

# A row that must be refused, PostgreSQL's name of the constraint, and how SQLite says it.
REFUSED = [
    (FACTS, {"name": "n", "value": "w"}, "facts_pkey", "facts.name"),
    (ITEMS, {"id": "t1", "task": "t9", "mode": "", "subject": "s9"}, "items_pkey", "items.id"),
    (PROGRESS, {"item": "t1", "device": "pc"}, "progress_pkey", "progress.item, progress.device"),
    (PROGRESS, {"item": "t9", "device": "pc"}, "progress_item_fkey", "FOREIGN KEY"),
    (PARTICIPANTS, {**PERSON, "invitation": "i9"}, "participants_pkey", "participants.id"),
    (PARTICIPANTS, {**PERSON, "id": "p9"}, "participants_invitation_key", "participants.invitation"),
    (BATCHES, {**BATCH, "number": 2, "state": "complete"}, "batches_pkey", "batches.id"),
    (
        BATCHES,
        {**BATCH, "id": "b9", "state": "complete"},
        "batches_participant_number_key",
        "batches.participant, batches.number",
    ),
    (BATCHES, {**BATCH, "id": "b9", "number": 2}, "one_open_batch", "batches.participant"),
    (BATCHES, {**BATCH, "id": "b9", "participant": "p9"}, "batches_participant_fkey", "FOREIGN KEY"),
    (ASSIGNMENTS, {**TRIAL, "subject": "s9", "position": 9}, "assignments_pkey", "assignments.id"),
    (
        ASSIGNMENTS,
        {**TRIAL, "id": "a9", "position": 9},
        "assignments_participant_subject_key",
        "assignments.participant, assignments.subject",
    ),
    (
        ASSIGNMENTS,
        {**TRIAL, "id": "a9", "subject": "s9"},
        "assignments_batch_position_key",
        "assignments.batch, assignments.position",
    ),
    (
        ASSIGNMENTS,
        {**TRIAL, "id": "a9", "subject": "s9", "position": 9, "batch": "b9"},
        "assignments_batch_fkey",
        "FOREIGN KEY",
    ),
    (ANSWERS, {**ANSWER, "assignment": "a2"}, "answers_pkey", "answers.key"),
    (ANSWERS, {**ANSWER, "key": "k9"}, "answers_assignment_key", "answers.assignment"),
    (ANSWERS, {**ANSWER, "key": "k9", "assignment": "a9"}, "answers_assignment_fkey", "FOREIGN KEY"),
]


def test_every_constraint_refuses_by_its_name(database_url):
    with Store.open(database_url) as store:
        store.prepare([], (), "f")
    engine = create_engine(parse_address(database_url))
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        for table, row in THERE:
            connection.execute(insert(table), row)
        for table, row, name, words in REFUSED:
            with pytest.raises(IntegrityError) as refused, connection.begin_nested():
                connection.execute(insert(table), row)
            if engine.dialect.name == "sqlite":
                assert words in str(refused.value.orig), name
            else:
                assert refused.value.orig.diag.constraint_name == name
    engine.dispose()


def test_the_list_above_names_every_unique_constraint_and_index():
    unique = sum(
        len([one for one in table.constraints if type(one).__name__ == "UniqueConstraint"])
        + len([one for one in table.indexes if one.unique])
        for table in (FACTS, ITEMS, PROGRESS, PARTICIPANTS, BATCHES, ASSIGNMENTS, ANSWERS)
    )
    named = {name for _, _, name, words in REFUSED if not name.endswith("_pkey") and words != "FOREIGN KEY"}
    assert len(named) == unique
