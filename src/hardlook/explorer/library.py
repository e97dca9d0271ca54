"""The runs that are open: their tables, their units and the pictures drawn lately, each made once for all requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from hardlook.benchmarks import STUDIES, benchmark_names, find_benchmark
from hardlook.contract.benchmark import Benchmark, Unit
from hardlook.contract.options import parse_options
from hardlook.contract.records import Record
from hardlook.contract.sections import Picture
from hardlook.errors import HardlookError
from hardlook.explorer.gathering import RunState, gathered, look_at
from hardlook.explorer.pairing import Pairing, pair_tables
from hardlook.explorer.record_table import RecordTable
from hardlook.explorer.refusals import Refused, in_words
from hardlook.explorer.remembered import Remembered
from hardlook.explorer.run_index import FRESH_SECONDS, ListedRun, RunIndex
from hardlook.explorer.whole_records import read_whole

GIBIBYTE = float(1 << 30)
_PICTURED = 6
FEW = 100_000
PATIENCE_SECONDS = 5.0


class Library:
    """All that the pages read. `trusted` names benchmarks given as `package.module:attribute` that may be loaded.

    A `run.json` from elsewhere could name any module; only benchmarks that are installed under a name are loaded
    without being asked for.
    """

    def __init__(self, root: Path, trusted: Collection[str] = ()) -> None:
        self.index, self.trusted = RunIndex(root), frozenset(trusted)
        self._benchmarks: Remembered[Benchmark] = Remembered(64)
        self._states: Remembered[RunState] = Remembered(256)
        self._tables: Remembered[RecordTable] = Remembered(2 * GIBIBYTE, lambda table: table.weight)
        self._pairings: Remembered[Pairing] = Remembered(GIBIBYTE, lambda pairing: pairing.table.weight)
        self._units: Remembered[Future[Mapping[str, Unit]]] = Remembered(4)
        self._pictures: Remembered[Sequence[Picture]] = Remembered(_PICTURED)
        # Benchmarks keep what they read lately on shelves that two threads must not rearrange at once.
        self._drawing = threading.Lock()

    @property
    def root(self) -> Path:
        """The served folder."""
        return self.index.root

    def run(self, key: str) -> ListedRun:
        """The run with that key, if it can be opened."""
        listed = self.index.find(key)
        if listed is None:
            raise Refused("There is no such run here. The first page lists those that there are.", 404)
        if problem := self.problem(listed):
            raise Refused(f"This run cannot be opened: {problem}.", 404)
        return listed

    def problem(self, listed: ListedRun) -> str:
        """Why a run cannot be opened, or nothing."""
        if listed.problem:
            return listed.problem
        try:
            self.benchmark(listed)
        except HardlookError as error:
            return in_words(error, self.root)
        return ""

    def benchmark(self, listed: ListedRun) -> Benchmark:
        """The run's benchmark, in the version that made it."""
        name = listed.benchmark
        # Looking through what is installed takes longer than the rest of a page.
        benchmark = self._benchmarks.get(name, lambda: self._find(name))
        made = str(listed.manifest["benchmark"]["version"])
        if benchmark.card.version != made:
            raise HardlookError(f"it was made by version {made} of {name}, this is version {benchmark.card.version}")
        return benchmark

    def _find(self, name: str) -> Benchmark:
        if name not in {*benchmark_names(), *STUDIES, *self.trusted}:
            raise HardlookError(
                f"nobody installed a benchmark called {name}", remedy=f"start the explorer with --benchmark {name}"
            )
        return find_benchmark(name)

    def state(self, listed: ListedRun) -> RunState:
        """The run as it stood some seconds ago at most."""
        moment = int(time.monotonic() / FRESH_SECONDS)
        return self._states.get((listed.key, moment), lambda: self._look_at(listed))

    def table(self, listed: ListedRun) -> RecordTable:
        """The run's records."""
        state = self.state(listed)
        return self._tables.get(state.fingerprint, lambda: RecordTable(gathered(state), state.fields))

    def at_hand(self, listed: ListedRun) -> bool:
        """Whether the run's records can be asked for beside another page: they are in memory, or few."""
        return int(listed.manifest["units"]) <= FEW or self._tables.has(self.state(listed).fingerprint)

    def pairing(self, first: ListedRun, second: ListedRun, quality: str) -> Pairing:
        """The units that two runs share, with the quality of both."""
        key = (self.state(first).fingerprint, self.state(second).fingerprint, quality)
        tables = self.table(first), self.table(second)
        return self._pairings.get(key, lambda: pair_tables(*tables, quality))

    def record(self, listed: ListedRun, row: Mapping[str, Any]) -> Record:
        """The whole record of a row of the run's table."""
        return read_whole(self.state(listed), row)

    def pictures(self, listed: ListedRun, row: Mapping[str, Any]) -> Sequence[Picture]:
        """The pictures of a unit; a `HardlookError` says why there are none."""
        key = (self.state(listed).fingerprint, row["unit"])
        return self._pictures.get(key, lambda: self._draw(listed, row))

    def _draw(self, listed: ListedRun, row: Mapping[str, Any]) -> Sequence[Picture]:
        state = self.state(listed)
        record = self.record(listed, row)
        units = self._listed_units(state)
        if row["unit"] not in units:
            raise HardlookError("the data do not hold this unit any more")
        with self._drawing:
            return list(state.benchmark.pictures(units[row["unit"]], record))

    def _listed_units(self, state: RunState) -> Mapping[str, Unit]:
        """The run's units by id; a page does not wait for long until very many of them are listed."""
        listing = self._units.get(state.fingerprint, lambda: _in_background(state))
        try:
            return listing.result(timeout=PATIENCE_SECONDS)
        except TimeoutError:
            raise HardlookError(
                "the units of this run are being listed", remedy="load the page again in a while"
            ) from None
        except Exception:
            # The data may come back: the next page tries again.
            self._units.forget(state.fingerprint)
            raise

    def _look_at(self, listed: ListedRun) -> RunState:
        benchmark = self.benchmark(listed)
        options = parse_options(benchmark.options, listed.manifest["options"])
        return look_at(listed.folder, benchmark, options, listed.manifest["answers"]["fingerprint"], self.root)


def _in_background(state: RunState) -> Future[Mapping[str, Unit]]:
    """The units of a run, being listed in a thread that does not keep the server from ending."""
    listing: Future[Mapping[str, Unit]] = Future()

    def work() -> None:
        try:
            listing.set_result({unit.id: unit for unit in state.benchmark.units(state.options)})
        except BaseException as error:
            listing.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return listing
