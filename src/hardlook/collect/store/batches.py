"""The batches of trials that are assigned to participants, and their answers.

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
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, case, delete, func, insert, or_, select, update

from hardlook.collect.store.database import Conflict, Database
from hardlook.collect.store.participants import find_participant, set_columns, set_first, touch
from hardlook.collect.store.records import (
    ADDRESS,
    ID,
    Batch,
    BatchRules,
    BatchState,
    IsTooQuick,
    Needed,
    NewAnswer,
    Refusal,
    Stored,
    Tally,
    Trial,
    answer_row,
    check_number,
    check_text,
    is_storable,
    never_too_quick,
)
from hardlook.collect.store.tables import (
    ANSWERS,
    ASSIGNMENTS,
    BATCH_ADDRESSES,
    BATCHES,
    ITEMS,
    LOCK_ALL,
    PARTICIPANTS,
    PLATFORM_IDS,
    PROGRESS,
    Catalogue,
    lock_progress,
)
from hardlook.collect.study.tasks import CHECK_SUBJECT, Item

# Seconds after which somebody in the practice keeps no place any longer, however active.
LONGEST_PRACTICE = 20 * 60.0

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

_WANTED = and_(PROGRESS.c.device == bindparam("on"), bindparam("most") > _COUNT)
_COUNTS = select(PROGRESS.c.item, _COUNT, _COUNT_ALL_DEVICES.scalar_subquery()).where(_WANTED)
_WANTED_ITEMS = select(PROGRESS.c.item).where(_WANTED)
_COUNT_WANTED: Select[tuple[Any]] = (
    select(func.sum(bindparam("most") - _COUNT))
    .select_from(PROGRESS)
    .join(ITEMS, ITEMS.c.id == PROGRESS.c.item)
    .where(_WANTED, ~ITEMS.c.subject.startswith(CHECK_SUBJECT, autoescape=True))
)
_OPEN = BATCHES.c.state == "open"
_COUNT_ADDRESS = select(func.count()).where(BATCH_ADDRESSES.c.address == bindparam("from"))
_HAS_ANSWER = select(ANSWERS.c.key).join(ASSIGNMENTS, ASSIGNMENTS.c.id == ANSWERS.c.assignment)

# Open batches that were left: not touched for long, or without an answer some time after they were assigned.
_ABANDONED = and_(
    _OPEN,
    or_(
        BATCHES.c.touched <= bindparam("touched_since"),
        and_(
            BATCHES.c.opened <= bindparam("opened_since"),
            ~_HAS_ANSWER.where(ASSIGNMENTS.c.batch == BATCHES.c.id).exists(),
        ),
    ),
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

# What tells whether a batch was answered in less time than it takes.
_TIMED_COLUMNS = (ITEMS.c.mode, ASSIGNMENTS.c.shown, ANSWERS.c.received)
_TIMED_ANSWERS = (
    select(*_TIMED_COLUMNS)
    .select_from(ASSIGNMENTS)
    .join(ANSWERS, ANSWERS.c.assignment == ASSIGNMENTS.c.id)
    .join(ITEMS, ITEMS.c.id == ASSIGNMENTS.c.item)
)

_COUNT_SHOW = (
    update(ASSIGNMENTS)
    .where(_ASSIGNED)
    .values(shows=ASSIGNMENTS.c.shows + 1, shown=func.coalesce(ASSIGNMENTS.c.shown, bindparam("at")))
)

_MARK_ANSWERED = update(ASSIGNMENTS).where(_ASSIGNED).values(state="answered")
_OWN_BATCH = BATCHES.c.id == select(ASSIGNMENTS.c.batch).where(_THIS_TRIAL).scalar_subquery()

# Locks the batch's row before its trials, so that a transaction that returns the batch at the same time waits.
_TOUCH_BATCH = update(BATCHES).where(_OWN_BATCH, BATCHES.c.state == "open").values(touched=bindparam("at"))


def list_devices_with_work(
    database: Database, catalogue: Catalogue, rules: BatchRules, now: float, participant: str = ""
) -> set[str]:
    """The devices on which items still want answers and await too few; abandoned batches are returned first.

    Work that people in the practice are about to get is not there for others: see `count_reserved`. `participant` is
    who asks, if they have joined.
    """

    def find(connection: Connection) -> set[str]:
        return {
            device for device in catalogue.devices if _has_work(connection, catalogue, device, rules, now, participant)
        }

    found = database.read(find)
    if found != catalogue.devices and return_abandoned(database, rules, now):
        found = database.read(find)
    return found


def count_reserved(connection: Connection, device: str, rules: BatchRules, now: float, participant: str = "") -> int:
    """The places on a device that are kept for people between their consent and their first batch.

    A place is kept for people with an invitation or a platform's id, while they are active; those of an open link keep
    none, since anybody could join it often enough to hold them all. Who keeps a place waits only for those who joined
    before.
    """
    if not rules.reserve_after:
        return 0
    asking = find_participant(connection, participant) if participant else None
    has_id = select(PLATFORM_IDS.c.participant).where(PLATFORM_IDS.c.participant == PARTICIPANTS.c.id).exists()
    holders = (
        select(PARTICIPANTS.c.id, PARTICIPANTS.c.joined)
        .where(PARTICIPANTS.c.finished.is_(None), PARTICIPANTS.c.seen > now - rules.reserve_after)
        .where(PARTICIPANTS.c.joined > now - LONGEST_PRACTICE)
        .where(or_(PARTICIPANTS.c.device.is_(None), PARTICIPANTS.c.device == device))
        .where(or_(PARTICIPANTS.c.invitation.is_not(None), has_id))
        .where(~select(BATCHES.c.id).where(BATCHES.c.participant == PARTICIPANTS.c.id).exists())
    )
    kept = {row.id: row.joined for row in connection.execute(holders)}
    if asking is None or asking.id not in kept:
        return len(kept)
    return sum((joined, id) < (asking.joined, asking.id) for id, joined in kept.items())


def wants_answers(connection: Connection, catalogue: Catalogue, target: int, device: str = "") -> bool:
    """Whether any item has fewer valid answers than its target, on this device or on any, whoever is working on it."""
    devices = {device} if device else catalogue.devices
    wanted = select(PROGRESS.c.item, PROGRESS.c.device).where(PROGRESS.c.valid < target)
    collected = {name for name, item in catalogue.items.items() if not item.is_check}
    return any(row.item in collected and row.device in devices for row in connection.execute(wanted))


def _has_work(
    connection: Connection, catalogue: Catalogue, device: str, rules: BatchRules, now: float, participant: str = ""
) -> bool:
    reserved = count_reserved(connection, device, rules, now, participant)
    if reserved:
        # Who gets their first batch may take any item, so that whatever the others leave is enough.
        wanted = connection.scalar(_COUNT_WANTED, {"on": device, "most": rules.target})
        return int(wanted or 0) > reserved * rules.size
    items = connection.scalars(_WANTED_ITEMS, {"on": device, "most": rules.target})
    return any(item in catalogue.items and not catalogue.items[item].is_check for item in items)


def count_work(connection: Connection, id: str) -> Tally:
    """Answers and batches of a participant so far; zeros for an unknown one."""
    if not is_storable(id, ID):
        return Tally(0, 0, 0)
    answered = select(func.count()).where(ASSIGNMENTS.c.participant == id, ASSIGNMENTS.c.state == "answered")
    by_state = select(BATCHES.c.state, func.count()).where(BATCHES.c.participant == id).group_by(BATCHES.c.state)
    counts = {state: count for state, count in connection.execute(by_state)}
    return Tally(connection.scalar(answered) or 0, counts.get("complete", 0), sum(counts.values()))


def count_earned(connection: Connection, id: str, rules: BatchRules) -> int:
    """The complete batches of a participant that earn a completion code."""
    timed = connection.execute(
        _TIMED_ANSWERS.add_columns(BATCHES.c.id, BATCHES.c.valid)
        .join(BATCHES, BATCHES.c.id == ASSIGNMENTS.c.batch)
        .where(BATCHES.c.participant == id, BATCHES.c.state == "complete")
        .where(~ITEMS.c.subject.startswith(CHECK_SUBJECT, autoescape=True))
        .order_by(BATCHES.c.id)
    ).all()
    earned = 0
    for _, rows in groupby(timed, key=lambda row: row.id):
        answers = list(rows)
        counts = bool(answers[0].valid) or not rules.code_for_valid
        earned += counts and not rules.is_too_quick((row.mode, row.shown, row.received) for row in answers)
    return earned


def next_batch(
    database: Database, catalogue: Catalogue, id: str, rules: BatchRules, now: float, address: str = ""
) -> Batch | None:
    """The open batch of a participant, or a new one, or None when nothing is left for them.

    `address` (1 to 8 characters) is what is stored of the address that a new one is requested from: where
    `most_per_address` batches of it are open, a new one is a `Refusal`. Without an address there is no such limit.
    """
    if address:
        check_text("address", address, ADDRESS)
    device, open_batch = database.read(lambda opened: (_device(opened, id, catalogue), _open_batch(opened, id)))
    if open_batch is not None and open_batch.device != device:
        # The device was changed: what was answered on the old one is judged, the rest goes to others.
        left = {"touched_since": now, "opened_since": now}
        database.write(return_batch, open_batch.id, left, rules.needed, now, rules.is_too_quick)
    elif open_batch is None:
        return_abandoned(database, rules, now)
    return database.write(_assign_batch, catalogue, id, rules, now, address)


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


def _assign_batch(
    connection: Connection, catalogue: Catalogue, id: str, rules: BatchRules, now: float, address: str
) -> Batch | None:
    touch(connection, id, now)
    open_batch = _open_batch(connection, id)
    if open_batch is not None:
        return open_batch
    done = count_work(connection, id)
    # Answers too, since a batch that was returned half done is not complete, and yet was work.
    if done.complete < rules.most_batches and done.answered < rules.most_batches * (rules.size + rules.checks):
        device = _device(connection, id, catalogue)
        # A further batch waits for those who were promised their first one.
        free = not done.batches or _has_work(connection, catalogue, device, rules, now, id)
        claimed = _claim(connection, catalogue, id, device, rules, address) if free else []
        if claimed:
            batch = _write_batch(connection, catalogue, id, device, claimed, done.batches + 1, now)
            if address:
                connection.execute(insert(BATCH_ADDRESSES), {"batch": batch.id, "address": address})
            return batch
    set_first(connection, id, now, "finished")
    return None


def _claim(
    connection: Connection, catalogue: Catalogue, id: str, device: str, rules: BatchRules, address: str
) -> list[str]:
    # One transaction at a time: else all would choose the same few items from counts that are out of date, and two
    # would both take the last place of an address.
    connection.execute(LOCK_ALL)
    taken = set(connection.scalars(select(ASSIGNMENTS.c.subject).where(ASSIGNMENTS.c.participant == id)))
    rows = connection.execute(_COUNTS, {"on": device, "most": rules.target}).all()
    # PostgreSQL sums integers to decimals.
    counts = [(item, here, int(everywhere)) for item, here, everywhere in rows]
    items = {name: item for name, item in catalogue.items.items() if not item.is_check}
    wanted = choose_neediest(counts, items, taken=taken, participant=id, size=rules.size)
    if wanted and address and (connection.scalar(_COUNT_ADDRESS, {"from": address}) or 0) >= rules.most_per_address:
        message = "Several people at your internet address are taking part right now. Try again in some minutes."
        raise Refusal("address-busy", message)
    checks = _choose_checks(catalogue, taken, id, rules.checks) if wanted else []
    lock_progress(connection, device, [*wanted, *checks])
    # Checked again while writing: no item beyond its target, whatever was counted above.
    raised = connection.execute(
        update(PROGRESS)
        .where(PROGRESS.c.device == device, PROGRESS.c.item.in_(wanted), _COUNT < rules.target)
        .values(pending=PROGRESS.c.pending + 1)
    ).rowcount
    if raised != len(wanted):
        raise Conflict
    if not checks:
        return wanted
    # A check may be answered any number of times.
    own = and_(PROGRESS.c.device == device, PROGRESS.c.item.in_(checks))
    connection.execute(update(PROGRESS).where(own).values(pending=PROGRESS.c.pending + 1))
    return sorted([*wanted, *checks], key=lambda item: _draw(id, item))


def _choose_checks(catalogue: Catalogue, taken: Collection[str], id: str, count: int) -> list[str]:
    """Attention checks that the participant has not had yet, drawn by a hash of participant and check."""
    unseen = [name for name, item in catalogue.items.items() if item.is_check and item.subject not in taken]
    return sorted(unseen, key=lambda item: _draw(id, item))[:count]


def _draw(participant: str, item: str) -> bytes:
    return blake2b(f"{participant} {item}".encode(), digest_size=8).digest()


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


def close_batch(
    connection: Connection,
    batch: str,
    device: str,
    state: BatchState,
    needed: Needed,
    now: float,
    is_too_quick: IsTooQuick = never_too_quick,
) -> bool:
    """Close a batch whose row this transaction has locked; whether it is valid."""
    trials = connection.execute(
        select(
            *_TIMED_COLUMNS, ASSIGNMENTS.c.item, ASSIGNMENTS.c.state, ITEMS.c.subject, ANSWERS.c.inside, ANSWERS.c.near
        )
        .join(ITEMS, ITEMS.c.id == ASSIGNMENTS.c.item)
        .outerjoin(ANSWERS, ANSWERS.c.assignment == ASSIGNMENTS.c.id)
        .where(ASSIGNMENTS.c.batch == batch)
    ).all()
    answered = [trial for trial in trials if trial.state == "answered"]
    collected = [trial for trial in trials if not trial.subject.startswith(CHECK_SUBJECT)]
    insides = [trial.inside for trial in collected if trial.state == "answered"]
    valid = is_valid(insides, of=len(collected), needed=needed)
    timed = [(trial.mode, trial.shown, trial.received) for trial in collected if trial.state == "answered"]
    valid = valid and not is_too_quick(timed)
    counting = [trial.item for trial in answered if valid and trial.near != 0]
    items = [trial.item for trial in trials]
    lock_progress(connection, device, items)
    counts = case((PROGRESS.c.item.in_(counting), 1), else_=0)
    connection.execute(
        update(PROGRESS)
        .where(PROGRESS.c.device == device, PROGRESS.c.item.in_(items))
        .values(pending=PROGRESS.c.pending - 1, valid=PROGRESS.c.valid + counts)
    )
    unanswered = and_(ASSIGNMENTS.c.batch == batch, ASSIGNMENTS.c.state == "assigned")
    connection.execute(update(ASSIGNMENTS).where(unanswered).values(state="returned"))
    connection.execute(delete(BATCH_ADDRESSES).where(BATCH_ADDRESSES.c.batch == batch))
    closed = {"state": state, "valid": int(valid), "closed": now}
    connection.execute(update(BATCHES).where(BATCHES.c.id == batch).values(closed))
    return valid


def return_batch(
    connection: Connection,
    batch: str,
    left: Mapping[str, float],
    needed: Needed,
    now: float,
    is_too_quick: IsTooQuick = never_too_quick,
) -> bool:
    """Return an open batch if it is still abandoned, by the parameters `left`; whether it was returned."""
    # An update for its lock: it waits for an answer that is being stored, and then sees its time.
    locking = update(BATCHES).where(BATCHES.c.id == batch, _ABANDONED).values(touched=BATCHES.c.touched)
    if not connection.execute(locking, left).rowcount:
        return False
    device = connection.execute(select(BATCHES.c.device).where(BATCHES.c.id == batch)).scalar_one()
    close_batch(connection, batch, device, "returned", needed, now, is_too_quick)
    return True


def return_abandoned(database: Database, rules: BatchRules, now: float) -> int:
    """Return all open batches that were left, by the times of the rules; how many."""
    now = check_number("now", now)
    left = {"touched_since": now - rules.return_after, "opened_since": max(now - rules.return_unanswered, -1e300)}
    abandoned = select(BATCHES.c.id).where(_ABANDONED).order_by(BATCHES.c.id)
    batches = database.read(lambda connection: connection.scalars(abandoned, left).all())
    # One transaction per batch, so that no participant waits for all of them.
    return sum(database.write(return_batch, batch, left, rules.needed, now, rules.is_too_quick) for batch in batches)


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


def store_answer(
    connection: Connection,
    participant: str,
    new: NewAnswer,
    needed: Needed,
    now: float,
    is_too_quick: IsTooQuick = never_too_quick,
) -> Stored:
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
    valid = close_batch(connection, place.batch, place.device, "complete", needed, now, is_too_quick)
    return Stored(False, True, valid, answered, place.of)


def _refusal(connection: Connection, trial: str) -> Refusal:
    state = connection.scalar(_FIND_STATE, {"trial": trial})
    return Refusal(*_REFUSED.get(state or "", _UNKNOWN))
