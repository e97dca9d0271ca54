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

    def rows(self, at_once: int = ROWS_AT_ONCE) -> Iterator[tuple[Any, ...]]:
        """Rows in the order of the units, as values of JSON."""
        for part in self.table.iter_slices(at_once):
            yield from part.select(_convert_column(name, kind) for name, kind in part.schema.items()).rows()


def select_exported_records(scored: ScoredRun) -> ExportedRecords:
    """The records of a run, with the meaning of each column."""
    benchmark, table = scored.benchmark, scored.records
    columns = [("unit", "text", "unit", "the unit's id")]
    columns += [
        (one.name, one.type, one.kind, one.meaning) for one in benchmark.schema.columns if one.kind != "picture"
    ]
    if benchmark.qualities is not None:
        values = benchmark.qualities(scored.records, scored.options)
        for quality in benchmark.card.qualities:
            # The prefix distinguishes a quality from a measurement of the same name.
            name = f"quality.{quality.name}"
            table = table.with_columns(values[quality.name].alias(name))
            columns.append((name, "float", "quality", quality.title))
    keys = ("name", "type", "kind", "meaning")
    described = [dict(zip(keys, column, strict=True)) for column in columns]
    return ExportedRecords(described, table.select(name for name, *_ in columns))


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
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def write_export(scored: ScoredRun, stream: TextIO, *, records: bool = True, beside: Path | None = None) -> int:
    """Write the document and return the number of its records: in it, as NDJSON in the file `beside`, or left out."""
    head = dump_json(build_document(scored))
    table = select_exported_records(scored) if records else None
    if table is None:
        stream.write(f"{head}\n")
        return 0
    stream.write(head.removesuffix("\n}"))
    stream.write(f',\n "records": {{\n  "columns": {_encode(table.columns)},\n  "count": {len(table.table)},\n')
    if beside is None:
        stream.write('  "rows": [')
        for number, row in enumerate(table.rows()):
            stream.write(f"{',' if number else ''}\n   {_encode(row)}")
        stream.write("\n  ]\n }\n}\n")
    else:
        names = [column["name"] for column in table.columns]
        with open_for_replacement(beside) as lines:
            lines.writelines(f"{_encode(dict(zip(names, row, strict=True)))}\n" for row in table.rows())
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


def read_schema() -> str:
    """The schema as `hardlook export --schema` prints it.

    >>> import json
    >>> json.loads(read_schema())["properties"]["schema"]
    {'const': 'hardlook.export/1'}
    """
    return files("hardlook.report.export").joinpath("export-1.schema.json").read_text(encoding="utf-8")
