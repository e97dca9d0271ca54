"""Deleting all that is stored about a participant, on their request.

What they answered no longer counts, so their tasks are handed out to others again. Only their number is kept: it is
not given again, and the numbers of all others stay as they are in files that were exported before.

>>> number_participants(4, deleted={2, 4})
[1, 3, 5, 6]
"""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import count, islice

from sqlalchemy import Connection, and_, case, delete, func, insert, or_, select, update

from hardlook.collect.store.batches import lock_progress
from hardlook.collect.store.records import ID, Refusal, is_storable
from hardlook.collect.store.tables import (
    ANSWERS,
    ASSIGNMENTS,
    BATCHES,
    DELETED,
    FACTS,
    FINGERPRINT,
    PARTICIPANTS,
    PLATFORM_IDS,
    PRACTICE,
    PROGRESS,
    RULES,
)


def number_participants(people: int, deleted: Collection[int]) -> list[int]:
    """The numbers of so many participants in the order of joining: from 1, without those of deleted ones."""
    return list(islice((number for number in count(1) if number not in deleted), people))


def delete_participant(connection: Connection, id: str) -> int:
    """Delete everything about a participant; the number that they had; a `Refusal` where there is no such one."""
    # Locks in the order of every other transaction: the participant, the one row that all wait for, batches, progress.
    own = PARTICIPANTS.c.id == (id if is_storable(id, ID) else "")
    if connection.scalar(select(PARTICIPANTS.c.id).where(own).with_for_update()) is None:
        raise Refusal("unknown-participant", "there is no such participant")
    connection.execute(select(FACTS.c.value).where(FACTS.c.name == FINGERPRINT).with_for_update())
    number = _find_number(connection, id)
    _take_back_progress(connection, id)
    for table in (ANSWERS, ASSIGNMENTS, BATCHES, PRACTICE, PLATFORM_IDS):
        connection.execute(delete(table).where(table.c.participant == id))
    connection.execute(delete(PARTICIPANTS).where(own))
    connection.execute(insert(DELETED), {"number": number})
    _forget_in_rules(connection, {id, str(number)})
    return number


def _find_number(connection: Connection, id: str) -> int:
    order = select(PARTICIPANTS.c.id).order_by(PARTICIPANTS.c.joined, PARTICIPANTS.c.id)
    ids = connection.scalars(order).all()
    numbers = number_participants(len(ids), set(connection.scalars(select(DELETED.c.number))))
    return numbers[ids.index(id)]


def _take_back_progress(connection: Connection, id: str) -> None:
    """Subtract what the participant's batches added to the counts of their items."""
    of_open = BATCHES.c.state == "open"
    counted = and_(BATCHES.c.valid == 1, or_(ANSWERS.c.near.is_(None), ANSWERS.c.near != 0), ANSWERS.c.key.is_not(None))
    trials = connection.execute(
        select(BATCHES.c.device, ASSIGNMENTS.c.item, of_open.label("pending"))
        .join(ASSIGNMENTS, ASSIGNMENTS.c.batch == BATCHES.c.id)
        .outerjoin(ANSWERS, ANSWERS.c.assignment == ASSIGNMENTS.c.id)
        .where(BATCHES.c.participant == id, or_(of_open, and_(~of_open, counted)))
    ).all()
    for device in sorted({trial.device for trial in trials}):
        here = [trial for trial in trials if trial.device == device]
        pending = [trial.item for trial in here if trial.pending]
        valid = [trial.item for trial in here if not trial.pending]
        lock_progress(connection, device, [*pending, *valid])
        connection.execute(
            update(PROGRESS)
            .where(PROGRESS.c.device == device, PROGRESS.c.item.in_([*pending, *valid]))
            .values(
                pending=PROGRESS.c.pending - case((PROGRESS.c.item.in_(pending), 1), else_=0),
                valid=PROGRESS.c.valid - case((PROGRESS.c.item.in_(valid), 1), else_=0),
            )
        )


def _forget_in_rules(connection: Connection, names: Collection[str]) -> None:
    own = FACTS.c.name == RULES
    rules = json.loads(connection.scalar(select(FACTS.c.value).where(own)) or "{}")
    if not set(rules.get("participants", ())) & set(names):
        return
    rules["participants"] = [name for name in rules["participants"] if name not in names]
    connection.execute(update(FACTS).where(own).values(value=json.dumps(rules, sort_keys=True)))


def count_deleted(connection: Connection) -> int:
    """How many participants were deleted."""
    return connection.scalar(select(func.count()).select_from(DELETED)) or 0
