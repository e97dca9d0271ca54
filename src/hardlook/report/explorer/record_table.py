"""Tables of records in memory: of one run, or of the units that two runs share; and what a query selects from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.caching import LRUCache
from hardlook.report.explorer.query import (
    MAX_LISTED,
    PAGE_SIZE,
    UNIT,
    Field,
    FieldSummary,
    Query,
    format_slice_value,
    summarize_field,
)

if TYPE_CHECKING:
    import polars as pl

BINS = 40
_ORDERS, _SELECTIONS = 24, 16


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
    """One row per unit, sorted by unit; `main` is the first quality, if there is one."""

    def __init__(self, frame: pl.DataFrame, fields: tuple[Field, ...]) -> None:
        self.frame, self.fields = frame, fields
        self.by_key = {field.key: field for field in fields}
        self.main = next((field for field in fields if field.kind == "quality"), None)
        self._orders: LRUCache[NDArray[np.uint32]] = LRUCache(_ORDERS)
        self._selections: LRUCache[Selection] = LRUCache(_SELECTIONS)

    def __len__(self) -> int:
        return len(self.frame)

    @cached_property
    def summaries(self) -> dict[str, FieldSummary]:
        """A summary of each column."""
        return {field.key: summarize_field(self.frame, field) for field in self.fields}

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
        found = (self.frame["unit"] == unit).arg_true()
        return int(found[0]) if len(found) else None

    def _select(self, query: Query) -> Selection:
        import polars as pl

        order = self._sort(query.sort, query.descending)
        condition = query.condition(self.by_key, self.frame.schema)
        rows, frame = order, self.frame
        if condition is not None:
            kept = self.frame.select(condition.fill_null(False).alias("kept"))["kept"]
            rows = order[kept.to_numpy()[order]]
            needed = [field.key for field in self.fields if field.kind in ("quality", "slice")]
            frame = self.frame.select(needed or ["unit"]).filter(kept)
        means = {
            field.key: frame.select(pl.col(field.key).mean()).item() for field in self.fields if field.kind == "quality"
        }
        return Selection(rows, means, self._count_histogram(frame), self._group_slices(frame))

    def _sort(self, key: str, descending: bool) -> NDArray[np.uint32]:
        """Row numbers by that column, units without a value last, equals by their id."""
        import polars as pl

        if key == "unit":
            ascending = np.arange(len(self.frame), dtype=np.uint32)
            return ascending[::-1] if descending else ascending
        by = pl.arg_sort_by(key, descending=descending, nulls_last=True, maintain_order=True)
        return self._orders.get_or_create(
            (key, descending), lambda: self.frame.select(by.alias("row"))["row"].to_numpy()
        )

    def _group_slices(self, frame: pl.DataFrame) -> dict[str, list[tuple[str, int, float | None]]]:
        import polars as pl

        mean = pl.col(self.main.key).mean() if self.main else pl.lit(None, pl.Float64())
        groups = {}
        for field in self.fields:
            summary = self.summaries[field.key]
            if field.kind == "slice" and not summary.constant and summary.distinct <= MAX_LISTED:
                grouped = frame.group_by(field.key).agg(pl.len().alias("n"), mean.alias("mean"))
                grouped = grouped.sort("n", field.key, descending=[True, False])
                groups[field.key] = [
                    (format_slice_value(value), n, average) for value, n, average in grouped.iter_rows()
                ]
        return groups

    def _count_histogram(self, frame: pl.DataFrame) -> Histogram | None:
        if self.main is None:
            return None
        values = frame[self.main.key].drop_nulls().to_numpy()
        values = values[np.isfinite(values)]
        summary = self.summaries[self.main.key]
        low, high = (summary.low or 0.0), (summary.high or 0.0)
        # Most qualities are between 0 and 1; a fixed axis makes filters comparable.
        bounds = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high if high > low else low + 1.0)
        counts, edges = np.histogram(values, bins=BINS, range=bounds)
        return Histogram(edges, counts.astype(np.int64), len(frame) - len(values))


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


@dataclass(frozen=True)
class RunPair:
    """The shared units of two runs as a table, how many units only one has, and how often each is better."""

    table: RecordTable
    only_first: int
    only_second: int
    better: dict[str, int]


def pair_tables(first: RecordTable, second: RecordTable, quality: str) -> RunPair:
    """Pair two tables by unit; the slices are the first run's."""
    import polars as pl

    slices = [field for field in first.fields if field.kind == "slice" and field.key not in {f.key for f in _OWN}]
    left = first.frame.select("unit", *(field.key for field in slices), pl.col(quality).alias(FIRST))
    right = second.frame.select("unit", pl.col(quality).alias(SECOND))
    if left["unit"].equals(right["unit"]):
        # The usual case, and ten times faster than a join.
        joined = left.with_columns(right[SECOND])
    else:
        joined = left.join(right, on="unit", how="inner").sort("unit")
    gap = pl.col(FIRST) - pl.col(SECOND)
    frame = joined.with_columns(
        gap.alias(DIFFERENCE), gap.abs().alias(APART), _decide_better(first.by_key[quality], gap).alias(BETTER)
    )
    counts = dict(frame[BETTER].cast(pl.String()).value_counts().iter_rows())
    return RunPair(
        RecordTable(frame, (UNIT, *_OWN, *slices)),
        len(first) - len(frame),
        len(second) - len(frame),
        {verdict: int(counts.get(verdict, 0)) for verdict in VERDICTS},
    )


def _decide_better(field: Field, gap: pl.Expr) -> pl.Expr:
    import polars as pl

    ahead, behind = (FIRST, SECOND) if field.higher_is_better else (SECOND, FIRST)
    verdict = pl.when(gap > 0).then(pl.lit(ahead)).when(gap < 0).then(pl.lit(behind)).when(gap == 0)
    return verdict.then(pl.lit("equal")).otherwise(pl.lit("undefined")).cast(pl.Enum(VERDICTS))
