"""Participants: joining once per invitation, and what is known of each."""

from __future__ import annotations

import secrets
from typing import Any, Literal

from sqlalchemy import Connection, bindparam, func, insert, select, update

from hardlook.collect.store.checking import ID, INVITATION, LANGUAGE, number_of, storable, text_of
from hardlook.collect.store.records import Participant, Refusal, Tally
from hardlook.collect.store.tables import ASSIGNMENTS, BATCHES, PARTICIPANTS

_COLUMNS = (
    PARTICIPANTS.c.id,
    PARTICIPANTS.c.invitation,
    PARTICIPANTS.c.language,
    PARTICIPANTS.c.device,
    PARTICIPANTS.c.joined,
    PARTICIPANTS.c.trained,
    PARTICIPANTS.c.seen,
    PARTICIPANTS.c.finished,
)
_FIND = select(*_COLUMNS).where(PARTICIPANTS.c.id == bindparam("person"))
_UPDATE = update(PARTICIPANTS).where(PARTICIPANTS.c.id == bindparam("person"))
_UPDATE_FIRST = {
    name: _UPDATE.values({name: func.coalesce(PARTICIPANTS.c[name], bindparam("at"))})
    for name in ("trained", "finished")
}


def join(connection: Connection, invitation: str | None, language: str, now: float) -> Participant:
    """The participant of an invitation, new where there is none yet; without an invitation always a new one.

    Two that join by one invitation at once: the unique constraint fails one of them, and done again it finds the other.
    """
    text_of("language", language, LANGUAGE)
    now = number_of("now", now)
    if invitation is not None:
        text_of("invitation", invitation, INVITATION)
        row = connection.execute(select(*_COLUMNS).where(PARTICIPANTS.c.invitation == invitation)).one_or_none()
        if row is not None:
            return Participant(*row)
    new = Participant(secrets.token_hex(16), invitation, language, None, now, None, now, None)
    connection.execute(insert(PARTICIPANTS), vars(new))
    return new


def participant(connection: Connection, id: str) -> Participant | None:
    """The participant of an id, or None."""
    if not storable(id, ID):
        return None
    row = connection.execute(_FIND, {"person": id}).one_or_none()
    return None if row is None else Participant(*row)


def set_columns(connection: Connection, id: str, now: float, **values: Any) -> None:
    """Note a sign of life and these columns; a `Refusal` where there is no such participant.

    In every transaction this comes first: it locks the participant's row, then batches and progress follow, so that
    no two transactions wait for each other.
    """
    if storable(id, ID):
        found = connection.execute(_UPDATE, {"person": id, "seen": number_of("now", now), **values})
        if found.rowcount:
            return
    raise Refusal("unknown-participant", "there is no such participant")


def set_first(connection: Connection, id: str, now: float, column: Literal["trained", "finished"]) -> None:
    """Note the first time of an event in the participant's life; later ones change nothing."""
    set_columns(connection, id, now)
    connection.execute(_UPDATE_FIRST[column], {"person": id, "at": now})


def touch(connection: Connection, id: str, now: float) -> None:
    """A sign of life, so that the open batch is not given to somebody else."""
    set_columns(connection, id, now)
    own = (BATCHES.c.participant == id) & (BATCHES.c.state == "open")
    connection.execute(update(BATCHES).where(own).values(touched=now))


def tally(connection: Connection, id: str) -> Tally:
    """How much a participant did so far; nothing for one that is not known."""
    if not storable(id, ID):
        return Tally(0, 0, 0)
    answered = select(func.count()).where(ASSIGNMENTS.c.participant == id, ASSIGNMENTS.c.state == "answered")
    states = connection.execute(
        select(BATCHES.c.state, func.count()).where(BATCHES.c.participant == id).group_by(BATCHES.c.state)
    ).all()
    counts = {state: count for state, count in states}
    return Tally(connection.scalar(answered) or 0, counts.get("complete", 0), sum(counts.values()))
