"""The store: everything that server, dashboard and export ask of the database.

>>> import tempfile
>>> from hardlook.collect.study.tasks import Item
>>> url = f"sqlite:///{tempfile.mkdtemp()}/answers.sqlite"
>>> rules = BatchRules(size=1, target=1, most_batches=5, return_after=1800.0)
>>> with Store.open(url) as store:
...     store.prepare([Item("t1", "t1", "", "cup.jpg")], ("any",), fingerprint="f")
...     someone = store.join(None, "en", now=0.0)
...     store.set_device(someone.id, "any", now=1.0)
...     trial = store.next_batch(someone.id, rules, now=2.0).trials[0]
...     stored = store.answer(someone.id, NewAnswer("key-1", trial.id, value=7), rules.needed, now=3.0)
...     again = store.answer(someone.id, NewAnswer("key-1", trial.id, value=7), rules.needed, now=4.0)
...     stored.batch_complete, again.repeated, store.answers()["value"].to_list()
(True, True, [7])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import polars as pl
from sqlalchemy import text

from hardlook.collect.store import answering, assignment, joining, preparing, reading, returning
from hardlook.collect.store.addresses import address_of, shown
from hardlook.collect.store.checking import LANGUAGE, text_of
from hardlook.collect.store.database import Database
from hardlook.collect.store.preparing import Catalogue
from hardlook.collect.store.records import (
    Batch,
    BatchRules,
    Needed,
    NewAnswer,
    Participant,
    Refusal,
    Stored,
    Tally,
    Trial,
    seven_of_ten,
)
from hardlook.collect.study.tasks import Item
from hardlook.errors import DataError

__all__ = [
    "Batch",
    "BatchRules",
    "NewAnswer",
    "Participant",
    "Refusal",
    "Store",
    "Stored",
    "Tally",
    "Trial",
]


class Store:
    """What people did, used by any number of threads; several processes may share one database.

    Every method is one transaction or several that are whole by themselves: killed at any moment, nothing is half
    done, and what was returned from is on disk. `now` is always seconds since 1970. What a participant may not do is
    a `Refusal`; a database that cannot be used is a `DataError`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._catalogue: Catalogue | None = None

    @classmethod
    def open(cls, url: str) -> Store:
        """Connect to `sqlite:///PATH` or `postgresql://...`; what is wrong comes in words, without the password."""
        database = Database(address_of(url))
        database.read(lambda connection: connection.execute(text("SELECT 1")).one())
        return cls(database)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def prepare(self, items: Sequence[Item], devices: Iterable[str], fingerprint: str) -> None:
        """Make what is missing of tables, items and counts; a `DataError` when the database is of other tasks."""
        devices = tuple(devices)
        try:
            self._catalogue = self._database.write(
                lambda connection: preparing.prepare(connection, items, devices, fingerprint)
            )
        except DataError as error:
            raise error.at(file=shown(self._database.address)) from None

    def join(self, invitation: str | None, language: str, now: float) -> Participant:
        """A new participant, or the one who joined by this invitation before."""
        return self._database.write(lambda connection: joining.join(connection, invitation, language, now))

    def participant(self, id: str) -> Participant | None:
        """The participant of an id, or None."""
        return self._database.read(lambda connection: joining.participant(connection, id))

    def tally(self, id: str) -> Tally:
        """How many answers and batches a participant has."""
        return self._database.read(lambda connection: joining.tally(connection, id))

    def set_language(self, id: str, language: str, now: float) -> None:
        """Note the language that a participant chose."""
        text_of("language", language, LANGUAGE)
        self._database.write(lambda connection: joining.set_columns(connection, id, now, language=language))

    def set_device(self, id: str, device: str, now: float) -> None:
        """Note the device that a participant confirmed; an open batch of another device goes back with the next one."""
        if device not in self._handed_out().devices:
            raise Refusal("unknown-device", "the study knows no such device")
        self._database.write(lambda connection: joining.set_columns(connection, id, now, device=device))

    def set_trained(self, id: str, now: float) -> None:
        """Note that the training round is done; the first time counts."""
        self._database.write(lambda connection: joining.set_first(connection, id, now, "trained"))

    def touch(self, id: str, now: float) -> None:
        """A sign of life of a participant and their open batch."""
        self._database.write(lambda connection: joining.touch(connection, id, now))

    def next_batch(self, participant_id: str, rules: BatchRules, now: float) -> Batch | None:
        """The open batch, else a new one of the neediest items, else None; then `finished` is noted."""
        return assignment.next_batch(self._database, self._handed_out(), participant_id, rules, now)

    def trial(self, participant_id: str, trial_id: str) -> Trial | None:
        """A participant's own trial, or None."""
        return self._database.read(lambda connection: answering.trial(connection, participant_id, trial_id))

    def show(self, participant_id: str, trial_id: str, now: float) -> Trial:
        """Count a showing; a `Refusal` when the trial is answered, returned or not theirs."""
        return self._database.write(lambda connection: answering.show(connection, participant_id, trial_id, now))

    def answer(self, participant_id: str, new: NewAnswer, needed: Needed, now: float) -> Stored:
        """Store an answer, once; a batch is judged with its last one, `needed(n)` clicks of n inside."""
        return self._database.write(lambda connection: answering.answer(connection, participant_id, new, needed, now))

    def return_abandoned(self, return_after: float, now: float, needed: Needed = seven_of_ten) -> int:
        """Give back batches without a sign of life for `return_after` seconds; how many."""
        return returning.return_abandoned(self._database, return_after, now, needed)

    def progress(self) -> pl.DataFrame:
        """A row an item and device: item, device, pending, valid, task, mode, subject."""
        return self._database.read(reading.progress)

    def participants(self) -> pl.DataFrame:
        """A row a participant: the fields of `Participant`."""
        return self._database.read(reading.participants)

    def batches(self) -> pl.DataFrame:
        """A row a batch: id, participant, number, device, state, valid, opened, touched, closed, trials, answered."""
        return self._database.read(reading.batches)

    def answers(self) -> pl.DataFrame:
        """A row an answer with its item, trial and batch."""
        return self._database.read(reading.answers)

    def rules(self) -> dict[str, Any]:
        """The rules of exclusion that were set; empty at first."""
        return self._database.read(reading.rules)

    def set_rules(self, rules: dict[str, Any]) -> None:
        """Replace the rules of exclusion."""
        self._database.write(lambda connection: reading.set_rules(connection, rules))

    def _handed_out(self) -> Catalogue:
        if self._catalogue is None:
            self._catalogue = self._database.read(preparing.read_catalogue)
        return self._catalogue
