"""How hard an instance is to click on: the spread of the IoU after one click over its mean.

Over people's clicks where every instance has at least two, else over the clicking groups'. With several models the
spread and the mean are averaged over models first.

>>> import numpy as np
>>> Difficulty(np.array([0.5, 0.0]), np.array([0.1, 0.0]), "people's clicks").ratio
array([0.2, inf])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.rclicks.played import Played
from hardlook.metrics.click_robustness import instance_difficulty, sample_and_deviation

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Difficulty:
    """Of each instance (N,): the mean and the deviation of the IoU after one click, and their ratio.

    `who` says in words whose clicks these are; a mean of 0 has the ratio infinity, the hardest there is.
    """

    mean: Numbers
    deviation: Numbers
    who: str

    @property
    def ratio(self) -> Numbers:
        """Deviation over mean."""
        ratio = instance_difficulty(self.mean[None], self.deviation[None])
        return np.where(np.isnan(ratio), np.inf, ratio)


def difficulty_of(table: Played) -> Difficulty:
    """Over people's clicks where all instances have at least two, else over the groups' first clicks."""
    if len(table) and all(len(ious) >= 2 for ious in table.people):
        return Difficulty(*sample_and_deviation(table.people), f"the clicks of {table.whose}")
    return Difficulty(*sample_and_deviation(table.iou[:, table.groups, 0]), "the groups' clicks")
