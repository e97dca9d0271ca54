"""Records as rows of JSON values, a few thousand at a time, so that a million of them never stand in memory as text.

The columns are the unit's id, the benchmark's own without pictures, and one for each quality of a unit where the
benchmark judges units. Texts, whole numbers and booleans are as they are; bytes are in base64; lists are arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hardlook.contract.benchmark import Benchmark, JudgesUnits

if TYPE_CHECKING:
    import polars as pl

    from hardlook.runs.scoring import ScoredRun

ROWS_AT_ONCE = 5_000


@dataclass(frozen=True)
class ExportedRecords:
    """The columns, each with name, type, kind and meaning, and the table that holds them."""

    columns: list[dict[str, str]]
    table: pl.DataFrame

    def blocks(self, size: int = ROWS_AT_ONCE) -> Iterator[list[tuple[Any, ...]]]:
        """Rows in the order of the units, `size` at a time, as values of JSON."""
        for part in self.table.iter_slices(size):
            yield part.select(_writable(name, kind) for name, kind in part.schema.items()).rows()


def exported_records(scored: ScoredRun) -> ExportedRecords:
    """The records of a run with what each column means."""
    columns, table = _columns(scored.benchmark), scored.records
    if isinstance(scored.benchmark, JudgesUnits) and scored.benchmark.card.qualities:
        table = table.hstack(_qualities(scored))
        columns += [
            {"name": f"quality.{quality.name}", "type": "float", "kind": "quality", "meaning": quality.title}
            for quality in scored.benchmark.card.qualities
        ]
    return ExportedRecords(columns, table.select(column["name"] for column in columns))


def _columns(benchmark: Benchmark) -> list[dict[str, str]]:
    own = [
        {"name": column.name, "type": column.type, "kind": column.kind, "meaning": column.meaning}
        for column in benchmark.schema.columns
        if column.kind != "picture"
    ]
    return [{"name": "unit", "type": "text", "kind": "unit", "meaning": "the unit's id"}, *own]


def _qualities(scored: ScoredRun) -> list[pl.Series]:
    """A prefix keeps a quality apart from a measurement of the same name."""
    benchmark: Any = scored.benchmark
    judged = benchmark.qualities(scored.records, scored.options)
    return [judged[quality.name].alias(f"quality.{quality.name}") for quality in benchmark.card.qualities]


def _writable(name: str, kind: Any) -> pl.Expr:
    """The column without what JSON cannot hold.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"a": [0.1, float("nan")], "b": [[float("inf"), 2.0], []]})
    >>> frame.select(_writable(name, kind) for name, kind in frame.schema.items()).rows()
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
