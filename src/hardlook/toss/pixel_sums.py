"""Pixel counts of records summed by cell and query image, and means over classes and folds from these sums.

A cell is one combination of labels, such as tier, fold, split and class. A score of pairs is a function of sums over
cells, so it can be recomputed for any resample of query images.

How well a single pair is answered is its credit: IoU, or 1 - IoU if the support does not show the class (a spurious
support), where the right answer is an empty mask and a high IoU with the query's own object is the fault. SCS and
rejection count so too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import Quality
from hardlook.harness.scorecard import Score
from hardlook.harness.stats.jackknife import Range
from hardlook.harness.tally import SHARE, DrawOptions, Entry, SumTally, score_tally
from hardlook.metrics.one_shot import class_iou, fb_iou, mean_of_defined

if TYPE_CHECKING:
    import polars as pl

MEASURES = ("intersection", "union", "pixels", "pair_iou", "pairs")
INTERSECTION, UNION, PIXELS, PAIR_IOU, PAIRS = range(len(MEASURES))
CREDIT = Quality("credit", "credit (IoU; 1 - IoU if the support misleads)")
IOU = Quality("iou", "IoU of the pair")

Chosen = NDArray[np.bool_]
"""(cells,): which cells."""
Totals = NDArray[np.float64]
"""(m, cells, 5): the measures of each cell in each of m resamples."""
Values = NDArray[np.float64]
"""(m,): a score of each resample."""


@dataclass(frozen=True)
class PixelSums:
    """Sums of pairs by cell and query image.

    `labels[name]` (cells,) are the values of that label. `sums` is a sparse matrix with a row for each query image of
    each cell and columns cell * 5 + measure; measures are whole pixels except the last two, from which the mean IoU
    over single pairs follows. `row_cell`, `row_query` and `row_pairs` (rows,) are the cell, the query image and the
    number of pairs of a row.
    """

    labels: Mapping[str, NDArray[Any]]
    sums: Any
    row_cell: NDArray[np.int64]
    row_query: NDArray[np.int64]
    row_pairs: NDArray[np.int64]
    # A statistic selects the same cells for every block of resamples.
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(next(iter(self.labels.values())))

    def where(self, **values: Any) -> Chosen:
        """Which cells have these label values; a tuple allows several."""
        key = tuple(values.items())
        if key not in self._cache:
            chosen = np.ones(len(self), bool)
            for name, value in values.items():
                chosen &= np.isin(self.labels[name], value if isinstance(value, tuple) else (value,))
            self._cache[key] = chosen
        known: Chosen = self._cache[key]
        return known

    def values_of(self, name: str, chosen: Chosen) -> list[Any]:
        """The values that a label has among the chosen cells, sorted."""
        key = (name, chosen.tobytes())
        if key not in self._cache:
            self._cache[key] = np.unique(self.labels[name][chosen]).tolist()
        return list(self._cache[key])


@dataclass(frozen=True)
class NamedScore:
    """A score of every resample: `values` over the pairs of the `chosen` cells, those that the score uses.

    `counted` are the cells whose pairs `n` counts, where `chosen` has the same pairs under two conditions.
    """

    name: str
    slice: Mapping[str, str]
    values: Values
    chosen: Chosen
    range: Range = SHARE
    counted: Chosen | None = None


def sum_pixels(records: pl.DataFrame, labels: Sequence[str], *, void_ignored: bool) -> PixelSums:
    """Sum the records; `labels` are the columns that define a cell."""
    from scipy.sparse import csr_array

    row, cell_labels, row_cell, row_query = _group_rows(records, labels)
    counts = {name: records[name].to_numpy().astype(np.int64) for name in ("intersection", "predicted", "truth")}
    void_pixels = records["void"].to_numpy() if void_ignored else 0
    predicted_void = records["predicted_void"].to_numpy() if void_ignored else 0
    union = counts["predicted"] + counts["truth"] - counts["intersection"] - predicted_void
    pair_ious = counts["intersection"] / np.maximum(union, 1)
    pixels = records["pixels"].to_numpy() - void_pixels
    measured = np.stack([counts["intersection"], union, pixels, pair_ious, union > 0], axis=1).astype(np.float64)
    order = np.argsort(row, kind="stable")
    starts = np.flatnonzero(np.diff(row[order], prepend=-1))
    summed = np.add.reduceat(measured[order], starts, axis=0) if len(row) else measured
    width = len(MEASURES)
    columns = (row_cell[:, None] * width + np.arange(width)).ravel()
    pointers = np.arange(0, summed.size + 1, width)
    shape = (len(summed), width * len(next(iter(cell_labels.values()))))
    sums = csr_array((summed.ravel(), columns, pointers), shape=shape)
    return PixelSums(cell_labels, sums, row_cell, row_query, np.bincount(row))


def tally_scores(
    sums: PixelSums,
    name_scores: Callable[[Totals], Sequence[NamedScore]],
    *,
    key: tuple[str | int, ...],
    more: Callable[[NamedScore], Mapping[str, Any]] = lambda score: {},
) -> list[SumTally]:
    """The tally of the named scores, which draws query images; none if there is nothing to score.

    `name_scores` maps totals (m, cells, 5) to scores; names, slices and cells must not depend on the totals. `key`
    names the draws. `more` gives further fields of a score's entry: its reading, comparability, another `n`.
    """

    def statistic(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        shaped = totals.reshape(len(totals), len(sums), len(MEASURES))
        return np.stack([score.values for score in name_scores(shaped)], axis=-1)

    # The names are the same for any totals.
    named = name_scores(np.ones((1, len(sums), len(MEASURES)))) if len(sums) else ()
    if not named:
        return []
    entries = []
    for score in named:
        rows = score.chosen[sums.row_cell]
        counted = rows if score.counted is None else score.counted[sums.row_cell]
        queries, pairs = len(np.unique(sums.row_query[rows])), int(sums.row_pairs[counted].sum())
        classes = {} if "class" in score.slice else {"class": len(sums.values_of("class", score.chosen))}
        entry = Entry(score.name, pairs, score.slice, clusters=queries, rests_on=classes, range=score.range)
        entries.append(replace(entry, **more(score)))
    return [SumTally(tuple(entries), sums.sums, statistic, key, "query image", sums.row_query)]


def score_tallies(tallies: Sequence[SumTally], options: DrawOptions) -> list[Score]:
    """Every score with its interval over query images.

    A score without pairs, such as that of salient targets if no target is salient, is listed too, as undefined.
    """
    scores = []
    for tally in tallies:
        defined = iter(score_tally(tally, options))
        for entry in tally.entries:
            about = {"slice": entry.slice, "reading": entry.reading, "comparable": entry.comparable}
            scores.append(next(defined) if entry.n else Score(entry.name, math.nan, 0, **about))  # type: ignore[arg-type]
    return scores


def class_ious(sums: PixelSums, totals: Totals, chosen: Chosen) -> tuple[list[str], NDArray[np.float64]]:
    """The classes of the chosen cells, and their IoU (m, classes): sums of intersections over sums of unions."""
    names = sums.values_of("class", chosen)
    pooled = np.stack([totals[:, chosen & sums.where(**{"class": name})].sum(1) for name in names], axis=1)
    return names, class_iou(pooled[..., INTERSECTION], pooled[..., UNION])


def mean_iou(sums: PixelSums, totals: Totals, chosen: Chosen) -> Values:
    """(m,): mean over classes in each fold, then over folds; NaN if nothing is chosen."""
    if not chosen.any():
        return np.full(len(totals), np.nan)
    folds = [class_ious(sums, totals, chosen & sums.where(fold=fold))[1] for fold in sums.values_of("fold", chosen)]
    return mean_defined([mean_defined(np.moveaxis(fold, -1, 0)) for fold in folds])


def score_folds(
    name: str, sums: PixelSums, totals: Totals, chosen: Chosen, where: Mapping[str, str]
) -> list[NamedScore]:
    """The mIoU of each fold of the chosen cells, in the slice `where`."""
    cells = {str(fold): chosen & sums.where(fold=fold) for fold in sums.values_of("fold", chosen)}
    return [NamedScore(name, {**where, "fold": fold}, mean_iou(sums, totals, one), one) for fold, one in cells.items()]


def score_classes(
    name: str, sums: PixelSums, totals: Totals, chosen: Chosen, where: Mapping[str, str]
) -> list[NamedScore]:
    """The IoU of each class of the chosen cells, in the slice `where`."""
    classes, ious = class_ious(sums, totals, chosen)
    return [
        NamedScore(name, {**where, "class": label}, ious[:, place], chosen & sums.where(**{"class": label}))
        for place, label in enumerate(classes)
    ]


def foreground_background_iou(sums: PixelSums, totals: Totals, chosen: Chosen) -> Values:
    """(m,): mean of the IoU of object and of background, all classes of a fold pooled, then over folds."""
    folds = []
    for fold in sums.values_of("fold", chosen):
        pooled = totals[:, chosen & sums.where(fold=fold)].sum(1)
        folds.append(fb_iou(pooled[:, INTERSECTION], pooled[:, UNION], pooled[:, PIXELS]))
    return mean_defined(folds)


def pair_iou(totals: Totals, chosen: Chosen) -> Values:
    """(m,): mean IoU over single pairs, those with neither truth nor prediction left out."""
    pooled = totals[:, chosen].sum(1)
    return class_iou(pooled[:, PAIR_IOU], pooled[:, PAIRS])


def mean_defined(parts: list[Values] | Values) -> Values:
    """Mean over the first axis of what is defined; NaN where nothing is."""
    return mean_of_defined(np.asarray(parts), axis=0)


def pair_union_expression(*, void_ignored: bool) -> pl.Expr:
    """An expression over records: pixels in the union of prediction and truth."""
    import polars as pl

    union = pl.col("predicted") + pl.col("truth") - pl.col("intersection")
    return union - pl.col("predicted_void") if void_ignored else union


def pair_iou_expression(*, void_ignored: bool) -> pl.Expr:
    """An expression over records: IoU of prediction and truth, in [0, 1]; NaN with neither truth nor prediction.

    >>> import polars as pl
    >>> counts = {"intersection": [3, 0], "predicted": [5, 0], "truth": [4, 0], "predicted_void": [1, 0]}
    >>> pl.DataFrame(counts).select(pair_iou_expression(void_ignored=True)).to_series().to_list()
    [0.6, nan]
    """
    import polars as pl

    union = pair_union_expression(void_ignored=void_ignored)
    return pl.when(union > 0).then(pl.col("intersection") / union).otherwise(pl.lit(math.nan))


def compute_credits(
    records: pl.DataFrame, *, void_ignored: bool, spurious: pl.Expr, scored: pl.Expr | None = None
) -> pl.DataFrame:
    """`unit`, `credit` and `iou`, in [0, 1]; NaN for a pair with neither truth nor prediction.

    `spurious` and `scored` are conditions over records; pairs that are not scored have neither number.

    >>> import polars as pl
    >>> counts = {"intersection": [3, 3], "predicted": [4, 4], "truth": [4, 4], "predicted_void": [0, 0]}
    >>> rows = pl.DataFrame({"unit": ["a", "b"], "split": ["L0", "L4"], **counts})
    >>> compute_credits(rows, void_ignored=True, spurious=pl.col("split") == "L4")["credit"].to_list()
    [0.6, 0.4]
    """
    import polars as pl

    iou = pair_iou_expression(void_ignored=void_ignored)
    iou = iou if scored is None else pl.when(scored).then(iou).otherwise(pl.lit(math.nan))
    credit = pl.when(spurious).then(1 - iou).otherwise(iou)
    return records.select("unit", credit.alias(CREDIT.name), iou.alias(IOU.name))


def _group_rows(
    records: pl.DataFrame, labels: Sequence[str]
) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]], NDArray[np.int64], NDArray[np.int64]]:
    """The row of each record; the labels of each cell; the cell and the query image of each row."""
    cell = np.zeros(len(records), np.int64)
    for name in labels:
        codes, count = _encode_values(records[name])
        cell = cell * count + codes
    first, cell = np.unique(cell, return_index=True, return_inverse=True)[1:]
    query, _ = _encode_values(records["query"])
    width = int(query.max(initial=0)) + 1
    pair, row = np.unique(cell * width + query, return_inverse=True)
    return row, {name: records[name].gather(first).to_numpy() for name in labels}, pair // width, pair % width


def _encode_values(column: pl.Series) -> tuple[NDArray[np.int64], int]:
    """The index of each value among the sorted distinct ones, and how many of these there are."""
    import polars as pl

    values = column.unique().sort()
    if column.dtype == pl.String:
        return column.cast(pl.Enum(values)).to_physical().to_numpy().astype(np.int64), len(values)
    return np.searchsorted(values.to_numpy(), column.to_numpy()), len(values)
