"""Tallies of soft sums, which are not whole numbers, so that exchanging rows leaves no rounding residue.

A class counts in a mean where its sum is above 0. Subtracting floats again leaves 1e-17 where 0 should be, and the
quotient of two such residues can be any number. So sums with exchanged rows are added up anew, at twice the work.

>>> from hardlook.harness.stats.bootstrap import ratio
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

from hardlook.harness.stats.bootstrap import Statistic, apply_statistic
from hardlook.harness.stats.resampling import Clusters
from hardlook.harness.tally import Entry, SumTally

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SoftTally:
    """Scores that are functions of soft sums (rows, columns), each row its own cluster.

    It wraps a `SumTally` instead of being one, since users of a `SumTally` may subtract its sums.
    """

    entries: tuple[Entry, ...]
    sums: Numbers
    statistic: Statistic
    key: tuple[str | int, ...]
    resampled: str

    @cached_property
    def _tally(self) -> SumTally:
        return SumTally(self.entries, self.sums, self.statistic, self.key, self.resampled)

    @property
    def clusters(self) -> Clusters:
        """Each row by itself."""
        return self._tally.clusters

    def values(self, weights: Numbers | None = None) -> Numbers:
        """(m, entries): the scores under these weights of the rows."""
        return self._tally.values(weights)

    def mixed(self, other: SoftTally, swaps: Numbers) -> Numbers:
        """(m, entries): the scores with some rows taken from `other`."""
        if self.sums.shape != other.sums.shape:
            raise ValueError(
                f"expected sums of the same rows and columns, got {self.sums.shape} and {other.sums.shape}"
            )
        taken = np.asarray(swaps, np.float64)
        return apply_statistic(self.statistic, (1 - taken) @ self.sums + taken @ other.sums)
