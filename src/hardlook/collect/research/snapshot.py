"""A snapshot of the database that many pages share, read in the background; and which answers count.

Reading two hundred thousand answers takes seconds. So a snapshot is kept for a while, longer the longer it took to
read; a page waits only briefly for a new one, and else shows the last one with its time.

A click counts when its batch does and it lies inside the region or near it; a verdict or a rating does unless its
batch was dropped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from hardlook.collect.results.quality import measure_participants
from hardlook.collect.study.folder import Study

if TYPE_CHECKING:
    from hardlook.collect.store.store import Store

# A snapshot is kept this many times as long as it took to read, within these limits.
KEEP_FACTOR, MIN_KEEP_SECONDS, MAX_KEEP_SECONDS = 20.0, 3.0, 300.0

# How long a page waits for a new snapshot.
WAIT_SECONDS = 0.7


class SnapshotPending(Exception):
    """There is no snapshot yet; the first one is being read."""


@dataclass(frozen=True)
class Snapshot:
    """The store's frames at the time `taken`, in seconds since 1970, and the quality of every participant."""

    study: Study
    taken: float
    progress: pl.DataFrame
    participants: pl.DataFrame
    batches: pl.DataFrame
    answers: pl.DataFrame
    quality: pl.DataFrame


class Snapshots:
    """The latest snapshot of one study; at most one new one is being read at a time."""

    def __init__(self, study: Study, store: Store, clock: Callable[[], float]) -> None:
        self.study, self.store, self.clock = study, store, clock
        self._lock = threading.Lock()
        self._kept: Snapshot | None = None
        self._until = 0.0
        self._reading: Future[Snapshot] | None = None

    def latest(self) -> Snapshot:
        """A snapshot, a new one if it can be read soon, or its error; `SnapshotPending` where there is none at all."""
        with self._lock:
            kept, now = self._kept, self.clock()
            if kept is not None and kept.taken <= now < self._until:
                return kept
            reading = self._reading or self._start_reading(now)
        try:
            return reading.result(WAIT_SECONDS)
        except TimeoutError:
            if kept is None:
                raise SnapshotPending from None
            return kept

    def discard(self) -> None:
        """Show nothing any more that was read before."""
        with self._lock:
            self._kept = self._reading = None

    def _start_reading(self, now: float) -> Future[Snapshot]:
        self._reading = reading = Future[Snapshot]()

        def work() -> None:
            began = time.perf_counter()
            try:
                snapshot = self._read(now)
            except Exception as error:
                with self._lock:
                    self._reading = None if self._reading is reading else self._reading
                reading.set_exception(error)
                return
            keep = min(max(MIN_KEEP_SECONDS, KEEP_FACTOR * (time.perf_counter() - began)), MAX_KEEP_SECONDS)
            with self._lock:
                # A snapshot that was discarded while it was read is given to those who wait, and not kept.
                if self._reading is reading:
                    self._kept, self._until, self._reading = snapshot, now + keep, None
            reading.set_result(snapshot)

        threading.Thread(target=work, name="reading answers", daemon=True).start()
        return reading

    def _read(self, now: float) -> Snapshot:
        with self.store.one_snapshot():
            answers, progress, checks = self.store.answers(), self.store.progress(), self.store.check_answers()
            participants, batches = self.store.participants(), self.store.batches()
        quality = measure_participants(self.study, answers, batches, participants, checks)
        return Snapshot(self.study, now, progress, participants, batches, answers, quality)


def select_counted(answers: pl.DataFrame, excluded: Collection[str] = ()) -> pl.Series:
    """Which answers count (N,) bool; those of `excluded` participants do not.

    >>> frame = pl.DataFrame({"participant": ["a", "a", "b"], "near": [True, False, True], "x": [1.0, 2.0, 3.0],
    ...                       "batch_valid": [True, True, True], "batch_state": ["complete"] * 3})
    >>> select_counted(frame, {"b"}).to_list()
    [True, False, False]
    """
    hit = pl.col("near").fill_null(False) & _in_valid_batch()
    without_click = pl.col("x").is_null() & pl.col("batch_valid").fill_null(True)
    return answers.select((without_click | hit) & _not_excluded(excluded)).to_series()


def select_valid_batches(answers: pl.DataFrame, excluded: Collection[str] = ()) -> pl.Series:
    """Which answers (N,) bool belong to a batch that counts, of a participant who is not excluded."""
    return answers.select(_in_valid_batch() & _not_excluded(excluded)).to_series()


def _in_valid_batch() -> pl.Expr:
    return (pl.col("batch_valid") & (pl.col("batch_state") != "open")).fill_null(False)


def _not_excluded(excluded: Collection[str]) -> pl.Expr:
    return ~pl.col("participant").is_in(list(excluded))
