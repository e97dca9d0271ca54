"""What every AP of a run is made from: matches, which can be weighed anew but not added up.

An AP is no function of sums, so each weighting of the images is one more pass over a table of matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_ap.matches import RunMatches
from hardlook.contract.tally import Entry
from hardlook.metrics.detection_matching import AREA_RANGES
from hardlook.metrics.match_table import MatchTable
from hardlook.metrics.open_ap import OpenApResult, open_average_precision
from hardlook.metrics.weighted_precision import WeightedPrecision
from hardlook.stats.clusters import Clusters, find_clusters

Numbers = NDArray[np.float64]
Results = Mapping[str, OpenApResult]


@dataclass(frozen=True, eq=False)
class WeightedTally:
    """Scores of images that can count any number of times, or come from another run.

    `figures` maps the APs of all classes and of each set to one number an entry; it looks at the first `ranges` area
    ranges. `costly` asks for fewer swaps and
    resamples than scores that are functions of sums can afford.
    """

    costly: ClassVar[bool] = True

    entries: tuple[Entry, ...]
    matches: RunMatches
    similarity: Numbers
    figures: Callable[[Results], Sequence[float]]
    key: tuple[str | int, ...]
    resampled: str = "image"
    ranges: int = len(AREA_RANGES)
    _joined: dict[WeightedTally, Mapping[str, WeightedPrecision]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def clusters(self) -> Clusters:
        """Each image by itself."""
        return find_clusters(self.matches.images)

    @cached_property
    def tables(self) -> dict[str, MatchTable]:
        """The matches as tables: of all classes, and within each set."""
        return self.matches.tables()

    def values(self, weights: Numbers | None = None) -> Numbers:
        """(m, entries): the scores where image i counts `weights[:, i]` times; once each for None."""
        if weights is None:
            once = {name: open_average_precision(table, self.similarity) for name, table in self.tables.items()}
            return np.array([self.figures(once)])
        return self._figures(self._precisions, weights)

    def mixed(self, other: WeightedTally, swaps: Numbers) -> Numbers:
        """(m, entries): the scores with the images at which `swaps` (m, images) is 1 taken from `other`.

        One table holds the images of both runs; each image counts once, from the one or the other.
        """
        if self in other._joined:
            return other.mixed(self, 1 - np.asarray(swaps))
        if other not in self._joined:
            # One partner at a time: the tables of two runs are large.
            self._joined.clear()
            self._joined[other] = self._beside(other)
        taken = np.asarray(swaps)
        weights = np.stack([1 - taken, taken], axis=-1).reshape(len(taken), -1)
        return self._figures(self._joined[other], weights)

    @cached_property
    def _precisions(self) -> Mapping[str, WeightedPrecision]:
        return {name: WeightedPrecision(table, self.similarity, self.ranges) for name, table in self.tables.items()}

    def _beside(self, other: WeightedTally) -> Mapping[str, WeightedPrecision]:
        ours, theirs = ((one.matches.images, one.matches.classes, *one.matches.by_set) for one in (self, other))
        if ours != theirs:
            raise ValueError(f"expected two runs of as many images, labels and class sets, got {ours} and {theirs}")
        # A run need not know how like another's words are (see similarity_in_use): what it does not know is 0.
        similarity = np.maximum(self.similarity, other.similarity)
        tables = self.matches.beside(other.matches).tables()
        return {name: WeightedPrecision(table, similarity, self.ranges) for name, table in tables.items()}

    def _figures(self, precisions: Mapping[str, WeightedPrecision], weights: Numbers) -> Numbers:
        rows = [
            self.figures({name: precision.result(row) for name, precision in precisions.items()})
            for row in np.asarray(weights).astype(np.int64)
        ]
        return np.array(rows, np.float64).reshape(len(rows), len(self.entries))
