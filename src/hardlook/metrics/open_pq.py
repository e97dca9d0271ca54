"""Open PQ: panoptic quality where a similar label is partly right.

After "Rethinking Evaluation Metrics of Open-Vocabulary Segmentation" (2023). The state is the matches of the
segments, a few integers per image, so one pass over the images is scored under any number of similarity matrices.

>>> metric = OpenPQ(["cat", "dog"], [[1, 0.5], [0.5, 1]], things=[True, True])
>>> image = np.array([[1, 1, 2]])
>>> metric.update(image, Segments([1, 2], [0, 1]), image, Segments([1, 2], [0, 0]))
>>> result = metric.compute()
>>> round(result.open.all.pq, 3), round(result.vanilla.all.pq, 3)
(0.733, 0.333)

All scores come from four sums per class that add up over images: IoU of matches, true positives, false positives, false
negatives. A match between classes that are both things or both stuff counts for S of a true positive of the true class;
the rest, 1 - S, is a false negative of the true class and a false positive of the other. With the identity for S this
is the closed metric.

>>> mean_quality(np.array([[0.9, 0.4], [1, 0.5], [1.5, 0], [0, 0.5]])).round(3)
array([0.524, 0.85 , 0.619])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.arrays import Values, as_numpy, check_choice, checked_similarity, class_mask, unique_labels
from hardlook.metrics.confusion import ConfusionCosts, confusion_costs
from hardlook.metrics.panoptic import Crowds, SegmentMatches, Segments, join_matches, match_segments


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


class OpenPQ:
    """Accumulates matches over images: update, merge, compute, reset.

    `labels` are the K names, in the order of the classes 0..K-1; `things` says which of them are things. A similarity
    that is not symmetric is an error unless `asymmetric` says that it is meant: rows are true labels.

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
        asymmetric: bool = False,
    ) -> None:
        check_choice(crowds, Crowds, "crowds")
        self.labels, self.crowds, self.asymmetric = unique_labels(labels), crowds, asymmetric
        self.known = None if known is None else class_mask(known, len(self.labels), "known")
        self.similarity = checked_similarity(similarity, len(self.labels), symmetric=not asymmetric)
        self.things = class_mask(things, len(self.labels), "things")
        self.reset()

    def reset(self) -> None:
        """Delete all matches."""
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

    def add_matches(self, matches: SegmentMatches) -> None:
        """Add images whose segments `match_segments` has matched."""
        self._parts.append(matches)

    @property
    def matches(self) -> SegmentMatches:
        """All matches so far, images in the order of the updates."""
        self._parts = [join_matches(self._parts)]
        return self._parts[0]

    def compute(self) -> OpenPqResult:
        """The scores so far."""
        return open_pq(self.matches, self.similarity, self.things, known=self.known, asymmetric=self.asymmetric)


def open_pq(
    matches: SegmentMatches,
    similarity: Values,
    things: Values,
    *,
    known: ArrayLike | None = None,
    asymmetric: bool = False,
) -> OpenPqResult:
    """Open and vanilla PQ, SQ and RQ of matched segments: all, things, stuff, known and unknown classes, each class.

    `similarity` is (K, K), 0..1, ones on the diagonal, symmetric unless `asymmetric` says that it is meant not to be;
    `things` and `known` are (K,) masks.

    >>> image = np.array([[1, 1, 1]])
    >>> matches = match_segments(image, Segments([1], [0]), image, Segments([1], [1]))
    >>> round(open_pq(matches, [[1, 0.6], [0.6, 1]], [False, False]).open.all.pq, 3)
    0.375
    """
    mask = class_mask(things, len(as_numpy(things)), "things")
    shared = checked_similarity(similarity, len(mask), symmetric=not asymmetric)
    return OpenPqResult(
        open=panoptic_scores(quality_sums(matches, shared, mask), mask, known=known),
        vanilla=panoptic_scores(quality_sums(matches, np.eye(len(mask)), mask), mask, known=known),
    )


def panoptic_scores(
    sums: NDArray[np.float64], things: NDArray[np.bool_], *, known: ArrayLike | None = None
) -> PanopticScores:
    """All scores of one set of (4, K) sums.

    >>> panoptic_scores(np.array([[0.8], [1], [0], [0]]), np.array([True])).things
    Quality(pq=0.8, sq=0.8, rq=1.0, classes=1)
    """
    declared = None if known is None else class_mask(known, len(things), "known")
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


def _quality(sums: NDArray[np.float64], within: NDArray[np.bool_]) -> Quality:
    pq, sq, rq = (float(mean) for mean in mean_quality(sums, within))
    return Quality(pq, sq, rq, int((sums[1:, within].sum(0) > 0).sum()))


def quality_sums_by_image(matches: SegmentMatches, similarity: Values, things: Values) -> NDArray[np.float64]:
    """(images, 4, K) sums of each image and class, which is what a bootstrap over images resamples.

    `similarity` is (K, K), row = true; `things` is a (K,) mask, the others are stuff. Similarity between a thing and
    stuff is not used: such a match does not count.

    >>> image = np.array([[1, 2]])
    >>> same = match_segments(image, Segments([1, 2], [0, 1]), image, Segments([1, 2], [0, 0]))
    >>> quality_sums_by_image(same, [[1, 0.25], [0.25, 1]], [True, True]).tolist()
    [[[1.0, 0.25], [1.0, 0.25], [0.75, 0.0], [0.0, 0.75]]]
    """
    return _sums(matches, similarity, things, matches.image, matches.images)


def quality_sums(matches: SegmentMatches, similarity: Values, things: Values) -> NDArray[np.float64]:
    """(4, K) sums of each class over all images, the same to the last bit whatever the images' order.

    >>> quality_sums(join_matches([]), [[1]], [True]).tolist()
    [[0.0], [0.0], [0.0], [0.0]]
    """
    columns = ("true", "called", "intersection", "union", "excused")
    order = np.lexsort(tuple(getattr(matches, name) for name in reversed(columns)))
    sorted_matches = replace(matches, **{name: getattr(matches, name)[order] for name in ("image", *columns)})
    return np.asarray(_sums(sorted_matches, similarity, things, np.zeros(len(matches), np.int64), 1)[0])


def class_quality(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., 3, K) PQ, SQ and RQ of each class from (..., 4, K) sums; NaN for a class that does not occur.

    SQ is 0 for a class that occurs and has no true positive.

    >>> class_quality(np.array([[0.0, 0.0], [0, 0], [2, 0], [0, 0]]))
    array([[ 0., nan],
           [ 0., nan],
           [ 0., nan]])
    """
    iou, tp, fp, fn = np.moveaxis(np.asarray(sums, np.float64), -2, 0)
    weight = tp + fp / 2 + fn / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        quality = np.stack([iou / weight, np.where(tp > 0, iou / tp, 0.0), tp / weight], axis=-2)
    return np.where((weight > 0)[..., None, :], quality, np.nan)


def mean_quality(sums: NDArray[np.float64], within: ArrayLike | None = None) -> NDArray[np.float64]:
    """(..., 3) mean PQ, SQ and RQ over the classes that occur, NaN where none does, from (..., 4, K) sums.

    `within` is a (K,) mask of classes to take.

    >>> mean_quality(np.array([[0.8, 0.0], [1, 0], [0, 2], [0, 0]]), within=[True, False])
    array([0.8, 0.8, 1. ])
    """
    taken = sums if within is None else np.asarray(sums)[..., np.asarray(within, np.bool_)]
    quality = class_quality(taken)
    occurs = ~np.isnan(quality)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(occurs, quality, 0.0).sum(-1) / occurs.sum(-1))


def _sums(
    matches: SegmentMatches, similarity: Values, things: Values, group: NDArray[np.int64], groups: int
) -> NDArray[np.float64]:
    is_thing = as_numpy(things).astype(np.bool_)
    classes = len(is_thing)
    shared = checked_similarity(similarity, classes)
    largest = max(matches.true.max(initial=-1), matches.called.max(initial=-1))
    if largest >= classes:
        raise ValueError(f"matches: expected classes from 0 to {classes - 1}, got {largest}")
    # One more row and column of zeros for NO_PARTNER, which is -1 and so indexes the last.
    credit = np.zeros((classes + 1, classes + 1))
    credit[:classes, :classes] = np.where(is_thing[:, None] == is_thing, shared, 0.0)
    share = credit[matches.true, matches.called]
    iou = share * matches.intersection / np.maximum(matches.union, 1)
    slots = classes + 1
    true, called = group * slots + matches.true % slots, group * slots + matches.called % slots
    sums = [
        np.bincount(true, iou, groups * slots),
        np.bincount(true, share, groups * slots),
        np.bincount(called, np.where(matches.excused, 0.0, 1 - share), groups * slots),
        np.bincount(true, 1 - share, groups * slots),
    ]
    # For empty input bincount returns integers, whatever the weights.
    stack = np.stack(sums).astype(np.float64, copy=False)
    return np.moveaxis(stack.reshape(4, groups, slots), 0, 1)[..., :classes]


def segment_costs(
    matches: SegmentMatches,
    similarity: Values,
    things: Values,
    *,
    by: Literal["soft", "hard"] = "soft",
    most: int | None = None,
) -> ConfusionCosts:
    """The pairs of labels of matched segments, highest cost first; at most `most` of them.

    `hard` counts segments, `soft` the share 1 - S of them; between a thing and stuff S is 0. Segments
    without a match are not confusions of labels and are left out.

    >>> image = np.array([[1, 2]])
    >>> matches = match_segments(image, Segments([1, 2], [0, 1]), image, Segments([1, 2], [1, 1]))
    >>> segment_costs(matches, [[1, 0.75], [0.75, 1]], [True, True]).soft
    array([0.25])
    """
    is_thing = as_numpy(things).astype(np.bool_)
    classes = len(is_thing)
    pairs = (matches.true >= 0) & (matches.called >= 0)
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (matches.true[pairs], matches.called[pairs]), 1)
    shared = np.where(is_thing[:, None] == is_thing, checked_similarity(similarity, classes), 0.0)
    return confusion_costs(counts, shared, by=by, most=most)
