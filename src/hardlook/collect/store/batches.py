"""Participants, and the batches of trials that are handed out to them and closed.

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
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    Participant,
    Refusal,
    Tally,
    Trial,
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

# A trial with its item, for `make_trial`.
TRIAL_COLUMNS = (
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
    """Note that a participant is active, so that the open batch is not given to somebody else."""
    set_columns(connection, id, now)
    own = (BATCHES.c.participant == id) & (BATCHES.c.state == "open")
    connection.execute(update(BATCHES).where(own).values(touched=now))


def count_work(connection: Connection, id: str) -> Tally:
    """Answers and batches of a participant so far; zeros for an unknown one."""
    if not is_storable(id, ID):
        return Tally(0, 0, 0)
    answered = select(func.count()).where(ASSIGNMENTS.c.participant == id, ASSIGNMENTS.c.state == "answered")
    states = connection.execute(
        select(BATCHES.c.state, func.count()).where(BATCHES.c.participant == id).group_by(BATCHES.c.state)
    ).all()
    counts = {state: count for state, count in states}
    return Tally(connection.scalar(answered) or 0, counts.get("complete", 0), sum(counts.values()))


def next_batch(database: Database, catalogue: Catalogue, id: str, rules: BatchRules, now: float) -> Batch | None:
    """The open batch of a participant, or a new one, or None when nothing is left for them."""
    device, open_batch = database.read(
        lambda connection: (_device(connection, id, catalogue), _open_batch(connection, id))
    )
    if open_batch is not None and open_batch.device != device:
        # The device was changed: what was answered on the old one is judged, the rest goes to others.
        batch = open_batch.id
        database.write(return_batch, batch, rules.needed, now, untouched_since=now)
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
    """Ids of the `size` neediest items of as many subjects, none of them `taken`; fewer when there are no more.

    `counts` are (item, answers it has and awaits on this device, on all devices).
    """
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
    lock_progress(connection, device, wanted)
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
    batch = Batch(
        secrets.token_hex(16),
        number,
        device,
        "open",
        tuple(
            Trial(secrets.token_hex(16), position, catalogue.items[item], "assigned", 0)
            for position, item in enumerate(items)
        ),
    )
    row = {"id": batch.id, "participant": id, "number": number, "device": device, "state": "open"}
    connection.execute(insert(BATCHES), {**row, "opened": now, "touched": now})
    connection.execute(
        insert(ASSIGNMENTS),
        [
            {
                "id": trial.id,
                "batch": batch.id,
                "participant": id,
                "item": trial.item.id,
                "subject": trial.item.subject,
                "position": trial.position,
                "state": trial.state,
                "shows": 0,
            }
            for trial in batch.trials
        ],
    )
    return batch


def _open_batch(connection: Connection, id: str) -> Batch | None:
    own = and_(BATCHES.c.participant == id, BATCHES.c.state == "open")
    columns = (BATCHES.c.id, BATCHES.c.number, BATCHES.c.device, BATCHES.c.state)
    batch = connection.execute(select(*columns).where(own)).one_or_none()
    if batch is None:
        return None
    trials = connection.execute(
        select(*TRIAL_COLUMNS)
        .join(ITEMS, ITEMS.c.id == ASSIGNMENTS.c.item)
        .where(ASSIGNMENTS.c.batch == batch.id)
        .order_by(ASSIGNMENTS.c.position)
    ).all()
    return Batch(*batch, tuple(make_trial(trial) for trial in trials))


def make_trial(row: Row[Any]) -> Trial:
    """A trial from a row of `TRIAL_COLUMNS`."""
    item = Item(row.item, row.task, row.mode, row.subject)
    return Trial(row.id, row.position, item, row.state, row.shows, row.shown)


def _device(connection: Connection, id: str, catalogue: Catalogue) -> str:
    found: Participant | None = find_participant(connection, id)
    if found is None:
        raise Refusal("unknown-participant", "there is no such participant")
    if found.device is None or found.device not in catalogue.devices:
        raise Refusal("no-device", "the device is not known yet")
    return found.device


def is_valid(insides: Sequence[int | None], *, of: int, needed: Needed) -> bool:
    """Whether a batch of `of` trials counts, given for each answer whether it lies inside (None: not a click).

    Reviews and ratings have no inside and cannot be judged by it: every answered batch counts.
    """
    clicks = [inside for inside in insides if inside is not None]
    if not clicks:
        return bool(insides)
    return sum(clicks) >= needed(of)


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
    _settle(connection, device, [trial.item for trial in trials], counting)
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
    # One transaction per batch, so that nobody waits for all of them.
    return sum(database.write(return_batch, batch, needed, now, since) for batch in batches)


def lock_progress(connection: Connection, device: str, items: Collection[str]) -> None:
    """Lock the progress rows of these items, always in one order, so that no two transactions wait for each other."""
    connection.execute(
        select(PROGRESS.c.item)
        .where(PROGRESS.c.device == device, PROGRESS.c.item.in_(items))
        .order_by(PROGRESS.c.item)
        .with_for_update(key_share=True)
    )


def _settle(connection: Connection, device: str, items: Collection[str], counting: Collection[str]) -> None:
    lock_progress(connection, device, items)
    counts = case((PROGRESS.c.item.in_(counting), 1), else_=0)
    connection.execute(
        update(PROGRESS)
        .where(PROGRESS.c.device == device, PROGRESS.c.item.in_(items))
        .values(pending=PROGRESS.c.pending - 1, valid=PROGRESS.c.valid + counts)
    )
