"""Trials shown and answered; an answer is one transaction, on disk before it is acknowledged.

Statements are built once, with named parameters: building them took as long as running them.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, and_, bindparam, func, insert, select, update

from hardlook.collect.store.batches import TRIAL_COLUMNS, close_batch, make_trial, set_columns
from hardlook.collect.store.records import (
    ID,
    Needed,
    NewAnswer,
    Refusal,
    Stored,
    Trial,
    answer_row,
    check_number,
    is_storable,
)
from hardlook.collect.store.tables import ANSWERS, ASSIGNMENTS, BATCHES, ITEMS

_REFUSED = {
    "answered": ("already-answered", "this trial has an answer"),
    "returned": ("returned", "this trial was given to somebody else after a long pause"),
}

_UNKNOWN = ("unknown-trial", "there is no such trial")

_THIS_TRIAL = ASSIGNMENTS.c.id == bindparam("trial")

_OWN_TRIAL = and_(_THIS_TRIAL, ASSIGNMENTS.c.participant == bindparam("person"))

_ASSIGNED = and_(_THIS_TRIAL, ASSIGNMENTS.c.state == "assigned")

_FIND_TRIAL = select(*TRIAL_COLUMNS).join(ITEMS, ITEMS.c.id == ASSIGNMENTS.c.item).where(_OWN_TRIAL)

_SIBLINGS = ASSIGNMENTS.alias()

_SAME_BATCH = _SIBLINGS.c.batch == ASSIGNMENTS.c.batch

# All that an answer depends on in one query: a round trip to a server costs more than the query itself.
_FIND_PLACE = (
    select(
        ASSIGNMENTS.c.batch,
        ASSIGNMENTS.c.item,
        BATCHES.c.device,
        BATCHES.c.state,
        BATCHES.c.valid,
        select(ANSWERS.c.assignment).where(ANSWERS.c.key == bindparam("sent_key")).scalar_subquery().label("key_is_of"),
        select(func.count()).where(_SAME_BATCH).scalar_subquery().label("of"),
        select(func.count()).where(_SAME_BATCH, _SIBLINGS.c.state == "answered").scalar_subquery().label("answered"),
    )
    .join(BATCHES, BATCHES.c.id == ASSIGNMENTS.c.batch)
    .where(_OWN_TRIAL)
)

_FIND_STATE = select(ASSIGNMENTS.c.state).where(_THIS_TRIAL)

_FIND_BATCH = select(ASSIGNMENTS.c.batch).where(_THIS_TRIAL)

_COUNT_SHOW = (
    update(ASSIGNMENTS)
    .where(_ASSIGNED)
    .values(shows=ASSIGNMENTS.c.shows + 1, shown=func.coalesce(ASSIGNMENTS.c.shown, bindparam("at")))
)

_MARK_ANSWERED = update(ASSIGNMENTS).where(_ASSIGNED).values(state="answered")

# Locks the batch's row before its trials, so that a transaction that returns the batch meanwhile waits its turn.
_TOUCH_BATCH = (
    update(BATCHES)
    .where(BATCHES.c.id == bindparam("in_batch"), BATCHES.c.state == "open")
    .values(touched=bindparam("at"))
)

_INSERT_ANSWER = insert(ANSWERS)


def find_trial(connection: Connection, participant: str, id: str) -> Trial | None:
    """A participant's own trial, or None."""
    if not (is_storable(id, ID) and is_storable(participant, ID)):
        return None
    row = connection.execute(_FIND_TRIAL, {"trial": id, "person": participant}).one_or_none()
    return None if row is None else make_trial(row)


def show_trial(connection: Connection, participant: str, id: str, now: float) -> Trial:
    """Count a show of a trial's pictures; a `Refusal` when it is answered, returned or another participant's."""
    set_columns(connection, participant, now)
    found = find_trial(connection, participant, id)
    if found is None:
        raise Refusal(*_UNKNOWN)
    connection.execute(_TOUCH_BATCH, {"in_batch": connection.scalar(_FIND_BATCH, {"trial": id}), "at": now})
    if not connection.execute(_COUNT_SHOW, {"trial": id, "at": now}).rowcount:
        raise _refusal(connection, id)
    return replace(found, shows=found.shows + 1, shown=now if found.shown is None else found.shown)


def store_answer(connection: Connection, participant: str, new: NewAnswer, needed: Needed, now: float) -> Stored:
    """Store an answer; with the last of its batch the batch is judged and closed.

    The same key for the same trial again changes nothing and is reported as `repeated`.
    """
    row = answer_row(new)
    now = check_number("now", now)
    # First, as in every transaction: it locks the participant's row.
    set_columns(connection, participant, now)
    if not is_storable(new.trial, ID):
        raise Refusal(*_UNKNOWN)
    parameters = {"trial": new.trial, "person": participant, "sent_key": new.key}
    place = connection.execute(_FIND_PLACE, parameters).one_or_none()
    if place is None:
        raise Refusal(*_UNKNOWN)
    if place.key_is_of == new.trial:
        valid = None if place.valid is None else bool(place.valid)
        return Stored(True, place.state != "open", valid, place.answered, place.of)
    if place.key_is_of is not None:
        raise Refusal("key-used", "this key belongs to another answer")
    connection.execute(_TOUCH_BATCH, {"in_batch": place.batch, "at": now})
    if not connection.execute(_MARK_ANSWERED, {"trial": new.trial}).rowcount:
        raise _refusal(connection, new.trial)
    keys = {"assignment": new.trial, "participant": participant, "item": place.item, "device": place.device}
    connection.execute(_INSERT_ANSWER, {**row, **keys, "received": now})
    answered = place.answered + 1
    if answered < place.of:
        return Stored(False, False, None, answered, place.of)
    valid = close_batch(connection, place.batch, place.device, "complete", needed, now)
    return Stored(False, True, valid, answered, place.of)


def _refusal(connection: Connection, trial: str) -> Refusal:
    state = connection.scalar(_FIND_STATE, {"trial": trial})
    return Refusal(*_REFUSED.get(state or "", _UNKNOWN))
