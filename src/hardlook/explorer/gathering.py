"""The records of a run in one table that is small enough to keep: one value a cell, the qualities, where each lies.

Lists and pictures stay in the run's parts; the table says in which part and row a unit's whole record is found. It
is made once and kept outside the run, in the user's cache folder, under a name that changes when the records do.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook import fingerprint
from hardlook.contract.benchmark import Benchmark, JudgesUnits
from hardlook.errors import HardlookError, RunError
from hardlook.explorer.fields import Field, fields_of
from hardlook.runs.folder import RunFolder, write_whole
from hardlook.runs.sessions import code_fingerprint

if TYPE_CHECKING:
    import polars as pl

PART, ROW = "part of the run", "row of the part"
AT_ONCE = 50_000
MOST_KEPT = 64


def cache_folder() -> Path:
    """Where tables are kept: `HARDLOOK_CACHE`, else `hardlook` in the user's cache folder; `explorer` within it."""
    if chosen := os.environ.get("HARDLOOK_CACHE"):
        return Path(chosen).expanduser() / "explorer"
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "hardlook" / "explorer"


@dataclass(frozen=True)
class RunState:
    """A run as it stands now: what its table depends on. Equal fingerprints, equal tables."""

    folder: RunFolder
    benchmark: Benchmark
    options: Any
    answers: str
    parts: tuple[tuple[str, int, int], ...]
    """Name, size and time of change of every part of the records."""

    @property
    def paths(self) -> list[Path]:
        """The parts, in the order in which they count."""
        return [self.folder.records_path / name for name, _, _ in self.parts]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The columns of the table."""
        judged = self.benchmark.card.qualities if isinstance(self.benchmark, JudgesUnits) else ()
        return fields_of(self.benchmark.schema, judged)

    @cached_property
    def fingerprint(self) -> str:
        """The name of the table."""
        card = self.benchmark.card
        options = self.options.model_dump(mode="json")
        return fingerprint.of_value([card.name, card.version, options, self.answers, self.parts, _code()])


@lru_cache(maxsize=1)
def _code() -> str:
    """Qualities are computed by code: other code, other table."""
    return code_fingerprint()


def look_at(folder: RunFolder, benchmark: Benchmark, options: Any, answers: str, root: Path) -> RunState:
    """The state of a run; a part that leads out of `root` is refused."""
    parts = []
    for path in sorted(folder.records_path.glob("part-*.parquet")):
        if not path.resolve().is_relative_to(root):
            raise RunError("a part of the records is a link to something outside the served folder")
        facts = path.stat()
        parts.append((path.name, facts.st_size, facts.st_mtime_ns))
    return RunState(folder, benchmark, options, answers, tuple(parts))


def gathered(state: RunState) -> pl.DataFrame:
    """The table, one row a unit, sorted by unit: read from the cache, or made and put there."""
    import polars as pl

    kept = cache_folder() / f"{state.fingerprint}.parquet"
    with contextlib.suppress(OSError, pl.exceptions.PolarsError):
        frame = pl.read_parquet(kept)
        kept.touch()
        return _coded(frame, state.fields)
    frame = gather(state)
    # A cache that cannot be written costs time at the next start, and nothing else.
    with contextlib.suppress(OSError):
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        write_whole(kept, buffer.getvalue())
        _drop_oldest(kept.parent)
    return _coded(frame, state.fields)


def gather(state: RunState) -> pl.DataFrame:
    """Make the table from the run's parts, some tens of thousands of records at a time."""
    import polars as pl

    kinds = {**state.benchmark.schema.polars_schema(), PART: pl.UInt32(), ROW: pl.UInt32()}
    columns = [*(field.key for field in state.fields), PART, ROW]
    empty = pl.DataFrame(schema={name: kinds.get(name, pl.Float64()) for name in columns})
    frames = [_judged(records, state).select(columns) for records in _chunks(state, _places(state))]
    # NaN would sort as the largest number and pass no range; as null it is what it means: no value.
    return pl.concat([empty, *frames]).with_columns(pl.selectors.float().fill_nan(None)).sort("unit")


def _places(state: RunState) -> pl.DataFrame:
    """Which part and row holds each unit; of a unit that two processes answered the first counts, as in scores."""
    import polars as pl

    frames = [
        _read(path, ["unit", "answers"])
        .with_row_index(ROW)
        .filter(pl.col("answers") == state.answers)
        .select("unit", ROW, pl.lit(number, pl.UInt32()).alias(PART))
        for number, path in enumerate(state.paths)
    ]
    empty = pl.DataFrame(schema={"unit": pl.String(), ROW: pl.UInt32(), PART: pl.UInt32()})
    return pl.concat([empty, *frames]).unique(subset="unit", keep="first", maintain_order=True)


def _chunks(state: RunState, places: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The light columns of the records that count, with their places, of about `AT_ONCE` units at a time."""
    import polars as pl

    waiting: list[pl.DataFrame] = []
    for number, path in enumerate(state.paths):
        rows = places.filter(pl.col(PART) == number)[ROW]
        if len(rows):
            frame = _read(path, state.benchmark.schema.light).with_row_index(ROW)[rows]
            waiting.append(frame.with_columns(pl.lit(number, pl.UInt32()).alias(PART)))
        if sum(map(len, waiting)) >= AT_ONCE:
            yield pl.concat(waiting)
            waiting = []
    if waiting:
        yield pl.concat(waiting)


def _judged(records: pl.DataFrame, state: RunState) -> pl.DataFrame:
    """The records with a column for each quality."""
    judged = [field for field in state.fields if field.kind == "quality"]
    if not judged:
        return records
    benchmark = state.benchmark
    assert isinstance(benchmark, JudgesUnits)
    values = benchmark.qualities(records.drop(PART, ROW), state.options)
    if len(values) != len(records) or not values["unit"].equals(records["unit"]):
        raise HardlookError(f"benchmark {benchmark.card.name!r} gave qualities of other units than it was asked for")
    qualities = zip(judged, benchmark.card.qualities, strict=True)
    return records.with_columns(values[quality.name].alias(field.key) for field, quality in qualities)


def _coded(frame: pl.DataFrame, fields: Sequence[Field]) -> pl.DataFrame:
    """Texts that come again and again as numbers of a sorted list: small, and quick to filter and to sort."""
    import polars as pl

    for field in fields:
        if field.type == "text" and field.kind != "unit":
            values = frame[field.key].unique().drop_nulls().sort()
            if len(values) <= max(len(frame) // 4, 1):
                frame = frame.with_columns(pl.col(field.key).cast(pl.Enum(values)))
    return frame


def _read(path: Path, columns: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(path, columns=list(columns))
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RunError(f"a part of the records cannot be read ({type(error).__name__})", file=path.name) from error


def _drop_oldest(folder: Path) -> None:
    tables = sorted(folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in tables[MOST_KEPT:]:
        path.unlink(missing_ok=True)
