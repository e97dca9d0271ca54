"""Participants: who joins by an invitation, an open link or a platform's id, their practice, and what is set of them.

Batches of trials and answers are in `batches`. Statements that an answer needs are built once, with named parameters.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy import Connection, and_, bindparam, func, insert, select, update

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
from hardlook.collect.store.tables import BATCHES, PARTICIPANTS, PLATFORM_IDS, PRACTICE

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
        return known
    new = Participant(secrets.token_hex(16), invitation, language, None, now, None, now, None)
    connection.execute(insert(PARTICIPANTS), vars(new))
    if platform_ids:
        parameters = {name: check_text(name, value, PERSON) for name, value in platform_ids.items()}
        row = {"participant": new.id, "person": person, "parameters": json.dumps(parameters)}
        connection.execute(insert(PLATFORM_IDS), row)
    return new


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
