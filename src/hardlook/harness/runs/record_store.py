"""Records and failures on disk: Parquet parts, each written atomically and named by the hash of its content.

Two processes that write the same records write the same file. The column `answers` of every row has the
fingerprint of all that its record depends on; only rows with the run's own fingerprint count.
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
from hardlook.harness.runs.folder import RunFolder, write_atomically

if TYPE_CHECKING:
    import polars as pl


FLUSH_SECONDS = 2.0

FLUSH_RECORDS = 5000


@dataclass(frozen=True)
class Failure:
    """A failed unit: the stage (prepare, evaluate, worker), the error and its traceback."""

    unit: str
    stage: str
    error: str
    traceback: str


class RecordWriter:
    """Collects records and failures and writes a part every two seconds or 5,000 rows; `answers` is the fingerprint."""

    def __init__(self, folder: RunFolder, schema: RecordSchema, answers: str) -> None:
        self.folder, self.schema, self.answers = folder, schema, answers
        self._records: list[Record] = []
        self._failures: list[Failure] = []
        self._flushed = time.monotonic()

    def add(self, records: Iterable[Record], failures: Iterable[Failure]) -> None:
        """Add the records and failures of a batch; write a part if it is time."""
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


def list_answered_units(folder: RunFolder, answers: str) -> set[str]:
    """Units that have a record with the fingerprint `answers`."""
    import polars as pl

    done: set[str] = set()
    for part in _list_parts(folder.records_path):
        frame = _read_parquet(part, ["unit", "answers"])
        done.update(frame.filter(pl.col("answers") == answers)["unit"].to_list())
    return done


def read_records(
    folder: RunFolder, schema: RecordSchema, answers: str, columns: Sequence[str], units: Sequence[str] | None = None
) -> pl.DataFrame:
    """The records of a run, one row per unit, sorted by unit; where a unit has several, that of the first part.

    With `units`, only their records.
    """
    import polars as pl

    kept = pl.col("answers") == answers
    if units is not None:
        kept = kept & pl.col("unit").is_in(list(units))
    expected = {name: schema.polars_schema()[name] for name in columns}
    frames = [pl.DataFrame(schema=expected)]
    for part in _list_parts(folder.records_path):
        frame = _read_parquet(part, [*columns, "answers"]).filter(kept).select(columns)
        if differing := [name for name, kind in expected.items() if frame.schema[name] != kind]:
            raise _version_error(part, f"have other types in column {', '.join(differing)}")
        frames.append(frame)
    return pl.concat(frames).unique(subset="unit", keep="first", maintain_order=True).sort("unit")


def list_contradicting_units(folder: RunFolder, schema: RecordSchema, answers: str) -> list[str]:
    """Units that have different records from two processes: the model is not deterministic."""
    import polars as pl

    frames = [
        _read_parquet(part, [*schema.light, "answers"]).filter(pl.col("answers") == answers)
        for part in _list_parts(folder.records_path)
    ]
    if not frames:
        return []
    repeated = pl.concat(frames).filter(pl.col("unit").is_duplicated())
    return sorted(repeated.unique().group_by("unit").len().filter(pl.col("len") > 1)["unit"].to_list())


def write_failures(folder: RunFolder, answers: str) -> pl.DataFrame:
    """Write the latest failure of each unit that has no record to `failures.parquet`, and return them."""
    import polars as pl

    columns = ("unit", "stage", "error", "traceback", "at", "answers")
    empty = pl.DataFrame(schema={name: pl.String() for name in columns})
    frames = [_read_parquet(part, columns) for part in _list_parts(folder.failure_parts_path)]
    unanswered = (pl.col("answers") == answers) & ~pl.col("unit").is_in(list(list_answered_units(folder, answers)))
    failures = pl.concat([empty, *frames]).filter(unanswered).drop("answers")
    failures = failures.sort("unit", "at").unique(subset="unit", keep="last", maintain_order=True)
    write_atomically(folder.failures_path, _to_parquet(failures))
    return failures


def _list_parts(directory: Path) -> list[Path]:
    return sorted(directory.glob("part-*.parquet")) if directory.is_dir() else []


def _write_part(frame: pl.DataFrame, directory: Path) -> None:
    content = _to_parquet(frame)
    name = hashlib.blake2b(content, digest_size=12).hexdigest()
    write_atomically(directory / f"part-{name}.parquet", content)


def _to_parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _read_parquet(path: Path, columns: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    try:
        stored = pl.read_parquet_schema(path)
        if missing := [name for name in columns if name not in stored]:
            raise _version_error(path, f"have no column {', '.join(missing)}")
        return pl.read_parquet(path, columns=list(columns))
    except RunError:
        raise
    except Exception as error:
        raise RunError(
            f"a part of the records cannot be read ({type(error).__name__}: {str(error).partition(chr(10))[0]})",
            file=path,
            remedy="delete this file and repeat the `hardlook run` of this folder: it evaluates the missing units",
        ) from error


def _version_error(part: Path, problem: str) -> RunError:
    """The error for records that another version wrote, with that version."""
    run = RunFolder(part.parent.parent)
    code = run.read_manifest().get("code") if run.exists() else None
    # Between releases the code changes while the version stays the same, so the code's fingerprint is shown too.
    made_by = (
        f"{code.get('hardlook')}, code {str(code.get('fingerprint'))[:8]}" if isinstance(code, dict) else "unknown"
    )
    return RunError(
        f"the records {problem}: they were made by another version "
        f"(run.json: hardlook {made_by}; this is {__version__})",
        file=part,
        remedy="run it again (--new sets the old run aside), or use the version that made it",
    )
