"""Records and failures on disk: Parquet parts that appear whole, named by what they hold.

A part's name is the hash of its content, so two processes that wrote the same records wrote the same file. Every row
carries the fingerprint of what answered it; only rows with the run's own fingerprint count.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook import __version__
from hardlook.errors import RunError
from hardlook.harness.records import Record, RecordSchema
from hardlook.harness.runs.folder import RunFolder, write_whole

if TYPE_CHECKING:
    import polars as pl


FLUSH_SECONDS = 2.0

FLUSH_RECORDS = 5000


@dataclass(frozen=True)
class Failure:
    """A unit without an answer: where it broke (prepare, evaluate, worker), the error and its traceback."""

    unit: str
    stage: str
    error: str
    traceback: str


class RecordWriter:
    """Collects records and failures and writes a part every two seconds or 5,000 rows."""

    def __init__(self, folder: RunFolder, schema: RecordSchema, answers: str) -> None:
        self.folder, self.schema, self.answers = folder, schema, answers
        self._records: list[Record] = []
        self._failures: list[Failure] = []
        self._flushed = time.monotonic()

    def add(self, records: Iterable[Record], failures: Iterable[Failure]) -> None:
        """Take the outcome of a batch."""
        self._records.extend(records)
        self._failures.extend(failures)
        pending = len(self._records) + len(self._failures)
        if pending >= FLUSH_RECORDS or time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what has been collected."""
        import polars as pl

        if self._records:
            frame = self.schema.frame(self._records).with_columns(answers=pl.lit(self.answers))
            _write_part(frame, self.folder.records_path)
        if self._failures:
            at = datetime.now(UTC).isoformat()
            rows = [{**asdict(failure), "at": at, "answers": self.answers} for failure in self._failures]
            _write_part(pl.DataFrame(rows), self.folder.failure_parts_path)
        self._records, self._failures, self._flushed = [], [], time.monotonic()


def answered_units(folder: RunFolder, answers: str) -> set[str]:
    """Units that have a record with this fingerprint."""
    import polars as pl

    done: set[str] = set()
    for part in _parts(folder.records_path):
        frame = _read_parquet(part, ["unit", "answers"])
        done.update(frame.filter(pl.col("answers") == answers)["unit"].to_list())
    return done


def read_records(
    folder: RunFolder, schema: RecordSchema, answers: str, columns: Sequence[str], units: Sequence[str] | None = None
) -> pl.DataFrame:
    """The records of a run, one row a unit, sorted by unit; of some `units` only when given."""
    import polars as pl

    kept = pl.col("answers") == answers
    if units is not None:
        kept = kept & pl.col("unit").is_in(list(units))
    expected = {name: schema.polars_schema()[name] for name in columns}
    frames = [pl.DataFrame(schema=expected)]
    for part in _parts(folder.records_path):
        frame = _read_parquet(part, [*columns, "answers"]).filter(kept).select(columns)
        if differing := [name for name, kind in expected.items() if frame.schema[name] != kind]:
            raise _of_another_version(part, f"have other types in column {', '.join(differing)}")
        frames.append(frame)
    together = pl.concat(frames)
    return together.unique(subset="unit", keep="first", maintain_order=True).sort("unit")


def contradicting_units(folder: RunFolder, schema: RecordSchema, answers: str) -> list[str]:
    """Units that two processes answered differently: the model does not answer alike twice."""
    import polars as pl

    frames = [
        _read_parquet(part, [*schema.light, "answers"]).filter(pl.col("answers") == answers)
        for part in _parts(folder.records_path)
    ]
    if not frames:
        return []
    together = pl.concat(frames)
    doubled = together.filter(pl.col("unit").is_duplicated())
    if doubled.is_empty():
        return []
    variants = doubled.unique().group_by("unit").len().filter(pl.col("len") > 1)
    return sorted(variants["unit"].to_list())


def write_failures(folder: RunFolder, answers: str) -> pl.DataFrame:
    """Gather the last failure of each unit that has no record into `failures.parquet`."""
    import polars as pl

    columns = ("unit", "stage", "error", "traceback", "at", "answers")
    empty = pl.DataFrame(schema={name: pl.String() for name in columns})
    frames = [_read_parquet(part, columns) for part in _parts(folder.failure_parts_path)]
    open_ones = (pl.col("answers") == answers) & ~pl.col("unit").is_in(list(answered_units(folder, answers)))
    together = pl.concat([empty, *frames]).filter(open_ones).drop("answers")
    failures = together.sort("unit", "at").unique(subset="unit", keep="last", maintain_order=True)
    buffer = io.BytesIO()
    failures.write_parquet(buffer)
    write_whole(folder.failures_path, buffer.getvalue())
    return failures


def _parts(directory: Path) -> list[Path]:
    return sorted(directory.glob("part-*.parquet")) if directory.is_dir() else []


def _write_part(frame: pl.DataFrame, directory: Path) -> None:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    name = hashlib.blake2b(buffer.getvalue(), digest_size=12).hexdigest()
    write_whole(directory / f"part-{name}.parquet", buffer.getvalue())


def _read_parquet(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    import polars as pl

    try:
        there = pl.read_parquet_schema(path)
        if lacking := [name for name in columns or () if name not in there]:
            raise _of_another_version(path, f"have no column {', '.join(lacking)}")
        return pl.read_parquet(path, columns=list(columns) if columns is not None else None)
    except RunError:
        raise
    except Exception as error:
        raise RunError(
            f"a part of the records cannot be read ({type(error).__name__}: {str(error).partition(chr(10))[0]})",
            file=path,
            remedy="delete this file and give the `hardlook run` of this folder again: its units will be answered anew",
        ) from error


def _of_another_version(part: Path, how: str) -> RunError:
    """What is wrong with records that this version would not have written, and which version did."""
    run = RunFolder(part.parent.parent)
    code = run.read_manifest().get("code") if run.exists() else None
    # Between releases the version stays while the code moves on: its fingerprint tells.
    made_by = (
        f"{code.get('hardlook')}, code {str(code.get('fingerprint'))[:8]}" if isinstance(code, dict) else "unknown"
    )
    return RunError(
        f"the records {how}: they were made by another version (run.json: hardlook {made_by}; this is {__version__})",
        file=part,
        remedy="run it again (--new sets the old run aside), or use the version that made it",
    )
