"""L2 told from L3 where the lists do not: by the cosine of the two images, as an encoder sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.benchmarks.one_shot_pairs.likeness import NOT_ASKED
from hardlook.data.toss_pairs import UNTOLD

if TYPE_CHECKING:
    import polars as pl


def tell_levels(records: pl.DataFrame, shots: int) -> tuple[pl.DataFrame, float | None]:
    """The records with `L2+L3` split at the mean cosine of those pairs: above it L2 (similar), else L3; and that mean.

    The mean is taken once a pair: over the records of this number of `shots`. None where no encoder was asked.

    >>> import polars as pl
    >>> rows = {"split": ["L2+L3", "L2+L3", "L0"], "similarity": [0.9, 0.1, -2.0], "shots": [1, 1, 1]}
    >>> told, mean = tell_levels(pl.DataFrame(rows), 1)
    >>> told["split"].to_list(), mean
    (['L2', 'L3', 'L0'], 0.5)
    """
    import polars as pl

    if "similarity" not in records.columns:
        return records, None
    asked = (pl.col("split") == UNTOLD) & (pl.col("similarity") > NOT_ASKED)
    # Sorted, so that the sum does not depend on the order of the records.
    cosines = records.filter(asked & (pl.col("shots") == shots))["similarity"].sort()
    if cosines.is_empty():
        return records, None
    mean = float(cosines.to_numpy().mean())
    told = pl.when(pl.col("similarity") > mean).then(pl.lit("L2")).otherwise(pl.lit("L3"))
    return records.with_columns(split=pl.when(asked).then(told).otherwise(pl.col("split"))), mean
