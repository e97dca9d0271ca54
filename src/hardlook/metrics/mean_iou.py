"""Intersection over union by class and its mean, from counts that add up over images.

It takes three counts per class: pixels hit (true and predicted), true pixels, predicted pixels. They are
integers that add over images, so scores of any subset, and their bootstrap, come from sums.

>>> import numpy as np
>>> counts = class_counts(np.array([[3, 1, 0], [1, 2, 0]]))
>>> class_iou(counts)
array([0.6, 0.5])
>>> round(float(mean_iou(counts)), 3)
0.55
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import Values, check_choice, divide, pixel_counts
from hardlook.metrics.confusion import Ignored, PairCounts, choose_ignored

MeanOver = Literal["detectron2", "gt-only"]
Counts = NDArray[np.int64] | NDArray[np.float64]


def class_counts(confusion: NDArray[np.int64]) -> NDArray[np.int64]:
    """(..., 3, K) pixels hit, true and predicted of each class, from (..., K, K + 1) confusion counts."""
    pixel_counts(confusion, "confusion")
    classes = confusion.shape[-2]
    square = confusion[..., :classes]
    hits = np.diagonal(square, axis1=-2, axis2=-1)
    return np.stack([hits, confusion.sum(-1), square.sum(-2)], axis=-2)


def class_counts_of_pairs(pairs: PairCounts) -> NDArray[np.int64]:
    """(3, K) pixels hit, true and predicted of each class, from the pairs seen.

    >>> pairs = PairCounts(2)
    >>> pairs.add([0, 0, 1], [0, 1, 9])
    >>> class_counts_of_pairs(pairs).tolist()
    [[1, 0], [2, 1], [1, 1]]
    """
    true, called, pixels = pairs.pairs()
    counts = np.zeros((3, pairs.classes + 1), np.int64)
    np.add.at(counts[0], true[true == called], pixels[true == called])
    np.add.at(counts[1], true, pixels)
    np.add.at(counts[2], called, pixels)
    return counts[:, : pairs.classes]


def class_iou(counts: Counts) -> NDArray[np.float64]:
    """(..., K) IoU of each class from (..., 3, K) counts; NaN for a class with neither truth nor prediction."""
    hits, truth, predicted = _parts(counts)
    return divide(hits, truth + predicted - hits)


def mean_iou(counts: Counts, mean_over: MeanOver = "detectron2") -> NDArray[np.float64]:
    """(...) mean IoU from (..., 3, K) counts.

    `detectron2` sums over classes with ground truth and divides by the classes with ground truth or prediction;
    `gt-only` divides by the classes with ground truth.
    """
    check_choice(mean_over, MeanOver, "mean_over")
    hits, truth, predicted = _parts(counts)
    iou = np.where(truth > 0, divide(hits, truth + predicted - hits), 0.0)
    counted = (truth > 0) | (predicted > 0) if mean_over == "detectron2" else truth > 0
    return divide(iou.sum(-1), counted.sum(-1))


def pixel_accuracy(counts: Counts) -> NDArray[np.float64]:
    """(...) share of pixels with the right label."""
    hits, truth, _ = _parts(counts)
    return divide(hits.sum(-1), truth.sum(-1))


def mean_class_accuracy(counts: Counts) -> NDArray[np.float64]:
    """(...) mean over classes with ground truth of the share of their pixels that is found."""
    hits, truth, _ = _parts(counts)
    recall = np.where(truth > 0, divide(hits, truth), 0.0)
    return divide(recall.sum(-1), (truth > 0).sum(-1))


def frequency_weighted_iou(counts: Counts) -> NDArray[np.float64]:
    """(...) IoU weighted by each class's share of the true pixels."""
    hits, truth, predicted = _parts(counts)
    iou = np.where(truth > 0, divide(hits, truth + predicted - hits), 0.0)
    return divide((iou * truth).sum(-1), truth.sum(-1))


class MeanIoU:
    """Accumulates counts over images: update, merge, compute, reset.

    `ignore` is the true label of pixels that do not count: by default 255, unless that is a class. `pairs` are the
    counts so far.

    >>> metric = MeanIoU(classes=2)
    >>> metric.update(np.array([0, 1]), np.array([0, 0]))
    >>> round(metric.compute(), 3)
    0.25
    """

    def __init__(self, classes: int, *, ignore: Ignored = "auto", mean_over: MeanOver = "detectron2") -> None:
        check_choice(mean_over, MeanOver, "mean_over")
        self.classes, self.ignore, self.mean_over = classes, choose_ignored(ignore, classes), mean_over
        self.reset()

    def reset(self) -> None:
        """Delete all counts."""
        self.pairs = PairCounts(self.classes, self.ignore)

    @property
    def confusion(self) -> NDArray[np.int64]:
        """(K, K + 1) counts so far; the last column is "no such label"."""
        return self.pairs.table()

    def update(self, truth: Values, prediction: Values) -> None:
        """Add the pixels of one image or batch."""
        self.pairs.add(truth, prediction)

    def merge(self, other: MeanIoU) -> None:
        """Add another's counts; merging parts equals one pass, exactly."""
        if (other.classes, other.ignore) != (self.classes, self.ignore):
            ours, theirs = (f"{one.classes} classes and ignore {one.ignore}" for one in (self, other))
            raise ValueError(f"other: expected {ours}, got {theirs}")
        self.pairs.merge(other.pairs)

    def compute(self) -> float:
        """The mean IoU so far."""
        return float(mean_iou(class_counts_of_pairs(self.pairs), self.mean_over))


def _parts(counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    exact = np.asarray(counts, np.float64)
    return exact[..., 0, :], exact[..., 1, :], exact[..., 2, :]
