"""Records added up: one cell for each combination of labels, one row for each query image in it.

A score of pairs is a function of sums over cells, so it can be recomputed for any resample of query images. The sums
are pixels (whole numbers) except the last two, from which the mean IoU over single pairs follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.contract.scorecard import Score
from hardlook.contract.tally import DrawOptions, Entry, SumTally, scores_of

if TYPE_CHECKING:
    import polars as pl

MEASURES = ("intersection", "union", "pixels", "pair_iou", "pairs")
INTERSECTION, UNION, PIXELS, PAIR_IOU, PAIRS = range(len(MEASURES))
Chosen = NDArray[np.bool_]
Totals = NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """Sums of pairs by cell and query image.

    `labels[name]` (cells,) says which value of that label each cell has. `sums` is a sparse matrix with a row for each
    query image of each cell and columns cell * 5 + measure. `row_cell` and `row_query` (rows,) say which, `row_pairs`
    how many pairs stand behind a row.
    """

    labels: Mapping[str, NDArray[Any]]
    sums: Any
    row_cell: NDArray[np.int64]
    row_query: NDArray[np.int64]
    row_pairs: NDArray[np.int64]
    # A statistic asks the same questions of every block of resamples.
    _known: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(next(iter(self.labels.values())))

    def where(self, **values: Any) -> Chosen:
        """Which cells have these label values; a tuple allows several."""
        key = tuple(values.items())
        if key not in self._known:
            chosen = np.ones(len(self), bool)
            for name, value in values.items():
                chosen &= np.isin(self.labels[name], value if isinstance(value, tuple) else (value,))
            self._known[key] = chosen
        known: Chosen = self._known[key]
        return known

    def values_of(self, name: str, chosen: Chosen | None = None) -> list[Any]:
        """The values that a label has among the chosen cells, sorted."""
        key = (name, None if chosen is None else chosen.tobytes())
        if key not in self._known:
            found = self.labels[name] if chosen is None else self.labels[name][chosen]
            self._known[key] = [value.item() if hasattr(value, "item") else value for value in np.unique(found)]
        return list(self._known[key])


@dataclass(frozen=True)
class NamedScore:
    """A score of every resample: `values` (m,), over the pairs of the `chosen` cells."""

    name: str
    slice: Mapping[str, str]
    values: NDArray[np.float64]
    chosen: Chosen


def add_up(records: pl.DataFrame, labels: Sequence[str], *, void_ignored: bool) -> Cells:
    """The cells of the records; `labels` are the columns that tell them apart."""
    from scipy.sparse import csr_array

    row, cell_labels, row_cell, row_query = _rows(records, labels)
    counts = {name: records[name].to_numpy().astype(np.int64) for name in ("intersection", "predicted", "truth")}
    open_pixels = records["void"].to_numpy() if void_ignored else 0
    wrong_there = records["predicted_void"].to_numpy() if void_ignored else 0
    union = counts["predicted"] + counts["truth"] - counts["intersection"] - wrong_there
    counted = records["pixels"].to_numpy() - open_pixels
    defined = union > 0
    measured = np.stack(
        [
            counts["intersection"],
            union,
            counted,
            counts["intersection"] / np.maximum(union, 1),
            defined,
        ],
        axis=1,
    ).astype(np.float64)
    order = np.argsort(row, kind="stable")
    starts = np.flatnonzero(np.diff(row[order], prepend=-1))
    summed = np.add.reduceat(measured[order], starts, axis=0) if len(row) else measured
    width = len(MEASURES)
    columns = (row_cell[:, None] * width + np.arange(width)).ravel()
    pointers = np.arange(0, summed.size + 1, width)
    shape = (len(summed), width * len(next(iter(cell_labels.values()))))
    sums = csr_array((summed.ravel(), columns, pointers), shape=shape)
    return Cells(cell_labels, sums, row_cell, row_query, np.bincount(row))


def tally_cells(
    cells: Cells,
    name_scores: Callable[[Totals], Sequence[NamedScore]],
    *,
    key: tuple[str | int, ...],
    more: Callable[[NamedScore], Mapping[str, Any]] = lambda score: {},
) -> list[SumTally]:
    """The tally of the named scores, which draws query images; none where there is nothing to score.

    `name_scores` maps totals (m, cells, 5) to scores; names, slices and cells must not depend on the totals. `key`
    names the draws. `more` gives what else the entry of a score says: its reading, comparability, another `n`.
    """

    def statistic(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        shaped = totals.reshape(len(totals), len(cells), len(MEASURES))
        return np.stack([score.values for score in name_scores(shaped)], axis=-1)

    # Any totals serve: the names are those of every answer.
    named = name_scores(np.ones((1, len(cells), len(MEASURES)))) if len(cells) else ()
    if not named:
        return []
    entries = []
    for score in named:
        rows = score.chosen[cells.row_cell]
        queries, pairs = len(np.unique(cells.row_query[rows])), int(cells.row_pairs[rows].sum())
        entry = Entry(score.name, pairs, score.slice, clusters=queries)
        entries.append(replace(entry, **more(score)))
    return [SumTally(tuple(entries), cells.sums, statistic, key, "query image", cells.row_query)]


def scores_of_pairs(tallies: Sequence[SumTally], options: DrawOptions) -> list[Score]:
    """Every score with its interval over query images.

    A score that no pair belongs to, such as that of salient targets where none is, is told too, as undefined.
    """
    scores = []
    for tally in tallies:
        defined = iter(scores_of(tally, options))
        scores += [next(defined) if entry.n else _undefined(entry) for entry in tally.entries]
    return scores


def _undefined(entry: Entry) -> Score:
    return Score(entry.name, math.nan, 0, slice=entry.slice, reading=entry.reading, comparable=entry.comparable)


def _rows(
    records: pl.DataFrame, labels: Sequence[str]
) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]], NDArray[np.int64], NDArray[np.int64]]:
    """The row of each record; the labels of each cell; the cell and the query image of each row."""
    cell = np.zeros(len(records), np.int64)
    for name in labels:
        codes, values = _codes(records[name])
        cell = cell * len(values) + codes
    first, cell = np.unique(cell, return_index=True, return_inverse=True)[1:]
    query, _ = _codes(records["query"])
    pair, row = np.unique(cell * (int(query.max(initial=0)) + 1) + query, return_inverse=True)
    known = {name: records[name].gather(first).to_numpy() for name in labels}
    width = int(query.max(initial=0)) + 1
    return row, known, pair // width, pair % width


def _codes(column: pl.Series) -> tuple[NDArray[np.int64], list[Any]]:
    """The place of each value among the sorted distinct ones."""
    import polars as pl

    values = column.unique().sort()
    if column.dtype == pl.String:
        return column.cast(pl.Enum(values)).to_physical().to_numpy().astype(np.int64), values.to_list()
    known = values.to_numpy()
    return np.searchsorted(known, column.to_numpy()), values.to_list()
