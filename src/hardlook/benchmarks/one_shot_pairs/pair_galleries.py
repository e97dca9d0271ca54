"""Galleries of pairs: records with the IoU of each pair, and the best or worst of them, one a query image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.contract.scorecard import Scorecard
from hardlook.contract.sections import Example, Gallery

if TYPE_CHECKING:
    import polars as pl

SHOWN = 6
LEAST_TRUTH = 0.005  # of the picture: a target of a few pixels shows nothing


def with_iou(records: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """The records whose target can be seen, with a column `iou` under the scorecard's reading of void pixels."""
    import polars as pl

    ignored = any(reading.name == "void" and reading.value == "ignored" for reading in scorecard.readings)
    open_pixels = pl.col("predicted_void") if ignored else pl.lit(0)
    union = pl.col("predicted") + pl.col("truth") - pl.col("intersection") - open_pixels
    return records.with_columns(iou=pl.col("intersection") / union).filter(
        (union > 0) & (pl.col("truth") >= LEAST_TRUTH * pl.col("pixels"))
    )


def pair_gallery(
    pairs: pl.DataFrame, title: str, caption: str, label: str, *, best: bool | None = True, shown: int = SHOWN
) -> Gallery:
    """The pairs with the highest IoU, or the lowest; `best` None keeps their order. `label` is a column to name."""
    ordered = pairs if best is None else pairs.sort("iou", "unit", descending=[best, False])
    one_each = ordered.unique(subset="query", keep="first", maintain_order=True).head(shown)
    examples = tuple(
        Example(row["unit"], f"{row['class']}{', ' + row[label] if row[label] else ''}: IoU {row['iou']:.3f}")
        for row in one_each.iter_rows(named=True)
    )
    return Gallery(title, caption, examples)
