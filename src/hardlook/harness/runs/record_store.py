"""Records and failures on disk: Parquet parts, each written atomically and named by the hash of its content.

Two processes that write the same records write the same file, and a part whose content no longer has the hash in its
name is a `DamagedFile`. The column `answers` of every row has the fingerprint of all that its record depends on; only
rows with the run's own fingerprint count.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hardlook import __version__
from hardlook.cloud.addresses import list_data_prefixes
from hardlook.errors import DamagedFile, RunError
from hardlook.fingerprints import hash_value
from hardlook.harness.checked_json import CHECKSUM
from hardlook.harness.records import Record, RecordSchema
from hardlook.harness.runs.folder import RunFolder, suggest_repair, write_atomically
from hardlook.reading import reading

if TYPE_CHECKING:
    import polars as pl


FLUSH_SECONDS = 2.0

FLUSH_RECORDS = 5000

_PART_NAME = re.compile(r"part-(?P<hash>[0-9a-f]{24})\.parquet")

FAILURE_COLUMNS = ("unit", "stage", "error", "traceback", "at", "answers")


@dataclass(frozen=True)
class Failure:
    """A failed unit: the stage (prepare, evaluate, worker), the error and its traceback."""

    unit: str
    stage: str
    error: str
    traceback: str


class RecordWriter:
    """Collects checked records and failures and writes a part every two seconds or 5,000 rows; `answers` marks them."""

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
            frame = self.schema.frame(self._records, checked=True).with_columns(answers=pl.lit(self.answers))
            write_part(_name_addresses(frame), self.folder.records_path)
        if self._failures:
            at = datetime.now(UTC).isoformat()
            rows = [{**asdict(failure), "at": at, "answers": self.answers} for failure in self._failures]
            write_part(_name_addresses(pl.DataFrame(rows)), self.folder.failure_parts_path)
        self._records, self._failures, self._flushed = [], [], time.monotonic()


def _name_addresses(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with addresses in place of the paths of their copies, which are others on every machine."""
    import polars as pl

    for path, address in list_data_prefixes():
        frame = frame.with_columns(pl.col(pl.String).str.replace_all(path, address, literal=True))
    return frame


def iterate_answered_units(folder: RunFolder, answers: str) -> Iterator[pl.Series]:
    """Yield by part the units that have a record with the fingerprint `answers`."""
    for part in list_parts(folder.records_path):
        yield _filter_own(read_part(part, ["unit", "answers"]), answers)["unit"]


def _filter_own(frame: pl.DataFrame, answers: str) -> pl.DataFrame:
    """The rows with the fingerprint `answers`, in nearly every part all."""
    is_own = frame["answers"] == answers
    return frame if is_own.all() else frame.filter(is_own)


def read_records(
    folder: RunFolder, schema: RecordSchema, answers: str, columns: Sequence[str], units: Sequence[str] | None = None
) -> pl.DataFrame:
    """The records of a run, one row per unit, sorted by unit; where a unit has several, that of the first part.

    With `units`, only their records.
    """
    return keep_first_records(read_all_records(folder, schema, answers, columns, units)[0])


def read_all_records(
    folder: RunFolder, schema: RecordSchema, answers: str, columns: Sequence[str], units: Sequence[str] | None = None
) -> tuple[pl.DataFrame, dict[Path, int]]:
    """Every record of a run by part, of a unit with several all of them, and the records of others.

    These, which have another fingerprint than `answers`, are of another model, data or version; they are counted by
    part.
    """
    import polars as pl

    frames, others = [pl.DataFrame(schema={name: schema.polars_schema()[name] for name in columns})], {}
    for part in list_parts(folder.records_path):
        own, count = read_own_part(part, schema, answers, columns)
        if count:
            others[part] = count
        frames.append(own if units is None else own.filter(pl.col("unit").is_in(list(units))))
    return pl.concat(frames), others


def read_own_part(
    part: Path, schema: RecordSchema, answers: str, columns: Sequence[str], numbered: str = ""
) -> tuple[pl.DataFrame, int]:
    """The records of a part with the fingerprint `answers`, and the number of those that have another one.

    With `numbered`, a first column of that name has the number of each row in the part.
    """
    frame = read_part(part, [*columns, "answers"], schema.defaults())
    kinds = schema.polars_schema()
    if differing := [name for name in columns if frame.schema[name] != kinds[name]]:
        raise _version_error(part, f"have other types in column {', '.join(differing)}")
    own = _filter_own(frame.with_row_index(numbered) if numbered else frame, answers)
    return own.drop("answers"), len(frame) - len(own)


def keep_first_records(records: pl.DataFrame) -> pl.DataFrame:
    """Of each unit the record of the first part, sorted by unit."""
    return drop_repeated_units(records.sort("unit", maintain_order=True))


def drop_repeated_units(ordered: pl.DataFrame) -> pl.DataFrame:
    """Of each unit the first row; the rows are sorted by unit."""
    import polars as pl

    return ordered.filter((pl.col("unit") != pl.col("unit").shift()).fill_null(True))


def find_contradicting_units(records: pl.DataFrame) -> list[str]:
    """Units that have different records from two processes: the model is not deterministic."""
    import polars as pl

    repeated = records.filter(pl.col("unit").is_duplicated())
    return sorted(repeated.unique().group_by("unit").len().filter(pl.col("len") > 1)["unit"].to_list())


def read_failures(folder: RunFolder, answers: str) -> pl.DataFrame:
    """The latest failure of each unit that has no record."""
    import polars as pl

    empty = pl.DataFrame(schema={name: pl.String() for name in FAILURE_COLUMNS})
    frames = [read_part(part, FAILURE_COLUMNS) for part in list_parts(folder.failure_parts_path)]
    if not frames:
        return empty.drop("answers")
    what, remedy = "the failures have other types than they are written with", suggest_repair(folder.path)
    with reading(folder.failure_parts_path, what, remedy=remedy, kind=RunError):
        failures = pl.concat([empty, *frames]).filter(pl.col("answers") == answers).drop("answers")
    for answered in iterate_answered_units(folder, answers):
        failures = failures.filter(~failures["unit"].is_in(answered.implode()))
    return failures.sort("unit", "at").unique(subset="unit", keep="last", maintain_order=True)


def write_failures(folder: RunFolder, answers: str) -> pl.DataFrame:
    """Write the latest failure of each unit that has no record to `failures.parquet`, and return them."""
    failures = read_failures(folder, answers)
    write_atomically(folder.failures_path, _to_parquet(failures, {CHECKSUM: hash_value(failures.rows())}))
    return failures


def read_failures_table(folder: RunFolder) -> pl.DataFrame:
    """The content of `failures.parquet`; a `DamagedFile` where its rows do not have the checksum in its metadata."""
    path = folder.failures_path
    try:
        failures = read_part(path, FAILURE_COLUMNS[:-1])
        checksum = _read_checksum(path)
    except RunError:
        raise DamagedFile("failures.parquet cannot be read", file=path, remedy=suggest_repair(folder.path)) from None
    if checksum not in (None, hash_value(failures.rows())):
        problem = "failures.parquet is damaged: its rows do not have its checksum"
        raise DamagedFile(problem, file=path, remedy=suggest_repair(folder.path))
    return failures


def _read_checksum(path: Path) -> str | None:
    """The checksum in the metadata of a Parquet file; None where it has none."""
    import polars as pl

    with reading(path, "the metadata cannot be read", kind=RunError):
        return pl.read_parquet_metadata(io.BytesIO(path.read_bytes())).get(CHECKSUM)


def list_parts(directory: Path) -> list[Path]:
    """The parts in a folder of records or failures, by name."""
    return sorted(directory.glob("part-*.parquet")) if directory.is_dir() else []


def write_part(frame: pl.DataFrame, directory: Path) -> None:
    """Write a part of the records or failures under the name that its content gives it."""
    content = _to_parquet(frame)
    name = hashlib.blake2b(content, digest_size=12).hexdigest()
    write_atomically(directory / f"part-{name}.parquet", content)


def _to_parquet(frame: pl.DataFrame, metadata: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata=metadata)
    return buffer.getvalue()


def has_checksum(file: Path) -> bool:
    """Whether damage to a file of a run can be noticed: a part by the hash in its name, others by their checksum."""
    if _PART_NAME.fullmatch(file.name):
        return True
    try:
        if file.suffix == ".parquet":
            return _read_checksum(file) is not None
        return CHECKSUM in json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, RecursionError, RunError):
        return True


def read_part(path: Path, columns: Sequence[str], defaults: Mapping[str, pl.Expr] | None = None) -> pl.DataFrame:
    """Some columns of a part, of which those of `defaults` (see `RecordSchema.defaults`) may be missing in it.

    A `DamagedFile` where its content is not what was written.
    """
    import polars as pl

    try:
        content = read_part_content(path)
        stored = pl.read_parquet_schema(io.BytesIO(content))
        later = {name: expression for name, expression in (defaults or {}).items() if name not in stored}
        if missing := [name for name in columns if name not in stored and name not in later]:
            raise _version_error(path, f"have no column {', '.join(missing)}")
        if other := [name for name in ("unit", "answers") if name in columns and stored[name] != pl.String]:
            raise _version_error(path, f"have other types in column {', '.join(other)}")
        frame = pl.read_parquet(content, columns=[name for name in columns if name not in later])
        return frame.with_columns(later[name] for name in columns if name in later).select(columns)
    except RunError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        raise DamagedFile(
            f"a part of the {path.parent.name} cannot be read "
            f"({type(error).__name__}: {str(error).partition(chr(10))[0]})",
            file=path,
            remedy=suggest_repair(path.parent.parent),
        ) from error


def read_part_content(path: Path) -> bytes:
    """The bytes of a part; a `DamagedFile` where they do not have the hash in its name."""
    content = path.read_bytes()
    named = _PART_NAME.fullmatch(path.name)
    if named and hashlib.blake2b(content, digest_size=12).hexdigest() != named["hash"]:
        problem = f"a part of the {path.parent.name} is damaged: its content does not have the hash in its name"
        raise DamagedFile(problem, file=path, remedy=suggest_repair(path.parent.parent))
    return content


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
