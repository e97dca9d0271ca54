"""Open PQ: panoptic quality where a similar label is partly right.

After "Rethinking Evaluation Metrics of Open-Vocabulary Segmentation" (2023). The state is the matches of the
segments, a few integers an image, so one pass over the images is scored under any number of similarity matrices.

>>> metric = OpenPQ(["cat", "dog"], [[1, 0.5], [0.5, 1]], things=[True, True])
>>> image = np.array([[1, 1, 2]])
>>> metric.update(image, Segments([1, 2], [0, 1]), image, Segments([1, 2], [0, 0]))
>>> result = metric.compute()
>>> round(result.open.all.pq, 3), round(result.vanilla.all.pq, 3)
(0.733, 0.333)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.array_input import Values, as_numpy
from hardlook.metrics.panoptic_matching import Crowds, SegmentMatches, Segments, join_matches, match_segments
from hardlook.metrics.panoptic_quality import class_quality, mean_quality, quality_sums
from hardlook.metrics.similarity_matrix import checked_similarity


@dataclass(frozen=True)
class Quality:
    """Means over the `classes` that occur, from 0 to 1, NaN where none does."""

    pq: float
    sq: float
    rq: float
    classes: int


@dataclass(frozen=True)
class PanopticScores:
    """Means over groups of classes, and the (K,) values of each class, NaN for a class that does not occur.

    `known` and `unknown` are None where no class was declared known.
    """

    all: Quality
    things: Quality
    stuff: Quality
    known: Quality | None
    unknown: Quality | None
    pq: NDArray[np.float64]
    sq: NDArray[np.float64]
    rq: NDArray[np.float64]


@dataclass(frozen=True)
class OpenPqResult:
    """The open scores, and beside them the vanilla ones, where only the right label counts."""

    open: PanopticScores
    vanilla: PanopticScores


def open_pq(
    matches: SegmentMatches, similarity: Values, things: Values, *, known: ArrayLike | None = None
) -> OpenPqResult:
    """Open and vanilla PQ, SQ and RQ of matched segments: all, things, stuff, known and unknown classes, each class.

    `similarity` is (K, K), 0..1, ones on the diagonal; `things` and `known` are (K,) masks.

    >>> image = np.array([[1, 1, 1]])
    >>> matches = match_segments(image, Segments([1], [0]), image, Segments([1], [1]))
    >>> round(open_pq(matches, [[1, 0.6], [0.6, 1]], [False, False]).open.all.pq, 3)
    0.375
    """
    mask = as_numpy(things).astype(np.bool_)
    return OpenPqResult(
        open=panoptic_scores(quality_sums(matches, similarity, mask), mask, known=known),
        vanilla=panoptic_scores(quality_sums(matches, np.eye(len(mask)), mask), mask, known=known),
    )


def panoptic_scores(
    sums: NDArray[np.float64], things: NDArray[np.bool_], *, known: ArrayLike | None = None
) -> PanopticScores:
    """All scores of one set of (4, K) sums.

    >>> panoptic_scores(np.array([[0.8], [1], [0], [0]]), np.array([True])).things
    Quality(pq=0.8, sq=0.8, rq=1.0, classes=1)
    """
    declared = None if known is None else np.asarray(known, np.bool_)
    if declared is not None and declared.shape != things.shape:
        raise ValueError(f"known: expected shape {things.shape}, got {declared.shape}")
    pq, sq, rq = class_quality(sums)
    return PanopticScores(
        all=_quality(sums, np.ones_like(things)),
        things=_quality(sums, things),
        stuff=_quality(sums, ~things),
        known=None if declared is None else _quality(sums, declared),
        unknown=None if declared is None else _quality(sums, ~declared),
        pq=pq,
        sq=sq,
        rq=rq,
    )


class OpenPQ:
    """Accumulates matches over images: update, merge, compute, reset.

    `labels` are the K names, in the order of the classes 0..K-1; `things` says which of them are things.

    >>> metric = OpenPQ(["sky"], [[1]], things=[False])
    >>> metric.update([[4, 4]], Segments([4], [0]), [[1, 1]], Segments([1], [0]))
    >>> metric.compute().open.stuff.pq
    1.0
    """

    def __init__(
        self,
        labels: Sequence[str],
        similarity: Values,
        things: Values,
        *,
        known: ArrayLike | None = None,
        crowds: Crowds = "last",
    ) -> None:
        self.labels, self.known, self.crowds = tuple(labels), known, crowds
        self.similarity = checked_similarity(similarity, len(self.labels))
        self.things = as_numpy(things).astype(np.bool_)
        if self.things.shape != (len(self.labels),):
            raise ValueError(f"things: expected shape ({len(self.labels)},), got {self.things.shape}")
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._parts: list[SegmentMatches] = []

    def update(self, truth: Values, truth_segments: Segments, prediction: Values, predicted_segments: Segments) -> None:
        """Add one image: (H, W) maps of segment ids, 0 = void, and the tables of their segments."""
        maps = truth, truth_segments, prediction, predicted_segments
        self._parts.append(match_segments(*maps, classes=len(self.labels), crowds=self.crowds))

    def merge(self, other: OpenPQ) -> None:
        """Add another's matches; merging parts equals one pass, exactly."""
        if other.labels != self.labels:
            raise ValueError(f"other: expected the same {len(self.labels)} labels, got {len(other.labels)} others")
        if other.crowds != self.crowds or not np.array_equal(other.things, self.things):
            raise ValueError("other: expected the same things and the same rule for crowds")
        self._parts += other._parts

    @property
    def matches(self) -> SegmentMatches:
        """All matches so far, images in the order they came."""
        self._parts = [join_matches(self._parts)]
        return self._parts[0]

    def compute(self) -> OpenPqResult:
        """The scores so far."""
        return open_pq(self.matches, self.similarity, self.things, known=self.known)


def _quality(sums: NDArray[np.float64], within: NDArray[np.bool_]) -> Quality:
    pq, sq, rq = (float(mean) for mean in mean_quality(sums, within))
    return Quality(pq, sq, rq, int((sums[1:, within].sum(0) > 0).sum()))
