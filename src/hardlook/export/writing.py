"""The document as text, written as it is made: the records pass through a few thousand rows at a time."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hardlook.export.document import document_of
from hardlook.export.plain_values import json_text
from hardlook.export.record_rows import ExportedRecords, exported_records

if TYPE_CHECKING:
    from hardlook.runs.scoring import ScoredRun

# One for all rows: `json.dumps` would make a new one for each.
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def write_export(scored: ScoredRun, stream: TextIO, *, records: bool = True, beside: Path | None = None) -> int:
    """Write the document of a run; how many records went with it.

    Records stand in the document, one line each, or in the file `beside` as NDJSON, one object a line, which the
    document then names. Without `records` they are left out.
    """
    head = json_text(document_of(scored))
    table = exported_records(scored) if records else None
    if table is None:
        stream.write(f"{head}\n")
        return 0
    stream.write(head.removesuffix("\n}"))
    stream.write(f',\n "records": {{\n  "columns": {_line(table.columns)},\n  "count": {len(table.table)},\n')
    if beside is None:
        stream.write('  "rows": [')
        for number, row in enumerate(_rows(table)):
            stream.write(f"{',' if number else ''}\n   {_line(row)}")
        stream.write("\n  ]\n }\n}\n")
    else:
        with write_beside(beside) as lines:
            _write_ndjson(table, lines)
        stream.write(f'  "file": {_line(beside.name)}\n }}\n}}\n')
    return len(table.table)


@contextlib.contextmanager
def write_beside(path: Path) -> Iterator[TextIO]:
    """A stream to a file beside `path` that takes its place once all is written; a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    try:
        with unfinished.open("w", encoding="utf-8") as stream:
            yield stream
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _rows(table: ExportedRecords) -> Iterator[tuple[Any, ...]]:
    for block in table.blocks():
        yield from block


def _write_ndjson(table: ExportedRecords, stream: TextIO) -> None:
    names = [column["name"] for column in table.columns]
    for row in _rows(table):
        stream.write(f"{_line(dict(zip(names, row, strict=True)))}\n")


def _line(value: Any) -> str:
    return _ENCODER.encode(value)
