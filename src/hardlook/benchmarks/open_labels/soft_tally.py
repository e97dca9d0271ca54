"""Scores from sums of shares, which are no whole numbers: what is swapped away leaves exactly nothing behind.

A class counts in a mean where its sum is above 0. Taking floats away again leaves 1e-17 where nothing should be, and
the quotient of two such rests can be any number. So swapped sums are added up anew, at twice the work.

>>> from hardlook.contract.tally import ratio
>>> ours = np.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])
>>> tally = SoftTally((Entry("share", 3),), ours, ratio, ("example",), "image")
>>> tally.mixed(SoftTally(tally.entries, 0 * ours, ratio, ("example",), "image"), np.ones((1, 3)))
array([[nan]])
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hardlook.contract.tally import Entry, SumTally
from hardlook.stats.bootstrap import Statistic, apply_statistic
from hardlook.stats.clusters import Clusters

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SoftTally:
    """Scores that are functions of soft sums (rows, columns) over rows that are drawn and swapped one by one.

    It holds a `SumTally` and is none, since whoever sees one may take sums away.
    """

    entries: tuple[Entry, ...]
    sums: Numbers
    statistic: Statistic
    key: tuple[str | int, ...]
    resampled: str

    @cached_property
    def _whole(self) -> SumTally:
        return SumTally(self.entries, self.sums, self.statistic, self.key, self.resampled)

    @property
    def clusters(self) -> Clusters:
        """Each row by itself."""
        return self._whole.clusters

    def values(self, weights: Numbers | None = None) -> Numbers:
        """(m, entries): the scores under these weights of the rows."""
        return self._whole.values(weights)

    def mixed(self, other: SoftTally, swaps: Numbers) -> Numbers:
        """(m, entries): the scores with some rows taken from `other`."""
        if self.sums.shape != other.sums.shape:
            raise ValueError(
                f"expected sums of the same rows and columns, got {self.sums.shape} and {other.sums.shape}"
            )
        taken = np.asarray(swaps, np.float64)
        return apply_statistic(self.statistic, (1 - taken) @ self.sums + taken @ other.sums)
