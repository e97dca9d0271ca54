"""The store: everything that the server, the dashboard and the export need of the database.

>>> import tempfile
>>> from hardlook.collect.study.tasks import Item
>>> url = f"sqlite:///{tempfile.mkdtemp()}/answers.sqlite"
>>> rules = BatchRules(size=1, target=1, most_batches=5, return_after=1800.0)
>>> with Store.open(url) as store:
...     store.prepare([Item("t1", "t1", "", "cup.jpg")], ("any",), fingerprint="f")
...     participant = store.join(None, "en", now=0.0)
...     store.set_device(participant.id, "any", now=1.0)
...     trial = store.next_batch(participant.id, rules, now=2.0).trials[0]
...     stored = store.answer(participant.id, NewAnswer("key-1", trial.id, value=7), rules.needed, now=3.0)
...     again = store.answer(participant.id, NewAnswer("key-1", trial.id, value=7), rules.needed, now=4.0)
...     stored.batch_complete, again.repeated, store.answers()["value"].to_list()
(True, True, [7])

Tables come as polars frames: times are seconds since 1970, `durations` and `circumstances` JSON text. Before a study
was ever served they are empty, with their columns.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import polars as pl
from sqlalchemy import ColumnElement, Connection, Float, Integer, Row, Select, func, insert, select, text, update

from hardlook.collect.store import batches, participants
from hardlook.collect.store.backup import copy_database
from hardlook.collect.store.database import Database, format_address, parse_address
from hardlook.collect.store.migrations import migrate, read_layout
from hardlook.collect.store.records import (
    LANGUAGE,
    Batch,
    BatchRules,
    IsTooQuick,
    Needed,
    NewAnswer,
    Participant,
    Practice,
    Refusal,
    Stored,
    Tally,
    Trial,
    check_text,
    never_too_quick,
    seven_of_ten,
)
from hardlook.collect.store.tables import (
    ANSWERS,
    ASSIGNMENTS,
    BATCHES,
    FACTS,
    ITEMS,
    LAYOUT_VERSION,
    NUMBERS,
    PARTICIPANTS,
    PLATFORM_IDS,
    PROGRESS,
    RULES,
    Catalogue,
    create_tables,
    is_prepared,
    read_catalogue,
)
from hardlook.collect.study.tasks import CHECK_SUBJECT, Item
from hardlook.errors import DataError

_RULES = FACTS.c.name == RULES
_IS_CHECK = ITEMS.c.subject.startswith(CHECK_SUBJECT, autoescape=True)

_PROGRESS = (
    select(PROGRESS, ITEMS.c.task, ITEMS.c.mode, ITEMS.c.subject)
    .join(ITEMS, ITEMS.c.id == PROGRESS.c.item)
    .where(~_IS_CHECK)
    .order_by(PROGRESS.c.item, PROGRESS.c.device)
)

_PARTICIPANTS = (
    select(PARTICIPANTS, NUMBERS.c.number)
    .join(NUMBERS, NUMBERS.c.participant == PARTICIPANTS.c.id)
    .order_by(NUMBERS.c.number)
)
_PLATFORM_IDS = select(PLATFORM_IDS).order_by(PLATFORM_IDS.c.participant)
_TRIALS = (
    select(func.count())
    .select_from(ASSIGNMENTS)
    .join(ITEMS, ITEMS.c.id == ASSIGNMENTS.c.item)
    .where(ASSIGNMENTS.c.batch == BATCHES.c.id, ~_IS_CHECK)
)

_BATCHES = select(
    BATCHES,
    _TRIALS.scalar_subquery().label("trials"),
    _TRIALS.where(ASSIGNMENTS.c.state == "answered").scalar_subquery().label("answered"),
).order_by(BATCHES.c.participant, BATCHES.c.number)

_ANSWERS = (
    select(
        *(ANSWERS.c[name] for name in ("key", "assignment", "participant", "item")),
        *(ITEMS.c[name] for name in ("task", "mode", "subject")),
        *(ANSWERS.c[name] for name in ("device", "x", "y", "inside", "near", "value", "early", "reaction_ms")),
        *(ANSWERS.c[name] for name in ("durations", "circumstances", "received")),
        BATCHES.c.id.label("batch"),
        *(BATCHES.c[name].label(f"batch_{name}") for name in ("number", "state", "valid")),
        *(ASSIGNMENTS.c[name] for name in ("position", "shows", "shown")),
    )
    .join(ITEMS, ITEMS.c.id == ANSWERS.c.item)
    .join(ASSIGNMENTS, ASSIGNMENTS.c.id == ANSWERS.c.assignment)
    .join(BATCHES, BATCHES.c.id == ASSIGNMENTS.c.batch)
    .order_by(ANSWERS.c.received, ANSWERS.c.key)
)
_COLLECTED, _CHECKS = _ANSWERS.where(~_IS_CHECK), _ANSWERS.where(_IS_CHECK)


class Store:
    """Participants, batches and answers, used by any number of threads; several processes may share one database.

    Every method is one transaction, or several that are each complete: killed at any moment, nothing is half done, and
    what a method returned from is on disk. `now` is always seconds since 1970. What a participant may not do is a
    `Refusal`; a database that cannot be used is a `DataError`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._catalogue: Catalogue | None = None

    @classmethod
    def open(cls, url: str) -> Store:
        """Connect to `sqlite:///PATH` or `postgresql://...`; errors never show the password."""
        database = Database(parse_address(url))
        database.read(lambda connection: connection.execute(text("SELECT 1")).one())
        return cls(database)

    def one_snapshot(self) -> AbstractContextManager[None]:
        """Inside, this thread reads everything as of one moment, whoever answers or is deleted at the same time."""
        return self._database.one_snapshot()

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def prepare(self, items: Sequence[Item], devices: Sequence[str], fingerprint: str) -> None:
        """Create missing tables, items and counts; a `DataError` when the database belongs to other tasks.

        A database of an earlier version is migrated; of one in a file, a copy is made beside it before.
        """

        def work(connection: Connection) -> Catalogue:
            migrate(connection)
            return create_tables(connection, items, devices, fingerprint)

        try:
            self._copy_before_migration()
            self._catalogue = self._database.write(work)
        except DataError as error:
            raise error.at(file=format_address(self._database.address)) from None

    def join(
        self, invitation: str | None, language: str, now: float, platform_ids: Mapping[str, str] | None = None
    ) -> Participant:
        """A new participant, or the one who joined by this invitation, or this platform's id, before."""
        return self._database.write(participants.join, invitation, language, now, platform_ids)

    def participant(self, id: str) -> Participant | None:
        """The participant with an id, or None."""
        return self._database.read(participants.find_participant, id)

    def invited(self, invitation: str) -> Participant | None:
        """The participant who joined by an invitation, or None."""
        return self._database.read(participants.find_invited, invitation)

    def person(self, id: str) -> Participant | None:
        """The participant whom a platform knows by this id, or None."""
        return self._database.read(participants.find_person, id)

    def platform_ids_of(self, id: str) -> dict[str, str]:
        """The id parameters with which a platform sent a participant, by name."""
        return self._database.read(participants.find_platform_ids, id)

    def update_platform_ids(self, id: str, platform_ids: Mapping[str, str]) -> None:
        """Keep the id parameters of a participant's latest visit, if the person is the same."""
        self._database.write(participants.update_platform_ids, id, platform_ids)

    def show_practice(self, id: str, trial: str, now: float) -> None:
        """Note that a trial of the training round is shown."""
        self._database.write(participants.show_practice, id, trial, now)

    def answer_practice(self, id: str, trial: str, passed: bool, now: float) -> None:
        """Count an answer to a trial of the training round."""
        self._database.write(participants.answer_practice, id, trial, passed, now)

    def practice(self, id: str) -> dict[str, Practice]:
        """What a participant did of the training round, by trial."""
        return self._database.read(participants.list_practice, id)

    def devices_with_work(self, rules: BatchRules, now: float, participant: str = "") -> set[str]:
        """The devices on which a new participant, or one who has joined, would get a batch."""
        return batches.list_devices_with_work(self._database, self._load_catalogue(), rules, now, participant)

    def wants_answers(self, rules: BatchRules, device: str = "") -> bool:
        """Whether answers are still wanted, on this device or on any, be it that others are about to give them."""
        return self._database.read(batches.wants_answers, self._load_catalogue(), rules.target, device)

    def count_earned(self, id: str, rules: BatchRules) -> int:
        """The complete batches of a participant that earn a completion code."""
        return self._database.read(batches.count_earned, id, rules)

    def tally(self, id: str) -> Tally:
        """How many answers and batches a participant has."""
        return self._database.read(batches.count_work, id)

    def set_language(self, id: str, language: str, now: float) -> None:
        """Set the language that a participant chose."""
        check_text("language", language, LANGUAGE)
        self._database.write(participants.set_columns, id, now, language=language)

    def set_device(self, id: str, device: str, now: float) -> None:
        """Set the device that a participant confirmed; the next batch returns an open one of another device."""
        if device not in self._load_catalogue().devices:
            raise Refusal("unknown-device", "the study knows no such device")
        self._database.write(participants.set_columns, id, now, device=device)

    def set_trained(self, id: str, now: float) -> None:
        """Note that the training round is done; the first time counts."""
        self._database.write(participants.set_first, id, now, "trained")

    def touch(self, id: str, now: float) -> None:
        """Note that a participant is active, which keeps their open batch."""
        self._database.write(participants.touch, id, now)

    def next_batch(self, participant_id: str, rules: BatchRules, now: float, address: str = "") -> Batch | None:
        """The open batch, else a new one of the items with the fewest answers, else None; then `finished` is set.

        With an `address` a new one is a `Refusal` where the rules allow no more open batches of it; all servers of a
        database share the count.
        """
        return batches.next_batch(self._database, self._load_catalogue(), participant_id, rules, now, address)

    def trial(self, participant_id: str, trial_id: str) -> Trial | None:
        """A participant's own trial, or None."""
        return self._database.read(batches.find_trial, participant_id, trial_id)

    def show(self, participant_id: str, trial_id: str, now: float) -> Trial:
        """Count a show of a trial; a `Refusal` when it is answered, returned or another participant's."""
        return self._database.write(batches.show_trial, participant_id, trial_id, now)

    def answer(
        self,
        participant_id: str,
        new: NewAnswer,
        needed: Needed,
        now: float,
        is_too_quick: IsTooQuick = never_too_quick,
    ) -> Stored:
        """Store an answer, once; a batch is judged with its last one: `needed(n)` clicks of n inside, not too quick."""
        return self._database.write(batches.store_answer, participant_id, new, needed, now, is_too_quick)

    def return_abandoned(self, return_after: float, now: float, needed: Needed = seven_of_ten) -> int:
        """Return batches whose participant was inactive for `return_after` seconds; how many."""
        rules = BatchRules(size=1, target=1, most_batches=1, return_after=return_after, needed=needed)
        return batches.return_abandoned(self._database, rules, now)

    def progress(self) -> pl.DataFrame:
        """One row per item and device: item, device, pending, valid, task, mode, subject; no attention checks."""
        return self._read_frame(_PROGRESS)

    def participants(self) -> pl.DataFrame:
        """One row per participant in the order of joining: the fields of `Participant` and their `number`, from 1."""
        return self._read_frame(_PARTICIPANTS).with_columns(pl.col("number").cast(pl.UInt32))

    def delete_participant(self, id: str) -> int:
        """Delete all that is stored about a participant; the number that they had; a `Refusal` for an unknown id."""
        return self._database.write(participants.delete_participant, id)

    def count_deleted(self) -> int:
        """How many participants were deleted on request."""
        return self._database.read(lambda opened: participants.count_deleted(opened) if is_prepared(opened) else 0)

    def copy(self, file: Path) -> None:
        """Write all that is stored at one moment to a SQLite file, while others keep writing."""
        copy_database(self._database, file)

    def batches(self) -> pl.DataFrame:
        """One row per batch, by participant and number.

        Columns: id, participant, number, device, state, valid, opened, touched, closed, and the numbers of trials and
        answered ones, without attention checks.
        """
        return self._read_frame(_BATCHES, booleans=("valid",))

    def answers(self) -> pl.DataFrame:
        """One row per answer with its item, trial and batch, in the order of arrival; no attention checks."""
        return self._read_frame(_COLLECTED, booleans=("inside", "near", "batch_valid"))

    def check_answers(self) -> pl.DataFrame:
        """The answers to attention checks, with the columns of `answers`; `near` where a check was passed."""
        return self._read_frame(_CHECKS, booleans=("inside", "near", "batch_valid"))

    def platform_ids(self) -> pl.DataFrame:
        """One row per participant who came from a platform: participant, person, parameters (JSON)."""
        return self._read_frame(_PLATFORM_IDS)

    def rules(self) -> dict[str, Any]:
        """The rules of exclusion; empty until they are set."""

        def read(connection: Connection) -> str | None:
            return connection.scalar(select(FACTS.c.value).where(_RULES)) if is_prepared(connection) else None

        rules: dict[str, Any] = json.loads(self._database.read(read) or "{}")
        return rules

    def set_rules(self, rules: dict[str, Any]) -> None:
        """Replace the rules of exclusion."""
        value = json.dumps(rules, sort_keys=True, allow_nan=False)

        def write(connection: Connection) -> None:
            if not connection.execute(update(FACTS).where(_RULES).values(value=value)).rowcount:
                connection.execute(insert(FACTS), {"name": RULES, "value": value})

        self._database.write(write)

    def _copy_before_migration(self) -> None:
        version = self._database.read(read_layout)
        if self._database.path is None or version >= LAYOUT_VERSION:
            return
        copy = self._database.path.with_suffix(f".layout-{version}.sqlite")
        if not copy.exists():
            copy_database(self._database, copy)
        message = "%s: migrating from layout %d to %d; a copy of it is %s"
        logging.getLogger(__name__).warning(message, self._database.path, version, LAYOUT_VERSION, copy)

    def _load_catalogue(self) -> Catalogue:
        if self._catalogue is None:
            self._catalogue = self._database.read(read_catalogue)
        return self._catalogue

    def _read_frame(self, query: Select[Any], booleans: Collection[str] = ()) -> pl.DataFrame:
        rows = self._database.read(lambda opened: opened.execute(query).all() if is_prepared(opened) else [])
        return _make_frame(query, rows).cast(dict.fromkeys(booleans, pl.Boolean()))


def _make_frame(query: Select[Any], rows: Sequence[Row[Any]]) -> pl.DataFrame:
    # Column by column: several times faster than rows, and an empty column keeps its type.
    columns = query.selected_columns
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    series = [pl.Series(one.name, data, _polars_type(one)) for one, data in zip(columns, values, strict=True)]
    return pl.DataFrame(series)


def _polars_type(column: ColumnElement[Any]) -> pl.DataType:
    if isinstance(column.type, Integer):
        return pl.Int64()
    return pl.Float64() if isinstance(column.type, Float) else pl.String()
