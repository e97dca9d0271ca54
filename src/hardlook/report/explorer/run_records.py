"""The records of a run as one table: columns with one value per record, and the qualities.

Lists and pictures stay in the run's parts; the table has the part and row of each unit's whole record. It is built once
and cached outside the run, in the user's cache folder, under a name that changes when the records do. The table of more
than a million records is never in memory: it is written in chunks, and queries read from its file what they need.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook import fingerprints
from hardlook.errors import DamagedFile, HardlookError, RunError
from hardlook.harness.benchmark import Benchmark
from hardlook.harness.records import Record
from hardlook.harness.runs.folder import RunFolder, write_atomically
from hardlook.harness.runs.ordered_records import PART, ROW, OrderedRecords
from hardlook.harness.runs.record_store import read_part_content
from hardlook.harness.runs.scoring import MOST_IN_MEMORY
from hardlook.harness.runs.sessions import code_fingerprint
from hardlook.reading import reading
from hardlook.report.explorer.query import Field, list_fields

if TYPE_CHECKING:
    import polars as pl

ROWS_PER_GROUP = 100_000
MAX_CACHED_TABLES = 64

# Qualities are computed by code, so that tables of other code are not used.
_fingerprint_code = lru_cache(maxsize=1)(code_fingerprint)


def get_cache_folder() -> Path:
    """The folder of cached tables: `explorer` in `HARDLOOK_CACHE`, else in `hardlook` in the user's cache folder."""
    if chosen := os.environ.get("HARDLOOK_CACHE"):
        return Path(chosen).expanduser() / "explorer"
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "hardlook" / "explorer"


def get_cached_path(name: str) -> Path:
    """The file of a cached table."""
    return get_cache_folder() / f"{name}.parquet"


@dataclass(frozen=True)
class RunState:
    """The current state of a run, on which its table depends. Equal fingerprints, equal tables."""

    folder: RunFolder
    benchmark: Benchmark
    options: Any
    answers: str
    parts: tuple[tuple[str, int, int], ...]
    """Name, size and time of change of every part of the records."""
    units: int = 0
    """How many units the run has."""

    @property
    def paths(self) -> list[Path]:
        """The parts, in the order of their names."""
        return [self.folder.records_path / name for name, _, _ in self.parts]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The columns of the table."""
        qualities = self.benchmark.card.qualities if self.benchmark.qualities is not None else ()
        return list_fields(self.benchmark.schema, qualities)

    @cached_property
    def fingerprint(self) -> str:
        """The name of the table."""
        card = self.benchmark.card
        options = self.options.model_dump(mode="json")
        return fingerprints.hash_value(
            [card.name, card.version, options, self.answers, self.parts, _fingerprint_code()]
        )


def read_run_state(
    folder: RunFolder, benchmark: Benchmark, options: Any, answers: str, root: Path, units: int = 0
) -> RunState:
    """The state of a run; a part that links to something outside of `root` is an error."""
    parts = []
    for path in sorted(folder.records_path.glob("part-*.parquet")):
        if not path.resolve().is_relative_to(root):
            raise RunError("a part of the records is a link to something outside the served folder")
        stat = path.stat()
        parts.append((path.name, stat.st_size, stat.st_mtime_ns))
    return RunState(folder, benchmark, options, answers, tuple(parts), units)


def load_record_frame(state: RunState) -> pl.DataFrame | pl.LazyFrame:
    """The table, one row per unit, sorted by unit: read from the cache, or built and cached.

    That of very many units is a `LazyFrame`, whose rows stay in the cache.
    """
    import polars as pl

    cached = get_cached_path(state.fingerprint)
    with contextlib.suppress(OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        if state.units > MOST_IN_MEMORY:
            return keep_stored_frame(state.fingerprint, _iterate_frames(state), _list_types(state))
        frame = pl.read_parquet(cached)
        _mark_used(cached)
        return _encode_texts(frame, state.fields)
    frame = build_record_frame(state)
    # Without a cache the table is built again at the next start.
    with contextlib.suppress(OSError):
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        write_atomically(cached, buffer.getvalue())
        _drop_oldest(cached.parent)
    return _encode_texts(frame, state.fields)


def keep_stored_frame(name: str, frames: Iterable[pl.DataFrame], types: Mapping[str, Any]) -> pl.LazyFrame:
    """The table of that name in the cache, which is made from these frames where it is not there or damaged."""
    import polars as pl

    path = get_cached_path(name)
    try:
        pl.read_parquet_schema(path)
    except (OSError, pl.exceptions.PolarsError):
        store_frames(path, frames, types)
    _mark_used(path)
    return pl.scan_parquet(path)


def _mark_used(path: Path) -> None:
    """Let a table of the cache be among the last that are removed; of a cache that is read-only none is."""
    with contextlib.suppress(OSError):
        path.touch()


def store_frames(path: Path, frames: Iterable[pl.DataFrame], types: Mapping[str, Any]) -> None:
    """Write tables one after the other to a file of the cache, of which a few are in memory at a time."""
    import polars as pl

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".") as folder:
        # Frames come from queries of their own, and one query within another can wait for its own thread for ever:
        # each frame is written by itself, and then all are joined.
        files = []
        for number, frame in enumerate(itertools.chain([pl.DataFrame(schema=types)], frames)):
            files.append(Path(folder) / f"part-{number}.parquet")
            frame.write_parquet(files[-1])
        joined = Path(folder) / "joined.parquet"
        pl.scan_parquet(files).sink_parquet(joined, row_group_size=ROWS_PER_GROUP)
        joined.replace(path)
    _drop_oldest(path.parent)


def _list_types(state: RunState) -> dict[str, Any]:
    """The types of the table's columns."""
    import polars as pl

    kinds = {**state.benchmark.schema.polars_schema(), PART: pl.UInt32(), ROW: pl.UInt32()}
    return {name: kinds.get(name, pl.Float64()) for name in (*(field.key for field in state.fields), PART, ROW)}


def _take_columns(records: pl.DataFrame, state: RunState) -> pl.DataFrame:
    """The table's columns of these records with their locations, qualities included."""
    import polars as pl

    # NaN would sort as the largest number; null means no value.
    columns = _add_qualities(records, state).select(list(_list_types(state)))
    return columns.with_columns(pl.selectors.float().fill_nan(None))


def build_record_frame(state: RunState) -> pl.DataFrame:
    """Build the table in memory, from the run's parts."""
    import polars as pl

    return pl.concat([pl.DataFrame(schema=_list_types(state)), *_iterate_frames(state)])


def _iterate_frames(state: RunState) -> Iterator[pl.DataFrame]:
    """The rows of the table in the order of the units, a chunk at a time."""
    with _reading_records(state):
        ordered = OrderedRecords(state.folder, state.benchmark.schema, state.answers, parts=state.paths)
        for records in ordered.iterate_located(state.benchmark.schema.light):
            yield _take_columns(records, state)


@contextlib.contextmanager
def _reading_records(state: RunState) -> Iterator[None]:
    """Errors of reading the records, which name a part without its folder: pages show them."""
    what, remedy = "the records have other types than they are written with", "`hardlook verify` names the part"
    try:
        with reading(state.folder.records_path.name, what, remedy=remedy, kind=RunError):
            yield
    except DamagedFile as error:
        name = Path(str(error.file)).name
        raise RunError(error.what, file=name, remedy="`hardlook verify` repairs it") from None


def _add_qualities(records: pl.DataFrame, state: RunState) -> pl.DataFrame:
    """The records with a column for each quality."""
    quality_fields = [field for field in state.fields if field.kind == "quality"]
    if not quality_fields:
        return records
    benchmark = state.benchmark
    assert benchmark.qualities is not None
    values = benchmark.qualities(records.drop(PART, ROW), state.options)
    if len(values) != len(records) or not values["unit"].equals(records["unit"]):
        raise HardlookError(f"benchmark {benchmark.card.name!r} gave qualities of other units than the given ones")
    qualities = zip(quality_fields, benchmark.card.qualities, strict=True)
    return records.with_columns(values[quality.name].alias(field.key) for field, quality in qualities)


def _encode_texts(frame: pl.DataFrame, fields: Sequence[Field]) -> pl.DataFrame:
    """Repeated texts as categories: small, and fast to filter and to sort."""
    import polars as pl

    for field in fields:
        if field.type == "text" and field.kind != "unit":
            values = frame[field.key].unique().drop_nulls().sort()
            if len(values) <= max(len(frame) // 4, 1):
                frame = frame.with_columns(pl.col(field.key).cast(pl.Enum(values)))
    return frame


def _read_content(path: Path) -> bytes:
    """The bytes of a part, whose error names no folder: pages show it."""
    try:
        return read_part_content(path)
    except DamagedFile as error:
        raise RunError(error.what, file=path.name, remedy="`hardlook verify` repairs it") from None


def _drop_oldest(folder: Path) -> None:
    # Another server may be removing the same tables.
    with contextlib.suppress(FileNotFoundError):
        tables = sorted(folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in tables[MAX_CACHED_TABLES:]:
            path.unlink()


def read_whole_record(state: RunState, row: Mapping[str, Any]) -> Record:
    """The whole record, with lists and pictures, of a row of the run's table."""
    import polars as pl

    path = state.folder.records_path / state.parts[row[PART]][0]
    columns = ["unit", *(column.name for column in state.benchmark.schema.columns)]
    what = "the part of the records that holds this unit cannot be read any more"
    with reading(path.name, what, remedy="`hardlook verify` repairs it", kind=RunError):
        content = io.BytesIO(_read_content(path))
        stored = pl.scan_parquet(content).slice(row[ROW], 1)
        known, defaults = stored.collect_schema(), state.benchmark.schema.defaults()
        later = [filled for name, filled in defaults.items() if name not in known]
        rows = stored.with_columns(later).select(columns).collect().to_dicts()
    if not rows or rows[0]["unit"] != row["unit"]:
        raise RunError("the records have changed since this page was loaded", remedy="load the page again")
    return rows[0]
