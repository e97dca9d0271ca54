"""How well single pairs were answered.

Where the support does not show the class (a spurious support), the right answer finds nothing: a high IoU with the
query's own object is the fault that is looked for. Sorted by IoU alone, the right answers there would be the worst
pairs of a run. So the first quality is the credit, 1 - IoU there and IoU elsewhere, as SCS and rejection count; the
IoU itself stands beside it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hardlook.benchmarks.one_shot_pairs.pair_iou import iou_of_pairs
from hardlook.contract.benchmark import Quality

if TYPE_CHECKING:
    import polars as pl

CREDIT = Quality("credit", "credit (IoU; 1 - IoU if the support misleads)")
IOU = Quality("iou", "IoU of the pair")


def pair_ious(records: pl.DataFrame, *, void_ignored: bool) -> pl.DataFrame:
    """`unit` and `iou`, in [0, 1]; NaN for a pair with neither truth nor prediction."""
    return records.select("unit", iou_of_pairs(void_ignored=void_ignored).alias(IOU.name))


def pair_credits(
    records: pl.DataFrame, *, void_ignored: bool, spurious: pl.Expr, scored: pl.Expr | None = None
) -> pl.DataFrame:
    """`unit`, `credit` and `iou`, in [0, 1]; NaN for a pair with neither truth nor prediction.

    `spurious` and `scored` are conditions over records; pairs that are not scored have neither number.

    >>> import polars as pl
    >>> counts = {"intersection": [3, 3], "predicted": [4, 4], "truth": [4, 4], "predicted_void": [0, 0]}
    >>> rows = pl.DataFrame({"unit": ["a", "b"], "split": ["L0", "L4"], **counts})
    >>> pair_credits(rows, void_ignored=True, spurious=pl.col("split") == "L4")["credit"].to_list()
    [0.6, 0.4]
    """
    import polars as pl

    iou = iou_of_pairs(void_ignored=void_ignored)
    iou = iou if scored is None else pl.when(scored).then(iou).otherwise(pl.lit(math.nan))
    credit = pl.when(spurious).then(1 - iou).otherwise(iou)
    return records.select("unit", credit.alias(CREDIT.name), iou.alias(IOU.name))
