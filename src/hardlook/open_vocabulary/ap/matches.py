"""Matches of detections and objects: from records to tallies of AP.

An AP is not a function of sums: each weighting of the images is one more pass over a table of matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.stats.resampling import Clusters, find_clusters
from hardlook.harness.tally import Entry
from hardlook.metrics.average_precision import MatchTable, build_match_table
from hardlook.metrics.detection import Detections, Objects
from hardlook.metrics.detection_matching import AREA_RANGES, ImageMatches, match_image, select_classes
from hardlook.metrics.open_ap import OpenApResult, WeightedPrecision, open_average_precision
from hardlook.open_vocabulary.ap.evaluation import read_image_inputs
from hardlook.open_vocabulary.class_sets import ClassMasks
from hardlook.open_vocabulary.record_columns import read_label_names

if TYPE_CHECKING:
    import polars as pl


ALL_CLASSES = ""
Numbers = NDArray[np.float64]
Results = Mapping[str, OpenApResult]


@dataclass(frozen=True, eq=False)
class RunMatches:
    """Matches of the same images: with all classes (under the name `ALL_CLASSES`), and within each set alone."""

    by_set: Mapping[str, Sequence[ImageMatches]]
    classes: int

    @property
    def images(self) -> int:
        """How many images there are."""
        return len(self.by_set[ALL_CLASSES])

    def tables(self) -> dict[str, MatchTable]:
        """One table for all classes and for each set, images in their order."""
        return {name: build_match_table(images, self.classes) for name, images in self.by_set.items()}

    def select(self, images: Iterable[int]) -> RunMatches:
        """All classes of some of the images, without the sets."""
        return RunMatches({ALL_CLASSES: [self.by_set[ALL_CLASSES][image] for image in images]}, self.classes)

    def interleave(self, other: RunMatches) -> RunMatches:
        """Image i of this run as 2 i, of the other as 2 i + 1: neighbours, since ties of scores are broken by image."""
        pairs = {name: zip(images, other.by_set[name], strict=True) for name, images in self.by_set.items()}
        return RunMatches({name: [one for pair in both for one in pair] for name, both in pairs.items()}, self.classes)


def match_records(
    records: pl.DataFrame,
    *,
    max_detections: int = 100,
    released: bool = False,
    sets: ClassMasks | None = None,
    federated: bool = False,
) -> RunMatches:
    """Match every image of `records`, in the order of the rows, by COCO's rules or, `federated`, by LVIS's."""
    inputs, zero = read_image_inputs(records, federated=federated), int(records["zero"][0])

    def match(truth: Objects, found: Detections, overlap: Numbers) -> ImageMatches:
        return match_image(
            truth, found, overlap=overlap, max_detections=max_detections,
            released=released, category_zero=None if zero < 0 else zero,
        )  # fmt: skip

    by_set = {ALL_CLASSES: [match(*image) for image in inputs]}
    for name, kept in (sets or {}).items():
        by_set[name] = [match(*select_classes(*image, kept)) for image in inputs]
    return RunMatches(by_set, len(read_label_names(records)))


@dataclass(frozen=True, eq=False)
class WeightedTally:
    """Scores of images that can count any number of times, or come from another run.

    `compute_scores` maps the APs of all classes and of each set to one number per entry, from the first `ranges` area
    ranges. `costly` means fewer swaps and resamples than for functions of sums.
    """

    costly: ClassVar[bool] = True

    entries: tuple[Entry, ...]
    matches: RunMatches
    similarity: Numbers
    compute_scores: Callable[[Results], Sequence[float]]
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
            # An asymmetric similarity was accepted when it was made, so it is not refused here.
            tables = self.tables.items()
            once = {name: open_average_precision(table, self.similarity, asymmetric=True) for name, table in tables}
            return np.array([self.compute_scores(once)])
        return self._compute_weighted(self._precisions, weights)

    def mixed(self, other: WeightedTally, swaps: Numbers) -> Numbers:
        """(m, entries): the scores with the images where `swaps` (m, images) is 1 from `other`, by one joint table."""
        if self in other._joined:
            return other.mixed(self, 1 - np.asarray(swaps))
        if other not in self._joined:
            # One other run at a time: the tables of two runs are large.
            self._joined.clear()
            self._joined[other] = self._join(other)
        taken = np.asarray(swaps)
        weights = np.stack([1 - taken, taken], axis=-1).reshape(len(taken), -1)
        return self._compute_weighted(self._joined[other], weights)

    @cached_property
    def _precisions(self) -> Mapping[str, WeightedPrecision]:
        return {name: WeightedPrecision(table, self.similarity, self.ranges) for name, table in self.tables.items()}

    def _join(self, other: WeightedTally) -> Mapping[str, WeightedPrecision]:
        ours, theirs = ((one.matches.images, one.matches.classes, *one.matches.by_set) for one in (self, other))
        if ours != theirs:
            raise ValueError(f"expected runs with the same images, labels and class sets, got {ours} and {theirs}")
        # A run need not know the similarity of another's labels (see compute_used_similarity): those are 0.
        similarity = np.maximum(self.similarity, other.similarity)
        tables = self.matches.interleave(other.matches).tables()
        return {name: WeightedPrecision(table, similarity, self.ranges) for name, table in tables.items()}

    def _compute_weighted(self, precisions: Mapping[str, WeightedPrecision], weights: Numbers) -> Numbers:
        rows = [
            self.compute_scores({name: precision.result(row) for name, precision in precisions.items()})
            for row in np.asarray(weights).astype(np.int64)
        ]
        return np.array(rows, np.float64).reshape(len(rows), len(self.entries))
