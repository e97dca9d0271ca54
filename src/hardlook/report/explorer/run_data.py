"""The data behind the pages: tables, units and pictures of the open runs, each created once for all requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from hardlook.caching import GIBIBYTE, LRUCache
from hardlook.errors import HardlookError
from hardlook.harness.benchmark import Benchmark, Unit
from hardlook.harness.options import parse_options
from hardlook.harness.records import Record
from hardlook.harness.registry import STUDIES, find_benchmark, list_benchmarks
from hardlook.harness.runs.scoring import list_stored_units
from hardlook.harness.sections import Picture
from hardlook.reading import reading
from hardlook.report.explorer.record_table import RecordTable, RunPair, pair_tables
from hardlook.report.explorer.run_index import FRESH_SECONDS, ListedRun, RunIndex
from hardlook.report.explorer.run_records import RunState, load_record_frame, read_run_state, read_whole_record
from hardlook.report.explorer.urls import PageError, describe_error

# Runs of at most so many units are read without being opened.
FEW = 100_000

# For so long a page waits for the list of units.
PATIENCE_SECONDS = 5.0


class RunData:
    """All that the pages read. `trusted` names benchmarks given as `package.module:attribute` that may be loaded.

    A `run.json` from elsewhere could name any module, so that only installed and trusted benchmarks are loaded.
    """

    def __init__(self, root: Path, trusted: Collection[str] = ()) -> None:
        self.index, self.trusted = RunIndex(root), frozenset(trusted)
        self.root = self.index.root
        self._benchmarks: LRUCache[Benchmark] = LRUCache(64)
        self._states: LRUCache[RunState] = LRUCache(256)
        self._tables: LRUCache[RecordTable] = LRUCache(2 * GIBIBYTE, lambda table: table.frame.estimated_size())
        self._pairs: LRUCache[RunPair] = LRUCache(GIBIBYTE, lambda pair: pair.table.frame.estimated_size())
        self._units: LRUCache[Future[Mapping[str, Unit]]] = LRUCache(4)
        self._pictures: LRUCache[Sequence[Picture]] = LRUCache(6)
        # Benchmarks may keep state between pictures, which two threads must not change at once.
        self._drawing = threading.Lock()

    def run(self, key: str) -> ListedRun:
        """The run with that key, if it can be opened."""
        listed = self.index.find(key)
        if listed is None:
            raise PageError("There is no such run here. The first page lists all runs.", 404)
        if problem := self.problem(listed):
            raise PageError(f"This run cannot be opened: {problem}.", 404)
        return listed

    def problem(self, listed: ListedRun) -> str:
        """Why a run cannot be opened; empty where it can."""
        if listed.problem:
            return listed.problem
        try:
            self.benchmark(listed)
        except HardlookError as error:
            return describe_error(error, self.root)
        return ""

    def benchmark(self, listed: ListedRun) -> Benchmark:
        """The run's benchmark, in the version that made it."""
        name = listed.benchmark
        # The search among installed benchmarks takes longer than the rest of a page.
        benchmark = self._benchmarks.get_or_create(name, lambda: self._find_benchmark(name))
        made = str(listed.manifest["benchmark"]["version"])
        if benchmark.card.version != made:
            raise HardlookError(f"it was made by version {made} of {name}, this is version {benchmark.card.version}")
        return benchmark

    def _find_benchmark(self, name: str) -> Benchmark:
        if name not in {*list_benchmarks(), *STUDIES, *self.trusted}:
            raise HardlookError(
                f"there is no installed benchmark called {name}", remedy=f"start the explorer with --benchmark {name}"
            )
        return find_benchmark(name)

    def state(self, listed: ListedRun) -> RunState:
        """The state of the run, some seconds old at most."""
        moment = int(time.monotonic() / FRESH_SECONDS)
        return self._states.get_or_create((listed.key, moment), lambda: self._read_state(listed))

    def table(self, listed: ListedRun) -> RecordTable:
        """The run's records."""
        state = self.state(listed)
        return self._tables.get_or_create(
            state.fingerprint, lambda: RecordTable(load_record_frame(state), state.fields)
        )

    def is_quick(self, listed: ListedRun) -> bool:
        """Whether the run's records can be shown beside those of another run: they are in memory, or few."""
        return int(listed.manifest["units"]) <= FEW or self.state(listed).fingerprint in self._tables

    def pair(self, first: ListedRun, second: ListedRun, quality: str) -> RunPair:
        """The units that two runs share, with the quality of both."""
        key = (self.state(first).fingerprint, self.state(second).fingerprint, quality)
        tables = self.table(first), self.table(second)
        return self._pairs.get_or_create(key, lambda: pair_tables(*tables, quality))

    def record(self, listed: ListedRun, row: Mapping[str, Any]) -> Record:
        """The whole record of a row of the run's table."""
        return read_whole_record(self.state(listed), row)

    def pictures(self, listed: ListedRun, row: Mapping[str, Any]) -> Sequence[Picture]:
        """The pictures of a unit; a `HardlookError` says why there are none."""
        key = (self.state(listed).fingerprint, row["unit"])
        return self._pictures.get_or_create(key, lambda: self._draw(listed, row))

    def _draw(self, listed: ListedRun, row: Mapping[str, Any]) -> Sequence[Picture]:
        state = self.state(listed)
        record = self.record(listed, row)
        units = self._list_units(listed, state)
        if row["unit"] not in units:
            raise HardlookError("the data do not hold this unit any more")
        with self._drawing:
            return list(state.benchmark.pictures(units[row["unit"]], record))

    def _list_units(self, listed: ListedRun, state: RunState) -> Mapping[str, Unit]:
        """The run's units by id; a page waits only for some seconds until they are listed."""
        listing = self._units.get_or_create(state.fingerprint, lambda: _list_units_in_background(listed, state))
        try:
            return listing.result(timeout=PATIENCE_SECONDS)
        except TimeoutError:
            raise HardlookError("the units of this run are being listed", remedy="load the page again later") from None
        except Exception:
            # The data may become readable: the next page tries again.
            self._units.discard(state.fingerprint)
            raise

    def _read_state(self, listed: ListedRun) -> RunState:
        benchmark = self.benchmark(listed)
        with reading(listed.folder.manifest_path, "the run's options cannot be used", remedy="restore its run.json"):
            options = parse_options(benchmark.options, listed.manifest["options"])
        return read_run_state(listed.folder, benchmark, options, listed.manifest["answers"]["fingerprint"], self.root)


def _list_units_in_background(listed: ListedRun, state: RunState) -> Future[Mapping[str, Unit]]:
    """List the units of a run in a daemon thread, which does not keep the server alive."""
    listing: Future[Mapping[str, Unit]] = Future()

    def work() -> None:
        try:
            units = list_stored_units(state.benchmark, listed.manifest, state.options)
            listing.set_result({unit.id: unit for unit in units})
        except BaseException as error:
            listing.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return listing
