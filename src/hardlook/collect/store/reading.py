"""What is stored, as polars frames: for status, dashboard and export.

Truths are booleans here, times seconds since 1970, `durations` and `circumstances` JSON text. Before a study was ever
served the frames are empty, with their columns.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl
from sqlalchemy import Connection, Select, func, insert, select, update

from hardlook.collect.store.preparing import is_prepared
from hardlook.collect.store.tables import ANSWERS, ASSIGNMENTS, BATCHES, FACTS, ITEMS, PARTICIPANTS, PROGRESS

_TEXT, _WHOLE, _NUMBER, _TRUTH = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()
_RULES = "rules"

_PROGRESS = {
    "item": (PROGRESS.c.item, _TEXT),
    "device": (PROGRESS.c.device, _TEXT),
    "pending": (PROGRESS.c.pending, _WHOLE),
    "valid": (PROGRESS.c.valid, _WHOLE),
    "task": (ITEMS.c.task, _TEXT),
    "mode": (ITEMS.c.mode, _TEXT),
    "subject": (ITEMS.c.subject, _TEXT),
}
_PARTICIPANTS = {
    "id": (PARTICIPANTS.c.id, _TEXT),
    "invitation": (PARTICIPANTS.c.invitation, _TEXT),
    "language": (PARTICIPANTS.c.language, _TEXT),
    "device": (PARTICIPANTS.c.device, _TEXT),
    "joined": (PARTICIPANTS.c.joined, _NUMBER),
    "trained": (PARTICIPANTS.c.trained, _NUMBER),
    "seen": (PARTICIPANTS.c.seen, _NUMBER),
    "finished": (PARTICIPANTS.c.finished, _NUMBER),
}
_TRIALS = select(func.count()).where(ASSIGNMENTS.c.batch == BATCHES.c.id)
_BATCHES = {
    "id": (BATCHES.c.id, _TEXT),
    "participant": (BATCHES.c.participant, _TEXT),
    "number": (BATCHES.c.number, _WHOLE),
    "device": (BATCHES.c.device, _TEXT),
    "state": (BATCHES.c.state, _TEXT),
    "valid": (BATCHES.c.valid, _TRUTH),
    "opened": (BATCHES.c.opened, _NUMBER),
    "touched": (BATCHES.c.touched, _NUMBER),
    "closed": (BATCHES.c.closed, _NUMBER),
    "trials": (_TRIALS.scalar_subquery(), _WHOLE),
    "answered": (_TRIALS.where(ASSIGNMENTS.c.state == "answered").scalar_subquery(), _WHOLE),
}
_ANSWERS = {
    "key": (ANSWERS.c.key, _TEXT),
    "assignment": (ANSWERS.c.assignment, _TEXT),
    "participant": (ANSWERS.c.participant, _TEXT),
    "item": (ANSWERS.c.item, _TEXT),
    "task": (ITEMS.c.task, _TEXT),
    "mode": (ITEMS.c.mode, _TEXT),
    "subject": (ITEMS.c.subject, _TEXT),
    "device": (ANSWERS.c.device, _TEXT),
    "x": (ANSWERS.c.x, _NUMBER),
    "y": (ANSWERS.c.y, _NUMBER),
    "inside": (ANSWERS.c.inside, _TRUTH),
    "near": (ANSWERS.c.near, _TRUTH),
    "value": (ANSWERS.c.value, _WHOLE),
    "early": (ANSWERS.c.early, _WHOLE),
    "reaction_ms": (ANSWERS.c.reaction_ms, _NUMBER),
    "durations": (ANSWERS.c.durations, _TEXT),
    "circumstances": (ANSWERS.c.circumstances, _TEXT),
    "received": (ANSWERS.c.received, _NUMBER),
    "batch": (BATCHES.c.id, _TEXT),
    "batch_number": (BATCHES.c.number, _WHOLE),
    "batch_state": (BATCHES.c.state, _TEXT),
    "batch_valid": (BATCHES.c.valid, _TRUTH),
    "position": (ASSIGNMENTS.c.position, _WHOLE),
    "shows": (ASSIGNMENTS.c.shows, _WHOLE),
}


def progress(connection: Connection) -> pl.DataFrame:
    """A row an item and device: how many valid answers it has and how many are under way."""
    joined = PROGRESS.join(ITEMS, ITEMS.c.id == PROGRESS.c.item)
    query = _of(_PROGRESS).select_from(joined).order_by(PROGRESS.c.item, PROGRESS.c.device)
    return _frame(connection, query, _PROGRESS)


def participants(connection: Connection) -> pl.DataFrame:
    """A row a participant, in the order of joining."""
    query = _of(_PARTICIPANTS).order_by(PARTICIPANTS.c.joined, PARTICIPANTS.c.id)
    return _frame(connection, query, _PARTICIPANTS)


def batches(connection: Connection) -> pl.DataFrame:
    """A row a batch, by participant and number, with how many trials it has and how many are answered."""
    return _frame(connection, _of(_BATCHES).order_by(BATCHES.c.participant, BATCHES.c.number), _BATCHES)


def answers(connection: Connection) -> pl.DataFrame:
    """A row an answer, in the order of arrival, with its item and its batch."""
    joined = (
        ANSWERS.join(ITEMS, ITEMS.c.id == ANSWERS.c.item)
        .join(ASSIGNMENTS, ASSIGNMENTS.c.id == ANSWERS.c.assignment)
        .join(BATCHES, BATCHES.c.id == ASSIGNMENTS.c.batch)
    )
    query = _of(_ANSWERS).select_from(joined).order_by(ANSWERS.c.received, ANSWERS.c.key)
    return _frame(connection, query, _ANSWERS)


def rules(connection: Connection) -> dict[str, Any]:
    """The rules of exclusion as they were set; none at first."""
    if not is_prepared(connection):
        return {}
    text = connection.scalar(select(FACTS.c.value).where(FACTS.c.name == _RULES))
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def set_rules(connection: Connection, value: dict[str, Any]) -> None:
    """Replace the rules of exclusion."""
    text = json.dumps(value, sort_keys=True, allow_nan=False)
    if not connection.execute(update(FACTS).where(FACTS.c.name == _RULES).values(value=text)).rowcount:
        connection.execute(insert(FACTS), {"name": _RULES, "value": text})


def _of(columns: dict[str, Any]) -> Select[Any]:
    return select(*(column.label(name) for name, (column, _) in columns.items()))


def _frame(connection: Connection, query: Select[Any], columns: dict[str, Any]) -> pl.DataFrame:
    rows = connection.execute(query).all() if is_prepared(connection) else []
    # Column by column: several times faster than rows, and an empty one keeps its type.
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    return pl.DataFrame(
        [
            pl.Series(name, [None if one is None else bool(one) for one in column] if kind == _TRUTH else column, kind)
            for (name, (_, kind)), column in zip(columns.items(), values, strict=True)
        ]
    )
