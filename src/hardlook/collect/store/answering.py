"""Trials shown and answered; an answer is one transaction, on disk before it is acknowledged.

Statements are built once, with named values: building them took as long as running them.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import BindParameter, Connection, and_, bindparam, func, insert, select, update

from hardlook.collect.store.assignment import TRIAL_COLUMNS, trial_of
from hardlook.collect.store.checking import ID, number_of, row_of, storable
from hardlook.collect.store.joining import set_columns
from hardlook.collect.store.records import Needed, NewAnswer, Refusal, Stored, Trial
from hardlook.collect.store.returning import close_batch
from hardlook.collect.store.tables import ANSWERS, ASSIGNMENTS, BATCHES, ITEMS

_REFUSED = {
    "answered": ("already-answered", "this trial has an answer"),
    "returned": ("returned", "this trial was given to somebody else after a long pause"),
}
_UNKNOWN = ("unknown-trial", "there is no such trial")

_THIS = ASSIGNMENTS.c.id == bindparam("trial")
_OWN = and_(_THIS, ASSIGNMENTS.c.participant == bindparam("person"))
_ASSIGNED = and_(_THIS, ASSIGNMENTS.c.state == "assigned")
_BATCH: BindParameter[str] = bindparam("in_batch")
_FIND = select(*TRIAL_COLUMNS).join(ITEMS, ITEMS.c.id == ASSIGNMENTS.c.item).where(_OWN)
_TOGETHER = ASSIGNMENTS.alias()
_SAME_BATCH = _TOGETHER.c.batch == ASSIGNMENTS.c.batch
# All that an answer depends on in one go: a round trip to a server costs more than what it asks.
_PLACE = (
    select(
        ASSIGNMENTS.c.batch,
        ASSIGNMENTS.c.item,
        BATCHES.c.device,
        BATCHES.c.state,
        BATCHES.c.valid,
        select(ANSWERS.c.assignment).where(ANSWERS.c.key == bindparam("sent_key")).scalar_subquery().label("key_is_of"),
        select(func.count()).where(_SAME_BATCH).scalar_subquery().label("of"),
        select(func.count()).where(_SAME_BATCH, _TOGETHER.c.state == "answered").scalar_subquery().label("answered"),
    )
    .join(BATCHES, BATCHES.c.id == ASSIGNMENTS.c.batch)
    .where(_OWN)
)
_STATE = select(ASSIGNMENTS.c.state).where(_THIS)
_BATCH_OF = select(ASSIGNMENTS.c.batch).where(_THIS)
_SHOW = (
    update(ASSIGNMENTS)
    .where(_ASSIGNED)
    .values(shows=ASSIGNMENTS.c.shows + 1, shown=func.coalesce(ASSIGNMENTS.c.shown, bindparam("at")))
)
_ANSWER = update(ASSIGNMENTS).where(_ASSIGNED).values(state="answered")
# Of the batch's row, so that it is locked before its trials: whoever gives it back meanwhile waits, or is waited for.
_TOUCH = update(BATCHES).where(BATCHES.c.id == _BATCH, BATCHES.c.state == "open").values(touched=bindparam("at"))
_INSERT = insert(ANSWERS)


def trial(connection: Connection, participant: str, id: str) -> Trial | None:
    """A participant's trial, or None when there is none or it is another's."""
    if not (storable(id, ID) and storable(participant, ID)):
        return None
    row = connection.execute(_FIND, {"trial": id, "person": participant}).one_or_none()
    return None if row is None else trial_of(*row)


def show(connection: Connection, participant: str, id: str, now: float) -> Trial:
    """Count that a trial's pictures are shown; a `Refusal` when it is answered, returned or another's."""
    set_columns(connection, participant, now)
    found = trial(connection, participant, id)
    if found is None:
        raise Refusal(*_UNKNOWN)
    connection.execute(_TOUCH, {"in_batch": connection.scalar(_BATCH_OF, {"trial": id}), "at": now})
    if not connection.execute(_SHOW, {"trial": id, "at": now}).rowcount:
        raise _refusal(connection, id)
    return replace(found, shows=found.shows + 1, shown=now if found.shown is None else found.shown)


def answer(connection: Connection, participant: str, new: NewAnswer, needed: Needed, now: float) -> Stored:
    """Store an answer; with the last of its batch the batch is judged and closed.

    The same key for the same trial again changes nothing and says so.
    """
    row = row_of(new)
    now = number_of("now", now)
    # First, as everywhere: whoever else acts for this participant waits here.
    set_columns(connection, participant, now)
    if not storable(new.trial, ID):
        raise Refusal(*_UNKNOWN)
    asked = {"trial": new.trial, "person": participant, "sent_key": new.key}
    place = connection.execute(_PLACE, asked).one_or_none()
    if place is None:
        raise Refusal(*_UNKNOWN)
    if place.key_is_of == new.trial:
        valid = None if place.valid is None else bool(place.valid)
        return Stored(True, place.state != "open", valid, place.answered, place.of)
    if place.key_is_of is not None:
        raise Refusal("key-used", "this key belongs to another answer")
    connection.execute(_TOUCH, {"in_batch": place.batch, "at": now})
    if not connection.execute(_ANSWER, {"trial": new.trial}).rowcount:
        raise _refusal(connection, new.trial)
    whose = {"assignment": new.trial, "participant": participant, "item": place.item, "device": place.device}
    connection.execute(_INSERT, {**row, **whose, "received": now})
    answered = place.answered + 1
    if answered < place.of:
        return Stored(False, False, None, answered, place.of)
    valid = close_batch(connection, place.batch, place.device, "complete", needed, now)
    return Stored(False, True, valid, answered, place.of)


def _refusal(connection: Connection, trial: str) -> Refusal:
    state = connection.scalar(_STATE, {"trial": trial})
    return Refusal(*_REFUSED.get(state or "", _UNKNOWN))
