"""Participants, the batches of trials that are handed out to them, and their answers.

A batch takes the items with the fewest answers first; no participant gets a subject twice, and no item gets more
answers than its target. An item's count is what it has and awaits on the participant's device, then on all devices;
among equals a hash of participant and item decides, so that participants differ.

>>> from hardlook.collect.study.tasks import Item
>>> items = {name: Item(name, name, "", subject) for name, subject in (("a", "s"), ("b", "s"), ("c", "t"))}
>>> choose_neediest([("a", 1, 1), ("b", 0, 0), ("c", 2, 2)], items, taken=(), participant="p", size=2)
['b', 'c']

A batch is closed with its last answer, or returned when it is abandoned. An item's `pending` counts the trials of open
batches; `valid` counts the answers of closed ones that are near their target, in batches that are valid.

>>> is_valid([1, 1, 0], of=3, needed=lambda clicks: 2), is_valid([1, 1], of=10, needed=lambda clicks: 7)
(True, False)
>>> is_valid([None], of=10, needed=lambda clicks: 7), is_valid([], of=10, needed=lambda clicks: 0)
(True, False)

An answer is one transaction, on disk before it is acknowledged. Statements that an answer needs are built once, with
named parameters: building them took as long as running them.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Literal

from sqlalchemy import Connection, Row, and_, bindparam, case, func, insert, select, update

from hardlook.collect.store.database import Conflict, Database
from hardlook.collect.store.records import (
    ID,
    INVITATION,
    LANGUAGE,
    Batch,
    BatchRules,
    BatchState,
    Needed,
    NewAnswer,
    Participant,
    Refusal,
    Stored,
    Tally,
    Trial,
    answer_row,
    check_number,
    check_text,
    is_storable,
)
from hardlook.collect.store.tables import (
    ANSWERS,
    ASSIGNMENTS,
    BATCHES,
    FACTS,
    FINGERPRINT,
    ITEMS,
    PARTICIPANTS,
    PROGRESS,
    Catalogue,
)
from hardlook.collect.study.tasks import Item

_FIND_PARTICIPANT = select(PARTICIPANTS).where(PARTICIPANTS.c.id == bindparam("person"))
_UPDATE_PARTICIPANT = update(PARTICIPANTS).where(PARTICIPANTS.c.id == bindparam("person"))

_UPDATE_FIRST = {
    name: _UPDATE_PARTICIPANT.values({name: func.coalesce(PARTICIPANTS.c[name], bindparam("at"))})
    for name in ("trained", "finished")
}

# A trial with its item, for `_make_trial`.
_TRIAL_COLUMNS = (
    *(ASSIGNMENTS.c[name] for name in ("id", "position", "state", "shows", "shown")),
    ITEMS.c.id.label("item"),
    *(ITEMS.c[name] for name in ("task", "mode", "subject")),
)

_ALL_DEVICES = PROGRESS.alias()
_COUNT = PROGRESS.c.valid + PROGRESS.c.pending

_COUNT_ALL_DEVICES = select(func.sum(_ALL_DEVICES.c.valid + _ALL_DEVICES.c.pending)).where(
    _ALL_DEVICES.c.item == PROGRESS.c.item
)

_COUNTS = select(PROGRESS.c.item, _COUNT, _COUNT_ALL_DEVICES.scalar_subquery()).where(
    PROGRESS.c.device == bindparam("on"), bindparam("most") > _COUNT
)

_REFUSED = {
    "answered": ("already-answered", "this trial has an answer"),
    "returned": ("returned", "this trial was given to another participant after a long pause"),
}

_UNKNOWN = ("unknown-trial", "there is no such trial")
_THIS_TRIAL = ASSIGNMENTS.c.id == bindparam("trial")
_OWN_TRIAL = and_(_THIS_TRIAL, ASSIGNMENTS.c.participant == bindparam("person"))
_ASSIGNED = and_(_THIS_TRIAL, ASSIGNMENTS.c.state == "assigned")
_FIND_TRIAL = select(*_TRIAL_COLUMNS).join(ITEMS, ITEMS.c.id == ASSIGNMENTS.c.item).where(_OWN_TRIAL)
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

_COUNT_SHOW = (
    update(ASSIGNMENTS)
    .where(_ASSIGNED)
    .values(shows=ASSIGNMENTS.c.shows + 1, shown=func.coalesce(ASSIGNMENTS.c.shown, bindparam("at")))
)

_MARK_ANSWERED = update(ASSIGNMENTS).where(_ASSIGNED).values(state="answered")
_OWN_BATCH = BATCHES.c.id == select(ASSIGNMENTS.c.batch).where(_THIS_TRIAL).scalar_subquery()

# Locks the batch's row before its trials, so that a transaction that returns the batch meanwhile waits its turn.
_TOUCH_BATCH = update(BATCHES).where(_OWN_BATCH, BATCHES.c.state == "open").values(touched=bindparam("at"))


def join(connection: Connection, invitation: str | None, language: str, now: float) -> Participant:
    """The participant of an invitation, a new one where there is none yet; without an invitation always a new one.

    Of two that join by one invitation at once, one fails the unique constraint, is retried and finds the other.
    """
    check_text("language", language, LANGUAGE)
    now = check_number("now", now)
    if invitation is not None:
        check_text("invitation", invitation, INVITATION)
        row = connection.execute(select(PARTICIPANTS).where(PARTICIPANTS.c.invitation == invitation)).one_or_none()
        if row is not None:
            return Participant(*row)
    new = Participant(secrets.token_hex(16), invitation, language, None, now, None, now, None)
    connection.execute(insert(PARTICIPANTS), vars(new))
    return new


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


def count_work(connection: Connection, id: str) -> Tally:
    """Answers and batches of a participant so far; zeros for an unknown one."""
    if not is_storable(id, ID):
        return Tally(0, 0, 0)
    answered = select(func.count()).where(ASSIGNMENTS.c.participant == id, ASSIGNMENTS.c.state == "answered")
    by_state = select(BATCHES.c.state, func.count()).where(BATCHES.c.participant == id).group_by(BATCHES.c.state)
    counts = {state: count for state, count in connection.execute(by_state)}
    return Tally(connection.scalar(answered) or 0, counts.get("complete", 0), sum(counts.values()))


def next_batch(database: Database, catalogue: Catalogue, id: str, rules: BatchRules, now: float) -> Batch | None:
    """The open batch of a participant, or a new one, or None when nothing is left for them."""
    device, open_batch = database.read(lambda opened: (_device(opened, id, catalogue), _open_batch(opened, id)))
    if open_batch is not None and open_batch.device != device:
        # The device was changed: what was answered on the old one is judged, the rest goes to others.
        database.write(return_batch, open_batch.id, rules.needed, now, untouched_since=now)
    elif open_batch is None:
        return_abandoned(database, rules.return_after, now, rules.needed)
    return database.write(_hand_out, catalogue, id, rules, now)


def choose_neediest(
    counts: Iterable[tuple[str, int, int]],
    items: Mapping[str, Item],
    *,
    taken: Collection[str],
    participant: str,
    size: int,
) -> list[str]:
    """Ids of the `size` neediest items of other subjects than `taken`; `counts` are (item, on this device, on all)."""
    # The participant is hashed once and the hash continued: there may be many items.
    start = blake2b(participant.encode(), digest_size=8)

    def draw(item: str) -> bytes:
        state = start.copy()
        state.update(item.encode())
        return state.digest()

    seen = set(taken)
    chosen: list[str] = []
    for _, _, _, item in sorted((here, everywhere, draw(item), item) for item, here, everywhere in counts):
        if len(chosen) == size:
            break
        if item in items and items[item].subject not in seen:
            seen.add(items[item].subject)
            chosen.append(item)
    return chosen


def _hand_out(connection: Connection, catalogue: Catalogue, id: str, rules: BatchRules, now: float) -> Batch | None:
    touch(connection, id, now)
    open_batch = _open_batch(connection, id)
    if open_batch is not None:
        return open_batch
    done = count_work(connection, id)
    # Answers too, since a batch that was returned half done is not complete, and yet was work.
    if done.complete < rules.most_batches and done.answered < rules.most_batches * rules.size:
        device = _device(connection, id, catalogue)
        claimed = _claim(connection, catalogue, id, device, rules)
        if claimed:
            return _write_batch(connection, catalogue, id, device, claimed, done.batches + 1, now)
    set_first(connection, id, now, "finished")
    return None


def _claim(connection: Connection, catalogue: Catalogue, id: str, device: str, rules: BatchRules) -> list[str]:
    # One transaction at a time: else all would choose the same few items from counts that are out of date.
    connection.execute(select(FACTS.c.value).where(FACTS.c.name == FINGERPRINT).with_for_update())
    taken = set(connection.scalars(select(ASSIGNMENTS.c.subject).where(ASSIGNMENTS.c.participant == id)))
    rows = connection.execute(_COUNTS, {"on": device, "most": rules.target}).all()
    # PostgreSQL sums integers to decimals.
    counts = [(item, here, int(everywhere)) for item, here, everywhere in rows]
    wanted = choose_neediest(counts, catalogue.items, taken=taken, participant=id, size=rules.size)
    _lock_progress(connection, device, wanted)
    # Checked again while writing: no item beyond its target, whatever was counted above.
    raised = connection.execute(
        update(PROGRESS)
        .where(PROGRESS.c.device == device, PROGRESS.c.item.in_(wanted), _COUNT < rules.target)
        .values(pending=PROGRESS.c.pending + 1)
    ).rowcount
    if raised != len(wanted):
        raise Conflict
    return wanted


def _write_batch(
    connection: Connection, catalogue: Catalogue, id: str, device: str, items: list[str], number: int, now: float
) -> Batch:
    chosen = enumerate(catalogue.items[item] for item in items)
    trials = tuple(Trial(secrets.token_hex(16), position, item, "assigned", 0) for position, item in chosen)
    batch = Batch(secrets.token_hex(16), number, device, trials)
    row = {"id": batch.id, "participant": id, "number": number, "device": device, "state": "open"}
    connection.execute(insert(BATCHES), {**row, "opened": now, "touched": now})
    shared = {"batch": batch.id, "participant": id, "state": "assigned", "shows": 0}
    rows = [
        {"id": trial.id, "position": trial.position, "item": trial.item.id, "subject": trial.item.subject, **shared}
        for trial in trials
    ]
    connection.execute(insert(ASSIGNMENTS), rows)
    return batch


def _open_batch(connection: Connection, id: str) -> Batch | None:
    own = and_(BATCHES.c.participant == id, BATCHES.c.state == "open")
    batch = connection.execute(select(BATCHES.c.id, BATCHES.c.number, BATCHES.c.device).where(own)).one_or_none()
    if batch is None:
        return None
    trials = connection.execute(
        select(*_TRIAL_COLUMNS)
        .join(ITEMS, ITEMS.c.id == ASSIGNMENTS.c.item)
        .where(ASSIGNMENTS.c.batch == batch.id)
        .order_by(ASSIGNMENTS.c.position)
    ).all()
    return Batch(*batch, tuple(_make_trial(trial) for trial in trials))


def _make_trial(row: Row[Any]) -> Trial:
    item = Item(row.item, row.task, row.mode, row.subject)
    return Trial(row.id, row.position, item, row.state, row.shows, row.shown)


def _device(connection: Connection, id: str, catalogue: Catalogue) -> str:
    found = find_participant(connection, id)
    if found is None:
        raise Refusal("unknown-participant", "there is no such participant")
    if found.device is None or found.device not in catalogue.devices:
        raise Refusal("no-device", "the device is not known yet")
    return found.device


def is_valid(insides: Sequence[int | None], *, of: int, needed: Needed) -> bool:
    """Whether a batch of `of` trials counts, by which clicks lie inside; one of reviews or ratings (None) does."""
    clicks = [inside for inside in insides if inside is not None]
    return sum(clicks) >= needed(of) if clicks else bool(insides)


def close_batch(connection: Connection, batch: str, device: str, state: BatchState, needed: Needed, now: float) -> bool:
    """Close a batch whose row this transaction has locked; whether it is valid."""
    trials = connection.execute(
        select(ASSIGNMENTS.c.item, ASSIGNMENTS.c.state, ANSWERS.c.inside, ANSWERS.c.near)
        .outerjoin(ANSWERS, ANSWERS.c.assignment == ASSIGNMENTS.c.id)
        .where(ASSIGNMENTS.c.batch == batch)
    ).all()
    answered = [trial for trial in trials if trial.state == "answered"]
    valid = is_valid([trial.inside for trial in answered], of=len(trials), needed=needed)
    counting = [trial.item for trial in answered if valid and trial.near != 0]
    items = [trial.item for trial in trials]
    _lock_progress(connection, device, items)
    counts = case((PROGRESS.c.item.in_(counting), 1), else_=0)
    connection.execute(
        update(PROGRESS)
        .where(PROGRESS.c.device == device, PROGRESS.c.item.in_(items))
        .values(pending=PROGRESS.c.pending - 1, valid=PROGRESS.c.valid + counts)
    )
    unanswered = and_(ASSIGNMENTS.c.batch == batch, ASSIGNMENTS.c.state == "assigned")
    connection.execute(update(ASSIGNMENTS).where(unanswered).values(state="returned"))
    closed = {"state": state, "valid": int(valid), "closed": now}
    connection.execute(update(BATCHES).where(BATCHES.c.id == batch).values(closed))
    return valid


def return_batch(connection: Connection, batch: str, needed: Needed, now: float, untouched_since: float) -> bool:
    """Return an open batch unless its participant was active since; whether it was returned."""
    stale = and_(BATCHES.c.id == batch, BATCHES.c.state == "open", BATCHES.c.touched <= untouched_since)
    # An update for its lock: it waits for an answer that is being stored, and then sees its time.
    if not connection.execute(update(BATCHES).where(stale).values(touched=BATCHES.c.touched)).rowcount:
        return False
    device = connection.execute(select(BATCHES.c.device).where(BATCHES.c.id == batch)).scalar_one()
    close_batch(connection, batch, device, "returned", needed, now)
    return True


def return_abandoned(database: Database, return_after: float, now: float, needed: Needed) -> int:
    """Return all open batches whose participant was inactive for `return_after` seconds; how many."""
    since = check_number("now", now) - return_after
    stale = select(BATCHES.c.id).where(BATCHES.c.state == "open", BATCHES.c.touched <= since).order_by(BATCHES.c.id)
    batches = database.read(lambda connection: connection.scalars(stale).all())
    # One transaction per batch, so that no participant waits for all of them.
    return sum(database.write(return_batch, batch, needed, now, since) for batch in batches)


def _lock_progress(connection: Connection, device: str, items: Collection[str]) -> None:
    """Lock the progress rows of these items, always in one order, so that no two transactions wait for each other."""
    connection.execute(
        select(PROGRESS.c.item)
        .where(PROGRESS.c.device == device, PROGRESS.c.item.in_(items))
        .order_by(PROGRESS.c.item)
        .with_for_update(key_share=True)
    )


def find_trial(connection: Connection, participant: str, id: str) -> Trial | None:
    """A participant's own trial, or None."""
    if not (is_storable(id, ID) and is_storable(participant, ID)):
        return None
    row = connection.execute(_FIND_TRIAL, {"trial": id, "person": participant}).one_or_none()
    return None if row is None else _make_trial(row)


def show_trial(connection: Connection, participant: str, id: str, now: float) -> Trial:
    """Count a show of a trial's pictures; a `Refusal` when it is answered, returned or another participant's."""
    set_columns(connection, participant, now)
    found = find_trial(connection, participant, id)
    if found is None:
        raise Refusal(*_UNKNOWN)
    connection.execute(_TOUCH_BATCH, {"trial": id, "at": now})
    if not connection.execute(_COUNT_SHOW, {"trial": id, "at": now}).rowcount:
        raise _refusal(connection, id)
    return replace(found, shows=found.shows + 1, shown=now if found.shown is None else found.shown)


def store_answer(connection: Connection, participant: str, new: NewAnswer, needed: Needed, now: float) -> Stored:
    """Store an answer, and with the last judge and close its batch; the same key and trial again is `repeated`."""
    row = answer_row(new)
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
    connection.execute(_TOUCH_BATCH, {"trial": new.trial, "at": now})
    if not connection.execute(_MARK_ANSWERED, {"trial": new.trial}).rowcount:
        raise _refusal(connection, new.trial)
    keys = {"assignment": new.trial, "participant": participant, "item": place.item, "device": place.device}
    connection.execute(insert(ANSWERS), {**row, **keys, "received": now})
    answered = place.answered + 1
    if answered < place.of:
        return Stored(False, False, None, answered, place.of)
    valid = close_batch(connection, place.batch, place.device, "complete", needed, now)
    return Stored(False, True, valid, answered, place.of)


def _refusal(connection: Connection, trial: str) -> Refusal:
    state = connection.scalar(_FIND_STATE, {"trial": trial})
    return Refusal(*_REFUSED.get(state or "", _UNKNOWN))
