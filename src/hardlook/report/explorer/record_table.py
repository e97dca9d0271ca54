"""Tables of records: of one run, or of the units that two runs share; and what a query selects from them.

The rows of a table are in memory, or in a file of which each query reads the columns that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.caching import LRUCache
from hardlook.harness.runs.ordered_records import ROWS
from hardlook.report.compare.shared_units import SharedChunks
from hardlook.report.explorer.query import (
    MAX_LISTED,
    PAGE_SIZE,
    UNIT,
    Field,
    FieldSummary,
    Query,
    format_slice_value,
    summarize_field,
    summarize_stored_field,
)

if TYPE_CHECKING:
    import polars as pl

BINS = 40

# Row numbers of sorted columns and of selections are kept up to this size, each.
_KEPT_BYTES = 128 << 20


@dataclass(frozen=True)
class Histogram:
    """Counts of the values of a quality between `edges`, and how many records have no value."""

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    missing: int


@dataclass(frozen=True)
class Selection:
    """The result of a query: row numbers in order, means by quality (None without a value), a histogram."""

    rows: NDArray[np.uint32]
    means: Mapping[str, float | None]
    histogram: Histogram | None
    groups: Mapping[str, Sequence[tuple[str, int, float | None]]]
    """By slice: each value, how many records have it, and their mean of the main quality; most records first."""

    def page(self, number: int, size: int) -> NDArray[np.uint32]:
        """The rows of a page, counted from 1."""
        return self.rows[(number - 1) * size : number * size]


class RecordTable:
    """One row per unit, sorted by unit; `main` is the first quality, if there is one.

    `records` is a table in memory, or a `LazyFrame` of one that stays in its file.
    """

    def __init__(self, records: pl.DataFrame | pl.LazyFrame, fields: tuple[Field, ...]) -> None:
        import polars as pl

        self.lazy, self.fields = records.lazy(), fields
        self.frame = records if isinstance(records, pl.DataFrame) else None
        self.schema = records.collect_schema()
        self._count = int(self._collect(self.lazy.select(pl.len())).item())
        self.by_key = {field.key: field for field in fields}
        self.main = next((field for field in fields if field.kind == "quality"), None)
        self._orders: LRUCache[NDArray[np.uint32]] = LRUCache(_KEPT_BYTES, lambda rows: rows.nbytes)
        self._selections: LRUCache[Selection] = LRUCache(_KEPT_BYTES, lambda selected: selected.rows.nbytes + 1000)

    def __len__(self) -> int:
        return self._count

    @property
    def is_stored(self) -> bool:
        """Whether its rows stay in a file."""
        return self.frame is None

    @property
    def nbytes(self) -> int:
        """The memory that its rows take; of rows in a file what is kept of their numbers, at most."""
        return 2 * _KEPT_BYTES if self.frame is None else int(self.frame.estimated_size())

    def _collect(self, lazy: pl.LazyFrame) -> pl.DataFrame:
        return lazy.collect() if self.frame is not None else lazy.collect(engine="streaming")

    @cached_property
    def summaries(self) -> dict[str, FieldSummary]:
        """A summary of each column."""
        if self.frame is not None:
            frame = self.frame
            return {field.key: summarize_field(frame, field) for field in self.fields}
        return {field.key: summarize_stored_field(self.lazy, len(self), field) for field in self.fields}

    @property
    def shown(self) -> list[Field]:
        """The columns to show: all but those with the same value in every record."""
        return [
            field
            for field in self.fields
            if field.kind in ("unit", "quality") or not self.summaries[field.key].constant
        ]

    def select(self, query: Query) -> Selection:
        """The result of a query, shared by its pages."""
        key = replace(query, page=1, size=PAGE_SIZE)
        return self._selections.get_or_create(key, lambda: self._select(query))

    def row_of(self, unit: str) -> int | None:
        """The row of a unit, or None."""
        import polars as pl

        found = self._collect(self.lazy.select("unit").with_row_index("row").filter(pl.col("unit") == unit))["row"]
        return int(found[0]) if len(found) else None

    def row(self, number: int) -> dict[str, Any]:
        """The row with that number."""
        return self.rows([number])[0]

    def rows(self, numbers: Sequence[int] | NDArray[np.uint32]) -> list[dict[str, Any]]:
        """The rows with these numbers, in their order."""
        import polars as pl

        if self.frame is not None:
            return self.frame[numbers].to_dicts()
        if not len(numbers):
            return []
        return self._collect(pl.concat([self.lazy.slice(int(number), 1) for number in numbers])).to_dicts()

    def count_values(self, key: str) -> list[tuple[Any, int]]:
        """How many rows have each value of a column."""
        import polars as pl

        return self._collect(self.lazy.group_by(key).agg(pl.len())).rows()

    def _select(self, query: Query) -> Selection:
        import polars as pl

        order = self._sort(query.sort, query.descending)
        condition = query.condition(self.by_key, self.schema)
        rows, needed = order, [field.key for field in self.fields if field.kind in ("quality", "slice")] or ["unit"]
        chosen, kept = self.lazy.select(needed), None
        if condition is not None:
            kept = self._collect(self.lazy.select(condition.fill_null(False).alias("kept")))["kept"]
            rows = order[kept.to_numpy()[order]]
            chosen = self.lazy.filter(condition.fill_null(False)).select(needed)
            if self.frame is not None:
                # Of rows in memory those that are kept are taken once.
                chosen = self.frame.select(needed).filter(kept).lazy()
        qualities = [field.key for field in self.fields if field.kind == "quality"]
        averages = self._collect(chosen.select(pl.col(qualities).mean())) if qualities else pl.DataFrame()
        means = {key: averages[key][0] for key in qualities}
        return Selection(rows, means, self._count_histogram(kept), self._group_slices(chosen))

    def _sort(self, key: str, descending: bool) -> NDArray[np.uint32]:
        """Row numbers by that column, units without a value last, equals by their id."""
        import polars as pl

        if key == "unit":
            ascending = np.arange(len(self), dtype=np.uint32)
            return ascending[::-1] if descending else ascending
        by = pl.arg_sort_by(key, descending=descending, nulls_last=True, maintain_order=True)
        return self._orders.get_or_create(
            (key, descending), lambda: self._collect(self.lazy.select(key)).select(by.alias("row"))["row"].to_numpy()
        )

    def _group_slices(self, chosen: pl.LazyFrame) -> dict[str, list[tuple[str, int, float | None]]]:
        import polars as pl

        mean = pl.col(self.main.key).mean() if self.main else pl.lit(None, pl.Float64())
        groups = {}
        for field in self.fields:
            summary = self.summaries[field.key]
            if field.kind == "slice" and not summary.constant and summary.distinct <= MAX_LISTED:
                grouped = self._collect(chosen.group_by(field.key).agg(pl.len().alias("n"), mean.alias("mean")))
                grouped = grouped.sort("n", field.key, descending=[True, False])
                groups[field.key] = [
                    (format_slice_value(value), n, average) for value, n, average in grouped.iter_rows()
                ]
        return groups

    @cached_property
    def _main_ends(self) -> tuple[float, float]:
        """The least and the largest finite value of the main quality; 0 where there is none."""
        import polars as pl

        assert self.main is not None
        values = pl.col(self.main.key)
        finite = values.filter(values.is_finite())
        low, high = self._collect(self.lazy.select(low=finite.min(), high=finite.max())).row(0)
        return low or 0.0, high or 0.0

    def _count_histogram(self, kept: pl.Series | None) -> Histogram | None:
        """The histogram of the main quality of the rows that are kept, by default all."""
        if self.main is None:
            return None
        low, high = self._main_ends
        # Most qualities are between 0 and 1; a fixed axis makes filters comparable.
        bounds = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high if high > low else low + 1.0)
        counts, start, missing = np.zeros(BINS, np.int64), 0, 0
        for part in iterate_slices(self.lazy.select(self.main.key), len(self)):
            column = part.to_series()
            if kept is not None:
                column = column.filter(kept[start : start + len(part)])
            values = column.drop_nulls().to_numpy()
            values = values[np.isfinite(values)]
            counts += np.histogram(values, bins=BINS, range=bounds)[0]
            start, missing = start + len(part), missing + len(column) - len(values)
        return Histogram(np.histogram_bin_edges([], bins=BINS, range=bounds), counts, missing)


def iterate_slices(lazy: pl.LazyFrame, count: int) -> Iterator[pl.DataFrame]:
    """The rows of a table in chunks."""
    for start in range(0, count, ROWS):
        yield lazy.slice(start, ROWS).collect(engine="streaming")


FIRST, SECOND, DIFFERENCE, APART, BETTER = "first", "second", "difference", "apart", "better"
VERDICTS = ("first", "second", "equal", "undefined")

_OWN = (
    Field(
        DIFFERENCE, "first minus second", "the quality of the first run minus that of the second", "quality", "float"
    ),
    Field(FIRST, "first run", "the quality in the first run", "quality", "float"),
    Field(SECOND, "second run", "the quality in the second run", "quality", "float"),
    Field(APART, "how far apart", "the difference without its sign", "measurement", "float"),
    Field(BETTER, "better", "which run is better on the unit", "slice", "text"),
)


Frames = Iterable["pl.DataFrame"]
Types = Mapping[str, Any]


@dataclass(frozen=True)
class RunPair:
    """The shared units of two runs as a table, how many units only one has, and how often each is better."""

    table: RecordTable
    only_first: int
    only_second: int
    better: dict[str, int]

    @property
    def is_stored(self) -> bool:
        """Whether the rows of its table stay in a file."""
        return self.table.is_stored


def pair_tables(
    first: RecordTable, second: RecordTable, quality: str, store: Callable[[Frames, Types], pl.LazyFrame]
) -> RunPair:
    """Pair two tables by unit; the slices are the first run's.

    Where a table is not in memory, the pair is not either: `store` writes it, frame by frame, to a file.
    """
    import polars as pl

    slices = [field for field in first.fields if field.kind == "slice" and field.key not in {f.key for f in _OWN}]
    names = [field.key for field in slices]
    left = first.lazy.select("unit", *names, pl.col(quality).alias(FIRST))
    right = second.lazy.select("unit", pl.col(quality).alias(SECOND))
    gap = pl.col(FIRST) - pl.col(SECOND)
    added = [gap.alias(DIFFERENCE), gap.abs().alias(APART), _decide_better(first.by_key[quality], gap).alias(BETTER)]
    frame: pl.DataFrame | pl.LazyFrame
    if first.is_stored or second.is_stored:
        shared = SharedChunks([iterate_slices(left, len(first)), iterate_slices(right, len(second))])
        pairs = (one.with_columns(other[SECOND]).with_columns(added) for one, other in shared)
        numbers = dict.fromkeys((SECOND, DIFFERENCE, APART), pl.Float64())
        frame = store(pairs, {**left.collect_schema(), **numbers, BETTER: pl.Enum(VERDICTS)})
    else:
        mine, theirs = left.collect(), right.collect()
        if mine["unit"].equals(theirs["unit"]):
            # The usual case, and ten times faster than a join.
            joined = mine.with_columns(theirs[SECOND])
        else:
            joined = mine.join(theirs, on="unit", how="inner").sort("unit")
        frame = joined.with_columns(added)
    table = RecordTable(frame, (UNIT, *_OWN, *slices))
    counts = dict(table.count_values(BETTER))
    better = {verdict: int(counts.get(verdict, 0)) for verdict in VERDICTS}
    return RunPair(table, len(first) - len(table), len(second) - len(table), better)


def _decide_better(field: Field, gap: pl.Expr) -> pl.Expr:
    import polars as pl

    ahead, behind = (FIRST, SECOND) if field.higher_is_better else (SECOND, FIRST)
    verdict = pl.when(gap > 0).then(pl.lit(ahead)).when(gap < 0).then(pl.lit(behind)).when(gap == 0)
    return verdict.then(pl.lit("equal")).otherwise(pl.lit("undefined")).cast(pl.Enum(VERDICTS))
