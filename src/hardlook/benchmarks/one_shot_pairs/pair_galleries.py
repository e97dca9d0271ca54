"""Galleries of pairs: records with the IoU of each pair, and those found or missed, one a query image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.benchmarks.one_shot_pairs.pair_iou import iou_of_pairs
from hardlook.contract.scorecard import Scorecard
from hardlook.contract.sections import Example, Gallery

if TYPE_CHECKING:
    import polars as pl

SHOWN = 6
FOUND_FROM = 0.5  # the IoU that detection benchmarks ask for
LEAST_TRUTH = 0.005  # of the picture: a target of a few pixels shows nothing


def with_iou(records: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """The records whose target can be seen, with a column `iou` under the scorecard's reading of void pixels."""
    import polars as pl

    ignored = any(reading.name == "void" and reading.value == "ignored" for reading in scorecard.readings)
    return records.with_columns(iou=iou_of_pairs(void_ignored=ignored)).filter(
        pl.col("iou").is_not_nan() & (pl.col("truth") >= LEAST_TRUTH * pl.col("pixels"))
    )


def pair_gallery(
    pairs: pl.DataFrame, title: str, caption: str, label: str, *, found: bool = True, shown: int = SHOWN
) -> Gallery:
    """The pairs that are found, highest IoU first, or those that are missed, lowest first; `label` is a column to name.

    A page that calls a pair found or missed must not show one that is not, so both may be empty.
    """
    told = pairs.filter((pairs["iou"] >= FOUND_FROM) == found)
    ordered = told.sort("iou", "unit", descending=[found, False])
    one_each = ordered.unique(subset="query", keep="first", maintain_order=True).head(shown)
    examples = tuple(
        Example(row["unit"], f"{row['class']}{', ' + row[label] if row[label] else ''}: IoU {row['iou']:.3f}")
        for row in one_each.iter_rows(named=True)
    )
    return Gallery(title, caption, examples)
