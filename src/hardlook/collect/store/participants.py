"""Participants: joining by an invitation, an open link or a platform's id, practice, settings, and deletion.

Batches of trials and answers are in `batches`. Statements that an answer needs are built once, with named parameters.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping
from typing import Any, Literal

from sqlalchemy import Connection, and_, bindparam, case, delete, func, insert, or_, select, update

from hardlook.collect.store.records import (
    ID,
    INVITATION,
    LANGUAGE,
    PERSON,
    Participant,
    Practice,
    Refusal,
    check_number,
    check_text,
    is_storable,
)
from hardlook.collect.store.tables import (
    ANSWERS,
    ASSIGNMENTS,
    BATCH_ADDRESSES,
    BATCHES,
    DELETED,
    FACTS,
    LOCK_ALL,
    NUMBERS,
    PARTICIPANTS,
    PLATFORM_IDS,
    PRACTICE,
    PROGRESS,
    RULES,
    lock_progress,
)

_FIND_PARTICIPANT = select(PARTICIPANTS).where(PARTICIPANTS.c.id == bindparam("person"))
_UPDATE_PARTICIPANT = update(PARTICIPANTS).where(PARTICIPANTS.c.id == bindparam("person"))

_UPDATE_FIRST = {
    name: _UPDATE_PARTICIPANT.values({name: func.coalesce(PARTICIPANTS.c[name], bindparam("at"))})
    for name in ("trained", "finished")
}


def join(
    connection: Connection,
    invitation: str | None,
    language: str,
    now: float,
    platform_ids: Mapping[str, str] | None = None,
) -> Participant:
    """The participant of an invitation or of a platform's id, a new one where there is none yet; else always a new one.

    `platform_ids` are a platform's parameters by name, the person's own id first. Of two that join by one invitation
    or id at once, one fails the unique constraint, is retried and finds the other.
    """
    check_text("language", language, LANGUAGE)
    now = check_number("now", now)
    if invitation is not None:
        check_text("invitation", invitation, INVITATION)
        if known := find_invited(connection, invitation):
            return known
    person = check_text("id", next(iter(platform_ids.values())), PERSON) if platform_ids else None
    if person is not None and (known := find_person(connection, person)):
        update_platform_ids(connection, known.id, platform_ids or {})
        return known
    new = Participant(secrets.token_hex(16), invitation, language, None, now, None, now, None)
    # One at a time, for the numbers.
    connection.execute(LOCK_ALL)
    connection.execute(insert(PARTICIPANTS), vars(new))
    connection.execute(insert(NUMBERS), {"participant": new.id, "number": _find_free_number(connection)})
    if platform_ids:
        parameters = {name: check_text(name, value, PERSON) for name, value in platform_ids.items()}
        row = {"participant": new.id, "person": person, "parameters": json.dumps(parameters)}
        connection.execute(insert(PLATFORM_IDS), row)
    return new


def update_platform_ids(connection: Connection, id: str, platform_ids: Mapping[str, str]) -> None:
    """Keep the parameters of the latest visit of the same person; those of another person change nothing.

    On MTurk a task that is returned and accepted again has a new id, and that is the one to complete.
    """
    stored = find_platform_ids(connection, id)
    current = stored | {name: check_text(name, value, PERSON) for name, value in platform_ids.items()}
    person = next(iter(platform_ids), "")
    if current != stored and stored.get(person) == current.get(person):
        own = PLATFORM_IDS.c.participant == id
        connection.execute(update(PLATFORM_IDS).where(own).values(parameters=json.dumps(current)))


def find_invited(connection: Connection, invitation: str) -> Participant | None:
    """The participant who joined by an invitation, or None."""
    row = connection.execute(select(PARTICIPANTS).where(PARTICIPANTS.c.invitation == invitation)).one_or_none()
    return None if row is None else Participant(*row)


def find_person(connection: Connection, person: str) -> Participant | None:
    """The participant who came with a platform's id, or None."""
    if not is_storable(person, PERSON):
        return None
    joined = select(PARTICIPANTS).join(PLATFORM_IDS, PLATFORM_IDS.c.participant == PARTICIPANTS.c.id)
    row = connection.execute(joined.where(PLATFORM_IDS.c.person == person)).one_or_none()
    return None if row is None else Participant(*row)


def find_platform_ids(connection: Connection, id: str) -> dict[str, str]:
    """The parameters with which a platform sent a participant, by name; empty without a platform."""
    text = connection.scalar(select(PLATFORM_IDS.c.parameters).where(PLATFORM_IDS.c.participant == id))
    parameters: dict[str, str] = json.loads(text or "{}")
    return parameters


def show_practice(connection: Connection, id: str, trial: str, now: float) -> None:
    """Note that a trial of the training round is shown."""
    set_columns(connection, id, now)
    own = and_(PRACTICE.c.participant == id, PRACTICE.c.trial == trial)
    if not connection.execute(update(PRACTICE).where(own).values(shown=now)).rowcount:
        row = {"participant": id, "trial": trial, "shown": now, "tries": 0, "passed": 0}
        connection.execute(insert(PRACTICE), row)


def answer_practice(connection: Connection, id: str, trial: str, passed: bool, now: float) -> None:
    """Count an answer to a trial of the training round; once passed, it stays so."""
    set_columns(connection, id, now)
    own = and_(PRACTICE.c.participant == id, PRACTICE.c.trial == trial)
    values = {"tries": PRACTICE.c.tries + 1} | ({"passed": 1} if passed else {})
    connection.execute(update(PRACTICE).where(own).values(values))


def list_practice(connection: Connection, id: str) -> dict[str, Practice]:
    """What a participant did of the training round, by trial."""
    columns = (PRACTICE.c.trial, PRACTICE.c.shown, PRACTICE.c.tries, PRACTICE.c.passed)
    rows = connection.execute(select(*columns).where(PRACTICE.c.participant == id))
    return {row.trial: Practice(row.trial, row.shown, row.tries, bool(row.passed)) for row in rows}


def find_participant(connection: Connection, id: str) -> Participant | None:
    """The participant of an id, or None."""
    if not is_storable(id, ID):
        return None
    row = connection.execute(_FIND_PARTICIPANT, {"person": id}).one_or_none()
    return None if row is None else Participant(*row)


def set_columns(connection: Connection, /, id: str, now: float, **values: Any) -> None:
    """Set columns and the time last seen; a `Refusal` where there is no such participant.

    In every transaction this comes first: the participant's row is locked before batches and progress, so that no two
    transactions wait for each other.
    """
    if is_storable(id, ID):
        found = connection.execute(_UPDATE_PARTICIPANT, {"person": id, "seen": check_number("now", now), **values})
        if found.rowcount:
            return
    raise Refusal("unknown-participant", "there is no such participant")


def set_first(connection: Connection, id: str, now: float, column: Literal["trained", "finished"]) -> None:
    """Set the time of an event when it happens first; later ones change nothing."""
    set_columns(connection, id, now)
    connection.execute(_UPDATE_FIRST[column], {"person": id, "at": now})


def touch(connection: Connection, id: str, now: float) -> None:
    """Note that a participant is active, which keeps their open batch."""
    set_columns(connection, id, now)
    own = (BATCHES.c.participant == id) & (BATCHES.c.state == "open")
    connection.execute(update(BATCHES).where(own).values(touched=now))


def delete_participant(connection: Connection, id: str) -> int:
    """Delete all that is stored about a participant, on their request, and return the number that they had.

    What they answered no longer counts, so their tasks are assigned to others again. Only their number is kept: it is
    not reused, and the numbers of all others stay as they are in files that were exported before. An unknown id is a
    `Refusal`.
    """
    # Locks in the order of every other transaction: the participant, the one row that all wait for, batches, progress.
    own = PARTICIPANTS.c.id == (id if is_storable(id, ID) else "")
    if connection.scalar(select(PARTICIPANTS.c.id).where(own).with_for_update()) is None:
        raise Refusal("unknown-participant", "there is no such participant")
    connection.execute(LOCK_ALL)
    number: int = connection.execute(select(NUMBERS.c.number).where(NUMBERS.c.participant == id)).scalar_one()
    _take_back_progress(connection, id)
    batches = select(BATCHES.c.id).where(BATCHES.c.participant == id)
    connection.execute(delete(BATCH_ADDRESSES).where(BATCH_ADDRESSES.c.batch.in_(batches)))
    for table in (ANSWERS, ASSIGNMENTS, BATCHES, PRACTICE, PLATFORM_IDS, NUMBERS):
        connection.execute(delete(table).where(table.c.participant == id))
    connection.execute(delete(PARTICIPANTS).where(own))
    connection.execute(insert(DELETED), {"number": number})
    _forget_in_rules(connection, {id, str(number)})
    return number


def _find_free_number(connection: Connection) -> int:
    """The number after all that were given so far."""
    given = (connection.scalar(select(func.max(column))) for column in (NUMBERS.c.number, DELETED.c.number))
    return 1 + max(number or 0 for number in given)


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
