"""Which attribute of an image matters: mutual information of each with whether one-shot segmentation succeeds.

Success is an IoU of the image above .5. Information is in nats, from k = 3 nearest neighbours; a fair coin's whole
outcome is ln 2 = .693 nats.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardlook.bias.one_shot_answers import OneShotAnswers
from hardlook.errors import DataError
from hardlook.randomness import generator
from hardlook.stats import Estimate
from hardlook.stats.mutual_information import mutual_information, mutual_information_interval

if TYPE_CHECKING:
    import polars as pl

# Columns of an attribute table and the words for them, in the published order.
ATTRIBUTES = {
    "iou": "supervised IoU",
    "area_ratio": "size",
    "offset_ratio": "centredness",
    "saliou": "salience",
    "blob_count": "blobs",
    "distractor_weight": "distractors",
}
SUCCESS = 0.5
NEIGHBOURS = 3
SHUFFLES = 19
FEWEST = 20


@dataclass(frozen=True)
class Information:
    """What one attribute says about success, in nats.

    `chance` is the most that it says in 19 shuffles of the outcomes: information above it is there at the 5 % level.
    `rows` are class and image pairs with both numbers, `missing` those without.
    """

    attribute: str
    column: str
    information: Estimate
    chance: float
    rows: int
    missing: int

    @property
    def above_chance(self) -> bool:
        """Whether the attribute says more than it does about any shuffled outcome."""
        return self.information.value > self.chance


@dataclass(frozen=True)
class InformationStudy:
    """All attributes that the table has, the most telling first; `success` is the share of rows above .5 IoU."""

    attributes: tuple[Information, ...]
    absent: tuple[str, ...]
    success: float
    rows: int


def with_run(table: pl.DataFrame, answers: OneShotAnswers) -> pl.DataFrame:
    """The table with its column oss_perf taken from a run; rows that the run has no query for are NaN.

    >>> import polars as pl
    >>> table = pl.DataFrame({"class": ["cat"], "image": ["a"], "oss_perf": [0.1]})
    >>> found = pl.DataFrame({"class": ["cat"], "image": ["a"], "iou": [0.7]})
    >>> with_run(table, OneShotAnswers(found, "tier 1"))["oss_perf"].to_list()
    [0.7]
    """
    import polars as pl

    found = answers.frame.select("class", "image", oss_perf="iou")
    joined = table.drop("oss_perf").join(found, on=["class", "image"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("oss_perf").fill_null(float("nan")))


def attribute_information(table: pl.DataFrame, *, seed: int = 0, halves: int = 200) -> InformationStudy:
    """The information of every attribute of a table from `attribute_file` about oss_perf > .5.

    Intervals leave random halves of the images out (`stats.mutual_information_interval`).
    """
    one_shot = table["oss_perf"].to_numpy()
    scored = np.isfinite(one_shot)
    outcome = one_shot > SUCCESS
    if scored.sum() < FEWEST or len(np.unique(outcome[scored])) < 2:
        raise DataError(
            f"{int(scored.sum())} rows have a one-shot IoU and {int(outcome[scored].sum())} of them exceed {SUCCESS}",
            remedy=f"{FEWEST} rows are needed, some above and some not; give --run, or a table with oss_perf",
        )
    images = table["image"].to_numpy()
    found, absent = [], []
    for column, name in ATTRIBUTES.items():
        values = table[column].to_numpy()
        known = scored & np.isfinite(values)
        if known.sum() < FEWEST:
            absent.append(name)
            continue
        x, y = values[known], outcome[known]
        estimate = mutual_information_interval(
            x,
            y,
            k=NEIGHBOURS,
            rng=generator(seed, "information", column),
            clusters=images[known],
            halves=halves,
            resampled="image",
        )
        shuffles = generator(seed, "shuffled", column)
        chance = max(
            mutual_information(x, shuffles.permutation(y), k=NEIGHBOURS, rng=shuffles) for _ in range(SHUFFLES)
        )
        rows = int(known.sum())
        found.append(Information(name, column, estimate, chance, rows, len(table) - rows))
    found.sort(key=lambda one: -one.information.value)
    return InformationStudy(tuple(found), tuple(absent), float(outcome[scored].mean()), int(scored.sum()))
