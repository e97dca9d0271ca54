"""The data behind the pages: tables, units, pictures and thumbnails of runs, each created once for all requests.

A unit is looked up by its id where its benchmark can (`find_units`). Else all units are listed, in the background: a
page waits for some seconds, a thumbnail is asked for again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hardlook.caching import GIBIBYTE, LRUCache
from hardlook.errors import HardlookError
from hardlook.fingerprints import hash_value
from hardlook.harness.benchmark import Benchmark, Unit, draw_nothing
from hardlook.harness.options import BenchmarkOptions, parse_options
from hardlook.harness.records import Record
from hardlook.harness.registry import STUDIES, find_benchmark, list_benchmarks
from hardlook.harness.runs.batches import IndexedUnits
from hardlook.harness.runs.scoring import get_model_name, list_stored_units, name_stored_method
from hardlook.harness.sections import Picture
from hardlook.reading import reading
from hardlook.report.explorer.record_table import Frames, RecordTable, RunPair, Types, pair_tables
from hardlook.report.explorer.run_index import FRESH_SECONDS, ListedRun, RunIndex
from hardlook.report.explorer.run_records import (
    RunState,
    get_cached_path,
    keep_stored_frame,
    load_record_frame,
    read_run_state,
    read_whole_record,
)
from hardlook.report.explorer.thumbnails import Overlay, Panel, build_panels, encode_panels
from hardlook.report.explorer.urls import PageError, describe_error

if TYPE_CHECKING:
    import polars as pl

# Runs of at most so many units are read without being opened.
FEW = 100_000

# For so long the page of a unit, a thumbnail and a grid wait for the list of units.
PATIENCE_SECONDS, THUMBNAIL_PATIENCE_SECONDS, TRIAL_PATIENCE_SECONDS = 5.0, 1.0, 0.2

MEBIBYTE = 1 << 20


class StillListing(HardlookError):
    """A unit cannot be drawn yet, because the units of its run are being listed."""


@dataclass(frozen=True)
class PictureTrial:
    """Why units cannot be drawn, empty where they can; whether they are being listed, and have overlays."""

    problem: str = ""
    listing: bool = False
    overlaid: bool = True


class RunData:
    """All that the pages read. `trusted` names benchmarks given as `package.module:attribute` that may be loaded.

    A `run.json` from elsewhere could name any module, so that only installed and trusted benchmarks are loaded.
    """

    def __init__(self, root: Path, trusted: Collection[str] = ()) -> None:
        self.index, self.trusted = RunIndex(root, self._name_method), frozenset(trusted)
        self.root = self.index.root
        self._benchmarks: LRUCache[Benchmark] = LRUCache(64)
        self._states: LRUCache[RunState] = LRUCache(256)
        self._tables: LRUCache[RecordTable] = LRUCache(2 * GIBIBYTE, lambda table: table.nbytes)
        self._pairs: LRUCache[RunPair] = LRUCache(GIBIBYTE, lambda pair: pair.table.nbytes)
        self._units: LRUCache[Future[IndexedUnits]] = LRUCache(4)
        self._pictures: LRUCache[Sequence[Picture]] = LRUCache(6)
        self._panels: LRUCache[tuple[Panel, ...]] = LRUCache(
            256 * MEBIBYTE, lambda panels: sum(panel.nbytes for panel in panels)
        )
        self._thumbnails: LRUCache[bytes] = LRUCache(64 * MEBIBYTE, len)
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

    def _name_method(self, manifest: Mapping[str, Any]) -> str:
        """The model with those that it works with, where the benchmark may be loaded."""
        name = str(manifest["benchmark"]["name"])
        try:
            benchmark = self._benchmarks.get_or_create(name, lambda: self._find_benchmark(name))
        except HardlookError:
            return get_model_name(manifest)
        return name_stored_method(manifest, benchmark)

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
        return _get_available(
            self._tables,
            state.fingerprint,
            state.fingerprint,
            lambda: RecordTable(load_record_frame(state), state.fields),
        )

    def is_quick(self, listed: ListedRun) -> bool:
        """Whether the run's records can be shown beside those of another run: they are in memory, or few."""
        return int(listed.manifest["units"]) <= FEW or self.state(listed).fingerprint in self._tables

    def pair(self, first: ListedRun, second: ListedRun, quality: str) -> RunPair:
        """The units that two runs share, with the quality of both."""
        key = (self.state(first).fingerprint, self.state(second).fingerprint, quality)
        name = f"pair-{hash_value(key)}"
        tables = self.table(first), self.table(second)

        def store(frames: Frames, types: Types) -> pl.LazyFrame:
            return keep_stored_frame(name, frames, types)

        return _get_available(self._pairs, key, name, lambda: pair_tables(*tables, quality, store))

    def record(self, listed: ListedRun, row: Mapping[str, Any]) -> Record:
        """The whole record of a row of the run's table."""
        return read_whole_record(self.state(listed), row)

    def pictures(self, listed: ListedRun, row: Mapping[str, Any]) -> Sequence[Picture]:
        """The pictures of a unit; a `HardlookError` says why there are none."""
        key = (self.state(listed).fingerprint, row["unit"])
        return self._pictures.get_or_create(key, lambda: self._draw(listed, row))

    def thumbnail(self, listed: ListedRun, row: Mapping[str, Any], overlay: Overlay) -> bytes:
        """A small JPEG of a unit; a `HardlookError` says why there is none."""
        key = (self.state(listed).fingerprint, row["unit"])
        return self._thumbnails.get_or_create(
            (*key, overlay), lambda: encode_panels(self._get_panels(listed, row, THUMBNAIL_PATIENCE_SECONDS), overlay)
        )

    def try_pictures(self, listed: ListedRun, rows: Iterable[Mapping[str, Any]]) -> PictureTrial:
        """Whether one of these units can be drawn."""
        if self.benchmark(listed).pictures is draw_nothing:
            return PictureTrial(f"the benchmark {listed.benchmark} draws no pictures of its units")
        reason = ""
        for row in rows:
            try:
                panels = self._get_panels(listed, row, TRIAL_PATIENCE_SECONDS)
                return PictureTrial(overlaid=any(panel.is_overlaid for panel in panels))
            except StillListing:
                return PictureTrial(listing=True)
            except Exception as error:
                # A benchmark reads files of any kind; whatever fails, the table can still be shown.
                reason = reason or describe_error(error, self.root)
        return PictureTrial(reason)

    def _get_panels(self, listed: ListedRun, row: Mapping[str, Any], patience: float) -> tuple[Panel, ...]:
        key = (self.state(listed).fingerprint, row["unit"])
        return self._panels.get_or_create(key, lambda: self._draw_panels(listed, row, patience))

    def _draw_panels(self, listed: ListedRun, row: Mapping[str, Any], patience: float) -> tuple[Panel, ...]:
        panels = build_panels(self._draw(listed, row, patience))
        if not panels:
            raise HardlookError("the unit has no pictures")
        return panels

    def _draw(self, listed: ListedRun, row: Mapping[str, Any], patience: float = PATIENCE_SECONDS) -> Sequence[Picture]:
        state = self.state(listed)
        record = self.record(listed, row)
        unit = self._find_unit(listed, state, row["unit"], patience)
        if unit is None:
            raise HardlookError("the data do not hold this unit any more")
        with self._drawing:
            return list(state.benchmark.pictures(unit, record))

    def _find_unit(self, listed: ListedRun, state: RunState, name: str, patience: float) -> Unit | None:
        """The unit with that id, looked up where the benchmark can do so; None where the data have none."""
        found = [_look_up(state.benchmark, options, name) for options in _list_options(listed, state)]
        if all(units is not None for units in found):
            return next((units[name] for units in found if units), None)
        return self._list_units(listed, state, patience).find(name)

    def _list_units(self, listed: ListedRun, state: RunState, patience: float) -> IndexedUnits:
        """The run's units; a page waits only for `patience` seconds until they are listed."""
        listing = self._units.get_or_create(state.fingerprint, lambda: _list_units_in_background(listed, state))
        try:
            return listing.result(timeout=patience)
        except TimeoutError:
            raise StillListing("the units of this run are being listed", remedy="load the page again later") from None
        except Exception:
            # The data may become readable: the next page tries again.
            self._units.discard(state.fingerprint)
            raise

    def _read_state(self, listed: ListedRun) -> RunState:
        benchmark = self.benchmark(listed)
        with reading(listed.folder.manifest_path, "the run's options cannot be used", remedy="restore its run.json"):
            options = parse_options(benchmark.options, listed.manifest["options"])
        answers, units = listed.manifest["answers"]["fingerprint"], listed.manifest["units"]
        return read_run_state(listed.folder, benchmark, options, answers, self.root, units)


Kept = TypeVar("Kept", RecordTable, RunPair)


def _get_available(kept: LRUCache[Kept], key: Hashable, name: str, create: Callable[[], Kept]) -> Kept:
    """What is kept under that key; created anew where its file in the cache was removed to make room for others."""
    found = kept.get_or_create(key, create)
    if found.is_stored and not get_cached_path(name).is_file():
        kept.discard(key)
        found = kept.get_or_create(key, create)
    return found


def _list_options(listed: ListedRun, state: RunState) -> list[BenchmarkOptions]:
    """The options whose units the run has: its own, or of a joined run those of its parts."""
    if joined := listed.manifest.get("joined"):
        return [parse_options(state.benchmark.options, row["options"]) for row in joined]
    return [state.options]


def _look_up(benchmark: Benchmark, options: BenchmarkOptions, name: str) -> Mapping[str, Unit] | None:
    return benchmark.find_units(options, [name]) if benchmark.find_units is not None else None


def _list_units_in_background(listed: ListedRun, state: RunState) -> Future[IndexedUnits]:
    """List the units of a run in a daemon thread, which does not keep the server alive."""
    listing: Future[IndexedUnits] = Future()

    def work() -> None:
        try:
            listing.set_result(IndexedUnits(list_stored_units(state.benchmark, listed.manifest, state.options)))
        except BaseException as error:
            listing.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return listing
