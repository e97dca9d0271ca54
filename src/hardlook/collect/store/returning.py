"""Closing batches: judged when the last answer is in, or when given up, and progress moved accordingly.

An item's `pending` counts the trials of open batches; `valid` counts the answers of closed ones that are near their
target, in batches that are valid.

>>> is_valid([1, 1, 0], of=3, needed=lambda clicks: 2), is_valid([1, 1], of=10, needed=lambda clicks: 7)
(True, False)
>>> is_valid([None], of=10, needed=lambda clicks: 7), is_valid([], of=10, needed=lambda clicks: 0)
(True, False)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, and_, case, select, update

from hardlook.collect.store.checking import number_of
from hardlook.collect.store.database import Database
from hardlook.collect.store.records import BatchState, Needed
from hardlook.collect.store.tables import ANSWERS, ASSIGNMENTS, BATCHES, PROGRESS


def is_valid(insides: Sequence[int | None], *, of: int, needed: Needed) -> bool:
    """Whether a batch of `of` trials counts, given for each answer whether it lay inside (None: not a click).

    Reviews and ratings have no inside, so there is nothing to judge them by: what was answered counts.
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
    """Give an open batch back unless there was a sign of life since; whether it was given back."""
    stale = and_(BATCHES.c.id == batch, BATCHES.c.state == "open", BATCHES.c.touched <= untouched_since)
    # An update for its lock: an answer that is under way is waited for, and its sign of life is then seen.
    if not connection.execute(update(BATCHES).where(stale).values(touched=BATCHES.c.touched)).rowcount:
        return False
    device = connection.execute(select(BATCHES.c.device).where(BATCHES.c.id == batch)).scalar_one()
    close_batch(connection, batch, device, "returned", needed, now)
    return True


def return_abandoned(database: Database, return_after: float, now: float, needed: Needed) -> int:
    """Give back all open batches without a sign of life for `return_after` seconds; how many."""
    since = number_of("now", now) - return_after
    stale = select(BATCHES.c.id).where(BATCHES.c.state == "open", BATCHES.c.touched <= since).order_by(BATCHES.c.id)
    batches = database.read(lambda connection: connection.scalars(stale).all())
    # A transaction each, so that nobody waits for all of them.
    return sum(
        database.write(lambda connection, batch=batch: return_batch(connection, batch, needed, now, since))  # type: ignore[misc]
        for batch in batches
    )


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
