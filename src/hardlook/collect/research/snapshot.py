"""What the database held a moment ago: read once in the background, shown on many pages.

With two hundred thousand answers a reading takes seconds. So it is kept for a while, longer the longer it took; a page
waits for a new one only briefly, and else shows the last one and says of when it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from hardlook.collect.results.answer_frames import typed_answers
from hardlook.collect.results.quality import participant_quality
from hardlook.collect.study.folder import Study

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

LEAST_SECONDS, MOST_SECONDS, TIMES_AS_LONG = 3.0, 300.0, 20.0
PATIENCE_SECONDS = 0.7


class NotYet(Exception):
    """Nothing was read so far; it will be soon."""


@dataclass(frozen=True)
class Snapshot:
    """The store's frames at the time `taken`, in seconds."""

    study: Study
    taken: float
    progress: pl.DataFrame
    participants: pl.DataFrame
    batches: pl.DataFrame
    answers: pl.DataFrame

    @cached_property
    def quality(self) -> pl.DataFrame:
        """Every participant's quality, a row each."""
        return participant_quality(self.study, self.answers, self.batches, self.participants)


class Snapshots:
    """The latest snapshot of one study; one is kept, and one reading is under way at a time."""

    def __init__(self, study: Study, store: Store, clock: Callable[[], float]) -> None:
        self.study, self.store, self.clock = study, store, clock
        self._lock = threading.Lock()
        self._kept: Snapshot | None = None
        self._until = 0.0
        self._reading: Future[Snapshot] | None = None

    def latest(self) -> Snapshot:
        """A snapshot, new if it can be had soon; `NotYet` where there is none at all.

        What goes wrong with a reading is raised to those who wait for it, and the next who asks tries again.
        """
        with self._lock:
            kept, now = self._kept, self.clock()
            if kept is not None and kept.taken <= now < self._until:
                return kept
            reading = self._reading or self._begin(now)
        try:
            return reading.result(PATIENCE_SECONDS)
        except TimeoutError:
            if kept is None:
                raise NotYet from None
            return kept

    def _begin(self, now: float) -> Future[Snapshot]:
        self._reading = reading = Future[Snapshot]()

        def work() -> None:
            began = time.perf_counter()
            try:
                found = self._read(now)
            except Exception as error:
                with self._lock:
                    self._reading = None
                reading.set_exception(error)
                return
            keep = min(max(LEAST_SECONDS, TIMES_AS_LONG * (time.perf_counter() - began)), MOST_SECONDS)
            with self._lock:
                self._kept, self._until, self._reading = found, now + keep, None
            reading.set_result(found)

        threading.Thread(target=work, name="reading answers", daemon=True).start()
        return reading

    def _read(self, now: float) -> Snapshot:
        store, answers = self.store, typed_answers(self.store.answers())
        found = Snapshot(self.study, now, store.progress(), store.participants(), store.batches(), answers)
        # Here, where nobody waits, and not in the first page that asks for it.
        assert found.quality is not None
        return found
