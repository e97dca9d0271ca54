"""The exported document as text, written as it is built: records pass through a few thousand rows at a time.

The columns are the unit's id, the benchmark's own without pictures, and one for each quality of a unit. Texts, whole
numbers and booleans are written as they are; bytes are in base64; lists are arrays.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hardlook.harness.benchmark import Benchmark
from hardlook.report.export.document import build_document
from hardlook.report.json_values import dump_json

if TYPE_CHECKING:
    import polars as pl

    from hardlook.harness.runs.scoring import ScoredRun


ROWS_AT_ONCE = 5_000


@dataclass(frozen=True)
class ExportedRecords:
    """The columns, each with name, type, kind and meaning, and the table that holds them."""

    columns: list[dict[str, str]]
    table: pl.DataFrame

    def blocks(self, size: int = ROWS_AT_ONCE) -> Iterator[list[tuple[Any, ...]]]:
        """Rows in the order of the units, `size` at a time, as values of JSON."""
        for part in self.table.iter_slices(size):
            yield part.select(_convert_column(name, kind) for name, kind in part.schema.items()).rows()


def select_exported_records(scored: ScoredRun) -> ExportedRecords:
    """The records of a run, with the meaning of each column."""
    columns, table = _describe_columns(scored.benchmark), scored.records
    if scored.benchmark.qualities is not None and scored.benchmark.card.qualities:
        table = table.hstack(_compute_qualities(scored))
        columns += [
            {"name": f"quality.{quality.name}", "type": "float", "kind": "quality", "meaning": quality.title}
            for quality in scored.benchmark.card.qualities
        ]
    return ExportedRecords(columns, table.select(column["name"] for column in columns))


def _describe_columns(benchmark: Benchmark) -> list[dict[str, str]]:
    own = [
        {"name": column.name, "type": column.type, "kind": column.kind, "meaning": column.meaning}
        for column in benchmark.schema.columns
        if column.kind != "picture"
    ]
    return [{"name": "unit", "type": "text", "kind": "unit", "meaning": "the unit's id"}, *own]


def _compute_qualities(scored: ScoredRun) -> list[pl.Series]:
    """The qualities as columns; a prefix distinguishes them from measurements of the same name."""
    benchmark: Any = scored.benchmark
    values = benchmark.qualities(scored.records, scored.options)
    return [values[quality.name].alias(f"quality.{quality.name}") for quality in benchmark.card.qualities]


def _convert_column(name: str, kind: Any) -> pl.Expr:
    """The column as values of JSON.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"a": [0.1, float("nan")], "b": [[float("inf"), 2.0], []]})
    >>> frame.select(_convert_column(name, kind) for name, kind in frame.schema.items()).rows()
    [(0.1, [None, 2.0]), (None, [])]
    """
    import polars as pl

    column = pl.col(name)
    if kind.is_float():
        return pl.when(column.is_finite()).then(column).alias(name)
    if isinstance(kind, pl.List) and kind.inner.is_float():
        return column.list.eval(pl.when(pl.element().is_finite()).then(pl.element()))
    if kind == pl.Binary():
        return column.bin.encode("base64")
    return column


# One encoder for all rows: `json.dumps` would create one per row.
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def write_export(scored: ScoredRun, stream: TextIO, *, records: bool = True, beside: Path | None = None) -> int:
    """Write the document of a run, and return the number of its records.

    Records are in the document, one line each, or in the file `beside` as NDJSON, one object per line, which the
    document then names. Without `records` they are left out.
    """
    head = dump_json(build_document(scored))
    table = select_exported_records(scored) if records else None
    if table is None:
        stream.write(f"{head}\n")
        return 0
    stream.write(head.removesuffix("\n}"))
    stream.write(f',\n "records": {{\n  "columns": {_encode(table.columns)},\n  "count": {len(table.table)},\n')
    if beside is None:
        stream.write('  "rows": [')
        for number, row in enumerate(_iterate_rows(table)):
            stream.write(f"{',' if number else ''}\n   {_encode(row)}")
        stream.write("\n  ]\n }\n}\n")
    else:
        with open_for_replacement(beside) as lines:
            _write_ndjson(table, lines)
        stream.write(f'  "file": {_encode(beside.name)}\n }}\n}}\n')
    return len(table.table)


@contextlib.contextmanager
def open_for_replacement(path: Path) -> Iterator[TextIO]:
    """A stream to a temporary file that replaces `path` once all is written: a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        with unfinished.open("w", encoding="utf-8") as stream:
            yield stream
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _iterate_rows(table: ExportedRecords) -> Iterator[tuple[Any, ...]]:
    for block in table.blocks():
        yield from block


def _write_ndjson(table: ExportedRecords, stream: TextIO) -> None:
    names = [column["name"] for column in table.columns]
    for row in _iterate_rows(table):
        stream.write(f"{_encode(dict(zip(names, row, strict=True)))}\n")


def _encode(value: Any) -> str:
    return _ENCODER.encode(value)


def read_schema() -> str:
    """The schema as `hardlook export --schema` prints it.

    >>> import json
    >>> json.loads(read_schema())["properties"]["schema"]
    {'const': 'hardlook.export/1'}
    """
    return files("hardlook.report.export").joinpath("export-1.schema.json").read_text(encoding="utf-8")
