"""What a one-shot run found, class by class and image by image, from its records.

Only pairs of one class count: those of the fixed lists where a run has them, else those of tier 1. Tier 2 shows
spoilt supports and tier 3 other classes, so neither says how well a class is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardlook.errors import RunError
from hardlook.stats import Estimate, bootstrap_score, ratio

if TYPE_CHECKING:
    import polars as pl

COUNTS = ("intersection", "predicted", "truth", "predicted_void")
NAMES = {0: "the fixed pairs", 1: "tier 1"}


@dataclass(frozen=True)
class OneShotAnswers:
    """Totals over the pairs of each class and query image: `frame` has class, image, intersection, union, iou.

    `iou` is the ratio of the image's totals in [0, 1], null where both are 0. `pairs` says which pairs they are.
    """

    frame: pl.DataFrame
    pairs: str


def one_shot_answers(records: pl.DataFrame, *, void_ignored: bool = True) -> OneShotAnswers:
    """Totals from the records of `hardlook run toss`, one row a pair.

    Pairs with the fewest supports count where a run has several numbers of shots. `void_ignored` leaves predicted
    pixels out of the union where the truth is open.

    >>> import polars as pl
    >>> row = {"tier": 1, "shots": 1, "class": "cat", "query": "a", "predicted": 6, "predicted_void": 1, "truth": 5}
    >>> answers = one_shot_answers(pl.DataFrame([{**row, "intersection": 4}, {**row, "intersection": 2}]))
    >>> answers.frame.row(0, named=True)["iou"], answers.pairs
    (0.42857142857142855, 'tier 1')
    """
    import polars as pl

    needed = {"tier", "shots", "class", "query", *COUNTS}
    missing = sorted(needed - set(records.columns))
    if missing:
        raise RunError(
            f"the records lack {', '.join(missing)}", remedy="give the folder of a finished `hardlook run toss`"
        )
    numbered = records.with_columns(pl.col("tier", "shots").cast(pl.Int64))
    tiers = set(numbered["tier"].to_list())
    tier = next((number for number in NAMES if number in tiers), None)
    if tier is None:
        raise RunError(
            "the run has neither fixed pairs nor pairs of tier 1",
            remedy="run toss with --tiers 1 or with --fixed",
        )
    of_class = numbered.filter(pl.col("tier") == tier)
    of_class = of_class.filter(pl.col("shots") == pl.col("shots").min())
    union = pl.col("predicted") + pl.col("truth") - pl.col("intersection")
    if void_ignored:
        union = union - pl.col("predicted_void")
    totals = (
        of_class.with_columns(union=union)
        .group_by("class", pl.col("query").alias("image"))
        .agg(pl.col("intersection", "union").sum())
        .sort("class", "image")
        .with_columns(iou=pl.when(pl.col("union") > 0).then(pl.col("intersection") / pl.col("union")))
    )
    return OneShotAnswers(totals, NAMES[tier])


def class_iou(answers: OneShotAnswers, name: str, rng: np.random.Generator, resamples: int) -> Estimate:
    """The class's IoU, sum of intersections over sum of unions, with an interval over query images."""
    import polars as pl

    sums = answers.frame.filter(pl.col("class") == name).select("intersection", "union").to_numpy()
    return bootstrap_score(sums, ratio, rng=rng, resamples=resamples, resampled="query image")
