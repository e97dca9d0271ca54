"""Open mIoU: intersection over union where a similar label is partly right.

After "Rethinking Evaluation Metrics of Open-Vocabulary Segmentation" (2023). The state is the integer confusion
matrix, so one pass over the images is scored under any number of similarity matrices.

>>> metric = OpenMeanIoU(["cat", "dog", "sky"], [[1, 0.5, 0.25], [0.5, 1, 0.2], [0.25, 0.2, 1]])
>>> metric.update([0, 0, 0, 0, 1, 1, 1, 2, 2, 255], [0, 0, 0, 1, 1, 1, 0, 2, 1, 0])
>>> result = metric.compute()
>>> round(result.open.miou, 6), result.vanilla.miou
(0.653058, 0.5)

Of `c[g, p]` pixels of class g that were predicted as p, the share S[g, p] counts as found for g, and the share
1 - S[g, p] as missed by g and as a false positive of p. These three soft counts per class take the places of pixels
hit, true and predicted in `hardlook.metrics.mean_iou`: Open mIoU is the closed formula on soft counts. With the
identity for S they are the closed counts, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics import mean_iou as closed
from hardlook.metrics.arrays import Values, checked_similarity, integer_array
from hardlook.metrics.confusion import confusion_counts


@dataclass(frozen=True)
class MiouScores:
    """Scores from 0 to 1, NaN where undefined; `per_class` is the (K,) IoU of each class.

    `seen`, `unseen` and their harmonic mean are NaN where no class was declared seen.
    """

    miou: float
    fwiou: float
    macc: float
    pacc: float
    seen: float
    unseen: float
    harmonic: float
    per_class: NDArray[np.float64]


@dataclass(frozen=True)
class OpenMiouResult:
    """The open scores, and beside them the vanilla ones, where only the right label counts."""

    open: MiouScores
    vanilla: MiouScores


class OpenMeanIoU:
    """Accumulates pixel counts over images: update, merge, compute, reset.

    `labels` are the K names, in the order of the label ids 0..K-1. The state is integers, so partial results of
    workers merge exactly.

    >>> metric = OpenMeanIoU(["cat", "dog"], [[1, 0.25], [0.25, 1]])
    >>> metric.update([[0, 1]], [[0, 0]])
    >>> metric.compute().open.per_class.round(3)
    array([0.571, 0.25 ])
    """

    def __init__(
        self,
        labels: Sequence[str],
        similarity: Values,
        ignore_index: int | None = 255,
        *,
        mean_over: closed.MeanOver = "detectron2",
        seen: ArrayLike | None = None,
    ) -> None:
        self.labels, self.ignore_index, self.mean_over, self.seen = tuple(labels), ignore_index, mean_over, seen
        self.similarity = checked_similarity(similarity, len(self.labels))
        self.reset()

    def reset(self) -> None:
        """Delete all counts."""
        self.confusion = np.zeros((len(self.labels), len(self.labels) + 1), np.int64)

    def update(self, truth: Values, prediction: Values) -> None:
        """Add the pixels of one image or batch: label ids of any integer type, one shape."""
        classes = len(self.labels)
        self.confusion += confusion_counts(truth, prediction, classes=classes, ignore=self.ignore_index)

    def merge(self, other: OpenMeanIoU) -> None:
        """Add another's counts; merging parts equals one pass, exactly."""
        if other.labels != self.labels:
            raise ValueError(f"other: expected the same {len(self.labels)} labels, got {len(other.labels)} others")
        if other.ignore_index != self.ignore_index:
            raise ValueError(f"other: expected ignore_index {self.ignore_index}, got {other.ignore_index}")
        self.confusion += other.confusion

    def compute(self) -> OpenMiouResult:
        """The scores so far."""
        return open_miou(self.confusion, self.similarity, mean_over=self.mean_over, seen=self.seen)


def open_miou(
    confusion: Values,
    similarity: Values,
    *,
    mean_over: closed.MeanOver = "detectron2",
    seen: ArrayLike | None = None,
) -> OpenMiouResult:
    """Open and vanilla mIoU, frequency weighted IoU, mean class accuracy and pixel accuracy.

    `confusion` is (K, K + 1) pixel counts, true by predicted, the last column "no such label"; or (K, K).
    `similarity` is (K, K), 0..1, ones on the diagonal. `seen` is a (K,) mask of the classes seen in training. A class
    that is only predicted, and only where the truth has similarity 1 to it, is left out of the open mean.

    >>> result = open_miou([[3, 1], [1, 2]], [[1, 0.5], [0.5, 1]], seen=[True, False])
    >>> result.open.per_class.round(3), round(result.open.seen, 3)
    (array([0.778, 0.714]), 0.778)
    """
    counts = integer_array(confusion, "confusion")
    if counts.ndim != 2:
        raise ValueError(f"confusion: expected shape (K, K + 1) or (K, K), got {counts.shape}")
    return OpenMiouResult(
        open=miou_scores(soft_counts(counts, similarity), mean_over=mean_over, seen=seen),
        vanilla=miou_scores(closed.class_counts(counts.astype(np.int64)), mean_over=mean_over, seen=seen),
    )


def miou_scores(
    counts: closed.Counts, *, mean_over: closed.MeanOver = "detectron2", seen: ArrayLike | None = None
) -> MiouScores:
    """All scores of one set of (3, K) counts, soft or hard.

    >>> miou_scores(np.array([[3, 2], [4, 3], [4, 3]])).miou
    0.55
    """
    known = unknown = np.nan
    if seen is not None:
        mask = np.asarray(seen, np.bool_)
        if mask.shape != counts.shape[-1:]:
            raise ValueError(f"seen: expected shape {counts.shape[-1:]}, got {mask.shape}")
        known = float(closed.mean_iou(counts[..., mask], mean_over))
        unknown = float(closed.mean_iou(counts[..., ~mask], mean_over))
    return MiouScores(
        miou=float(closed.mean_iou(counts, mean_over)),
        fwiou=float(closed.frequency_weighted_iou(counts)),
        macc=float(closed.mean_class_accuracy(counts)),
        pacc=float(closed.pixel_accuracy(counts)),
        seen=known,
        unseen=unknown,
        harmonic=float(harmonic_mean(known, unknown)),
        per_class=closed.class_iou(counts),
    )


def harmonic_mean(one: ArrayLike, other: ArrayLike) -> NDArray[np.float64]:
    """2ab / (a + b), 0 where both are 0.

    >>> float(harmonic_mean(0.5, 1.0).round(3))
    0.667
    """
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return np.asarray(2 * a * b / np.where(a + b == 0, 1, a + b))


def soft_counts(confusion: Values, similarity: Values) -> NDArray[np.float64]:
    """(..., 3, K) soft pixels found, true pixels, and soft pixels predicted of each class.

    `confusion` is (..., K, K + 1), its last column "no such label", which is a full miss and a false positive
    of no class; or (..., K, K). `similarity` is (K, K). With TP, FP and FN the soft true positives, false positives and
    false negatives: found = TP, true = TP + FN, predicted = TP + FP.

    >>> soft_counts(np.array([[2, 2, 1], [0, 1, 0]]), [[1, 0.5], [0.5, 1]])
    array([[3., 1.],
           [5., 1.],
           [3., 2.]])
    """
    counts = integer_array(confusion, "confusion")
    if counts.ndim < 2 or counts.shape[-1] - counts.shape[-2] not in (0, 1):
        raise ValueError(f"confusion: expected shape (..., K, K + 1) or (..., K, K), got {counts.shape}")
    classes = counts.shape[-2]
    shared = checked_similarity(similarity, classes)
    square = counts[..., :classes]
    found = (square * shared).sum(-1)
    # 1 - S before the product: a class that is predicted only where S = 1 then has exactly no false positives.
    false = (square * (1 - shared)).sum(-2)
    return np.stack([found, counts.sum(-1).astype(np.float64), found + false], axis=-2)


def soft_counts_by_image(
    image: NDArray[np.integer],
    cell: NDArray[np.integer],
    pixels: NDArray[np.integer],
    similarity: Values,
    *,
    images: int,
) -> NDArray[np.float64]:
    """(images, 3, K) soft counts of every image, from the cells of their confusion counts that are not zero.

    `image` (n,) is 0..images-1, `cell` (n,) is true * (K + 1) + predicted, `pixels` (n,) the count. Sums over images
    are the soft counts of the whole, so the result is what a bootstrap over images resamples.

    >>> soft_counts_by_image([0, 0, 1], [0, 1, 4], [5, 2, 3], [[1, 0.5], [0.5, 1]], images=2).tolist()
    [[[6.0, 0.0], [7.0, 0.0], [6.0, 1.0]], [[0.0, 3.0], [0.0, 3.0], [0.0, 3.0]]]
    """
    classes = len(np.asarray(similarity))
    shared = np.zeros((classes, classes + 1))
    shared[:, :classes] = checked_similarity(similarity, classes)
    image, cell, pixels = (integer_array(x, n) for x, n in ((image, "image"), (cell, "cell"), (pixels, "pixels")))
    _check_range(image, images, "image")
    _check_range(cell, classes * (classes + 1), "cell")
    share = shared.ravel()[cell]
    # Looking both labels up is faster than dividing a million times.
    labels = np.arange(classes * (classes + 1))
    slot = image.astype(np.int64) * (classes + 1)
    true, claimed = slot + (labels // (classes + 1))[cell], slot + (labels % (classes + 1))[cell]
    slots = images * (classes + 1)
    found = np.bincount(true, share * pixels, slots)
    false = np.bincount(claimed, (1 - share) * pixels, slots)
    # For empty input bincount returns integers, whatever the weights.
    stack = np.stack([found, np.bincount(true, pixels, slots), found + false]).astype(np.float64, copy=False)
    return np.moveaxis(stack.reshape(3, images, classes + 1), 0, 1)[..., :classes]


def _check_range(values: NDArray[np.integer], end: int, name: str) -> None:
    if values.size and not 0 <= values.min() <= values.max() < end:
        raise ValueError(f"{name}: expected numbers from 0 to {end - 1}, got {values.min()}..{values.max()}")
