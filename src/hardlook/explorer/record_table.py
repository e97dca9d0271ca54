"""A table of records in memory, and what a query selects from it: rows in order, counts, means, the spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.explorer.fields import MOST_LISTED, Field, FieldFacts, facts_of, text_of
from hardlook.explorer.query import Query
from hardlook.explorer.remembered import Remembered

if TYPE_CHECKING:
    import polars as pl

BINS = 40
_ORDERS, _SELECTIONS = 24, 16


@dataclass(frozen=True)
class Spread:
    """How the values of a quality spread: counts between `edges`, and how many have no value."""

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    missing: int


@dataclass(frozen=True)
class Selection:
    """What a query found: row numbers in order, means by quality (None without a value), the main quality's spread."""

    rows: NDArray[np.uint32]
    means: Mapping[str, float | None]
    spread: Spread | None
    groups: Mapping[str, Sequence[tuple[str, int, float | None]]]
    """By slice: each value, how many records have it, and their mean of the main quality; most records first."""

    def page(self, number: int, size: int) -> NDArray[np.uint32]:
        """The rows of a page, counted from 1."""
        return self.rows[(number - 1) * size : number * size]


class RecordTable:
    """One row a unit, sorted by unit; `main` is the quality that the page goes by, if there is one."""

    def __init__(self, frame: pl.DataFrame, fields: tuple[Field, ...]) -> None:
        self.frame, self.fields = frame, fields
        self.by_key = {field.key: field for field in fields}
        self.main = next((field for field in fields if field.kind == "quality"), None)
        self._orders: Remembered[NDArray[np.uint32]] = Remembered(_ORDERS)
        self._selections: Remembered[Selection] = Remembered(_SELECTIONS)

    def __len__(self) -> int:
        return len(self.frame)

    @cached_property
    def facts(self) -> dict[str, FieldFacts]:
        """What is known of each column."""
        return {field.key: facts_of(self.frame, field) for field in self.fields}

    @cached_property
    def weight(self) -> float:
        """Bytes in memory."""
        return float(self.frame.estimated_size())

    @property
    def shown(self) -> list[Field]:
        """The columns that tell records apart; one that says the same of all says nothing of any."""
        return [
            field for field in self.fields if field.kind in ("unit", "quality") or not self.facts[field.key].constant
        ]

    def select(self, query: Query) -> Selection:
        """What the query finds; pages of one query share it."""
        return self._selections.get(query.without_page(), lambda: self._select(query))

    def row_of(self, unit: str) -> int | None:
        """The row of a unit, or None."""
        found = (self.frame["unit"] == unit).arg_true()
        return int(found[0]) if len(found) else None

    def rows(self, numbers: NDArray[np.uint32]) -> list[dict[str, Any]]:
        """Rows as dicts, in the order of their numbers."""
        return self.frame[numbers].to_dicts()

    def _select(self, query: Query) -> Selection:
        import polars as pl

        order = self._order(query.sort, query.descending)
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
        return Selection(rows, means, self._spread(frame), self._groups(frame))

    def _order(self, key: str, descending: bool) -> NDArray[np.uint32]:
        """Row numbers by that column, units without a value last, equals by their id."""
        import polars as pl

        if key == "unit":
            ascending = np.arange(len(self.frame), dtype=np.uint32)
            return ascending[::-1] if descending else ascending
        by = pl.arg_sort_by(key, descending=descending, nulls_last=True, maintain_order=True)
        return self._orders.get((key, descending), lambda: self.frame.select(by.alias("row"))["row"].to_numpy())

    def _groups(self, frame: pl.DataFrame) -> dict[str, list[tuple[str, int, float | None]]]:
        import polars as pl

        mean = pl.col(self.main.key).mean() if self.main else pl.lit(None, pl.Float64())
        found = {}
        for field in self.fields:
            facts = self.facts[field.key]
            if field.kind == "slice" and not facts.constant and facts.distinct <= MOST_LISTED:
                grouped = frame.group_by(field.key).agg(pl.len().alias("n"), mean.alias("mean"))
                grouped = grouped.sort("n", field.key, descending=[True, False])
                found[field.key] = [(text_of(value), n, average) for value, n, average in grouped.iter_rows()]
        return found

    def _spread(self, frame: pl.DataFrame) -> Spread | None:
        if self.main is None:
            return None
        values = frame[self.main.key].drop_nulls().to_numpy()
        values = values[np.isfinite(values)]
        facts = self.facts[self.main.key]
        low, high = (facts.low or 0.0), (facts.high or 0.0)
        # Qualities are mostly shares; a fixed axis lets the eye compare one filter with the next.
        bounds = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high if high > low else low + 1.0)
        counts, edges = np.histogram(values, bins=BINS, range=bounds)
        return Spread(edges, counts.astype(np.int64), len(frame) - len(values))
