"""The IoU of single pairs, as a column of their records."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def iou_of_pairs(*, void_ignored: bool) -> pl.Expr:
    """An expression over records: IoU of prediction and truth, in [0, 1]; NaN with neither truth nor prediction.

    >>> import polars as pl
    >>> counts = {"intersection": [3, 0], "predicted": [5, 0], "truth": [4, 0], "predicted_void": [1, 0]}
    >>> pl.DataFrame(counts).select(iou_of_pairs(void_ignored=True)).to_series().to_list()
    [0.6, nan]
    """
    import polars as pl

    union = pl.col("predicted") + pl.col("truth") - pl.col("intersection")
    union = union - pl.col("predicted_void") if void_ignored else union
    return pl.when(union > 0).then(pl.col("intersection") / union).otherwise(pl.lit(math.nan))
