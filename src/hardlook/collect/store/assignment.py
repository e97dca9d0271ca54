"""Handing out batches: the neediest items first, no subject twice to one participant, no item beyond its target.

An item's need is what it has and awaits on the participant's device, then on all devices. Among equals a hash of
participant and item decides, so that participants differ.

>>> from hardlook.collect.study.tasks import Item
>>> items = {name: Item(name, name, "", subject) for name, subject in (("a", "s"), ("b", "s"), ("c", "t"))}
>>> neediest([("a", 1, 1), ("b", 0, 0), ("c", 2, 2)], items, taken=(), participant="p", size=2)
['b', 'c']
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b

from sqlalchemy import Connection, and_, bindparam, func, insert, select, update

from hardlook.collect.store.database import Database
from hardlook.collect.store.joining import participant as find_participant
from hardlook.collect.store.joining import set_first, tally, touch
from hardlook.collect.store.preparing import FINGERPRINT, Catalogue
from hardlook.collect.store.records import Batch, BatchRules, Participant, Refusal, Trial, TrialState
from hardlook.collect.store.returning import lock_progress, return_abandoned, return_batch
from hardlook.collect.store.shared_commits import Conflict
from hardlook.collect.store.tables import ASSIGNMENTS, BATCHES, FACTS, ITEMS, PROGRESS
from hardlook.collect.study.tasks import Item

TRIAL_COLUMNS = (
    ASSIGNMENTS.c.id,
    ASSIGNMENTS.c.position,
    ASSIGNMENTS.c.state,
    ASSIGNMENTS.c.shows,
    ITEMS.c.id.label("item"),
    ITEMS.c.task,
    ITEMS.c.mode,
    ITEMS.c.subject,
    ASSIGNMENTS.c.shown,
)
_EVERYWHERE = PROGRESS.alias()
_HERE = PROGRESS.c.valid + PROGRESS.c.pending
_ALL_IN_ALL = select(func.sum(_EVERYWHERE.c.valid + _EVERYWHERE.c.pending)).where(_EVERYWHERE.c.item == PROGRESS.c.item)
_COUNTS = select(PROGRESS.c.item, _HERE, _ALL_IN_ALL.scalar_subquery()).where(
    PROGRESS.c.device == bindparam("on"), bindparam("most") > _HERE
)


def next_batch(database: Database, catalogue: Catalogue, id: str, rules: BatchRules, now: float) -> Batch | None:
    """The open batch of a participant, or a new one, or None when nothing is left for them."""
    device, open_batch = database.read(
        lambda connection: (_device(connection, id, catalogue), _open_batch(connection, id))
    )
    if open_batch is not None and open_batch.device != device:
        # They went on with another device: what the old one answered is judged, the rest is for others.
        batch = open_batch.id
        database.write(lambda connection: return_batch(connection, batch, rules.needed, now, untouched_since=now))
    elif open_batch is None:
        return_abandoned(database, rules.return_after, now, rules.needed)
    return database.write(lambda connection: _hand_out(connection, catalogue, id, rules, now))


def neediest(
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
    # The hash is taken of the participant once and then continued: there may be many items.
    start = blake2b(participant.encode(), digest_size=8)

    def lot(item: str) -> bytes:
        drawn = start.copy()
        drawn.update(item.encode())
        return drawn.digest()

    seen = set(taken)
    chosen: list[str] = []
    for _, _, _, item in sorted((here, all_in_all, lot(item), item) for item, here, all_in_all in counts):
        if len(chosen) == size:
            break
        if item in items and items[item].subject not in seen:
            seen.add(items[item].subject)
            chosen.append(item)
    return chosen


def _hand_out(connection: Connection, catalogue: Catalogue, id: str, rules: BatchRules, now: float) -> Batch | None:
    touch(connection, id, now)
    going_on = _open_batch(connection, id)
    if going_on is not None:
        return going_on
    done = tally(connection, id)
    # Answers too, since a batch that was given back half done is not complete, and yet was work.
    if done.complete < rules.most_batches and done.answered < rules.most_batches * rules.size:
        device = _device(connection, id, catalogue)
        claimed = _claim(connection, catalogue, id, device, rules)
        if claimed:
            return _write_batch(connection, catalogue, id, device, claimed, done.batches + 1, now)
    set_first(connection, id, now, "finished")
    return None


def _claim(connection: Connection, catalogue: Catalogue, id: str, device: str, rules: BatchRules) -> list[str]:
    # One hands out at a time: else all would go for the same few items, and the order of need would be a guess.
    connection.execute(select(FACTS.c.value).where(FACTS.c.name == FINGERPRINT).with_for_update())
    taken = set(connection.scalars(select(ASSIGNMENTS.c.subject).where(ASSIGNMENTS.c.participant == id)))
    counts = _counts(connection, device, rules.target)
    wanted = neediest(counts, catalogue.items, taken=taken, participant=id, size=rules.size)
    lock_progress(connection, device, wanted)
    # Checked once more as it is written: no item beyond its target, whatever was counted above.
    raised = connection.execute(
        update(PROGRESS)
        .where(PROGRESS.c.device == device, PROGRESS.c.item.in_(wanted), _HERE < rules.target)
        .values(pending=PROGRESS.c.pending + 1)
    ).rowcount
    if raised != len(wanted):
        raise Conflict
    return wanted


def _counts(connection: Connection, device: str, target: int) -> list[tuple[str, int, int]]:
    rows = connection.execute(_COUNTS, {"on": device, "most": target}).all()
    # PostgreSQL sums whole numbers to decimals.
    return [(item, here, int(all_in_all)) for item, here, all_in_all in rows]


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
    return Batch(*batch, tuple(trial_of(*trial) for trial in trials))


def trial_of(
    id: str,
    position: int,
    state: TrialState,
    shows: int,
    item: str,
    task: str,
    mode: str,
    subject: str,
    shown: float | None,
) -> Trial:
    """A trial from the columns of `TRIAL_COLUMNS`."""
    return Trial(id, position, Item(item, task, mode, subject), state, shows, shown)


def _device(connection: Connection, id: str, catalogue: Catalogue) -> str:
    found: Participant | None = find_participant(connection, id)
    if found is None:
        raise Refusal("unknown-participant", "there is no such participant")
    if found.device is None or found.device not in catalogue.devices:
        raise Refusal("no-device", "the device is not known yet")
    return found.device
