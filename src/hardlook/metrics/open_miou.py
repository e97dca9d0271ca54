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

Above 4,096 classes scores come from the pairs of labels that were seen, and the similarity is read only for these: a
matrix of any float type, such as a memory map, is not copied, and a function of two arrays of labels takes its place
where none fits into memory.

>>> labels = [f"label {number}" for number in range(22_000)]
>>> metric = OpenMeanIoU(labels, lambda true, called: np.where(true == called, 1, 0.5))
>>> metric.update([[0, 4, 21_999]], [[0, 5, 1]])
>>> metric.compute().open.miou
0.4
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics import mean_iou as closed
from hardlook.metrics.arrays import (
    PairSimilarity,
    Values,
    as_numpy,
    check_choice,
    check_similarity,
    checked_similarity,
    class_mask,
    integer_array,
    look_up_pairs,
    pixel_counts,
    unique_labels,
)
from hardlook.metrics.confusion import Ignored, PairCounts, choose_ignored

# Up to this many classes scores come from matrices, several of them at a time (134 MB each), above it from pairs.
MAX_MATRIX_CLASSES = 4096


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
    """The open scores, and beside them the vanilla ones, where only the right label counts.

    `no_label` is how many of the counted `pixels` were predicted as a number that is not a label: they are wrong,
    whatever their truth. Where there are many, look at the numbering of the predictions.
    """

    open: MiouScores
    vanilla: MiouScores
    no_label: int = 0
    pixels: int = 0


class OpenMeanIoU:
    """Accumulates pixel counts over images: update, merge, compute, reset.

    `labels` are the K names, in the order of the label ids 0..K-1. `similarity` is (K, K), rows true and columns
    predicted labels, or a function of two arrays (n,) of label ids that returns the similarities (n,) of these pairs.
    A matrix that is not symmetric is an error unless `asymmetric` says that it is meant. `ignore_index` is the true
    label of pixels that do not count: by default 255, unless that is a class; None for none. The state is integers, so
    partial results of workers merge exactly: `pairs` are the counts so far.

    >>> metric = OpenMeanIoU(["cat", "dog"], [[1, 0.25], [0.25, 1]])
    >>> metric.update([[0, 1]], [[0, 0]])
    >>> metric.compute().open.per_class.round(3)
    array([0.571, 0.25 ])
    """

    def __init__(
        self,
        labels: Iterable[str],
        similarity: Values | PairSimilarity,
        ignore_index: Ignored = "auto",
        *,
        mean_over: closed.MeanOver = "detectron2",
        seen: ArrayLike | None = None,
        asymmetric: bool = False,
    ) -> None:
        check_choice(mean_over, closed.MeanOver, "mean_over")
        self.labels, self.mean_over = unique_labels(tuple(labels)), mean_over
        self.seen = None if seen is None else class_mask(seen, len(self.labels), "seen")
        self.ignore_index, self.asymmetric = choose_ignored(ignore_index, len(self.labels)), asymmetric
        self.reset()
        if callable(similarity):
            self.similarity: NDArray[np.floating] | PairSimilarity = similarity
        elif not _is_scored_by_pairs(self.pairs):
            self.similarity = checked_similarity(similarity, len(self.labels), symmetric=not asymmetric)
        else:
            self.similarity = as_numpy(similarity)
            check_similarity(self.similarity, len(self.labels), symmetric=not asymmetric)

    def reset(self) -> None:
        """Delete all counts."""
        self.pairs = PairCounts(len(self.labels), self.ignore_index)

    @property
    def confusion(self) -> NDArray[np.int64]:
        """(K, K + 1) counts so far; the last column is "no such label"."""
        return self.pairs.table()

    def update(self, truth: Values, prediction: Values) -> None:
        """Add the pixels of one image or batch: label ids of any integer type, one shape."""
        self.pairs.add(truth, prediction)

    def merge(self, other: OpenMeanIoU) -> None:
        """Add another's counts; merging parts equals one pass, exactly."""
        if other.labels != self.labels:
            raise ValueError(f"other: expected the same {len(self.labels)} labels, got {len(other.labels)} others")
        if other.ignore_index != self.ignore_index:
            raise ValueError(f"other: expected ignore_index {self.ignore_index}, got {other.ignore_index}")
        self.pairs.merge(other.pairs)

    def compute(self) -> OpenMiouResult:
        """The scores so far."""
        return open_miou(
            self.pairs, self.similarity, mean_over=self.mean_over, seen=self.seen, asymmetric=self.asymmetric
        )


def open_miou(
    confusion: Values | PairCounts,
    similarity: Values | PairSimilarity,
    *,
    mean_over: closed.MeanOver = "detectron2",
    seen: ArrayLike | None = None,
    asymmetric: bool = False,
) -> OpenMiouResult:
    """Open and vanilla mIoU, frequency weighted IoU, mean class accuracy and pixel accuracy.

    `confusion` is (K, K + 1) pixel counts, true by predicted, the last column "no such label"; or (K, K); or the pairs
    seen. `similarity` is (K, K), 0..1, ones on the diagonal, symmetric unless `asymmetric` says that it is meant not to
    be; or, with the pairs seen, a function of two arrays of labels. `seen` is a (K,) mask of the classes seen in
    training. A class that is only predicted, and only where the truth has similarity 1 to it, is left out of the open
    mean.

    >>> result = open_miou([[3, 1], [1, 2]], [[1, 0.5], [0.5, 1]], seen=[True, False])
    >>> result.open.per_class.round(3), round(result.open.seen, 3)
    (array([0.778, 0.714]), 0.778)
    """
    if isinstance(confusion, PairCounts) and (callable(similarity) or _is_scored_by_pairs(confusion)):
        soft, hard = soft_counts_of_pairs(confusion, similarity), closed.class_counts_of_pairs(confusion)
    else:
        counts = confusion.table() if isinstance(confusion, PairCounts) else pixel_counts(confusion, "confusion")
        if counts.ndim != 2:
            raise ValueError(f"confusion: expected shape (K, K + 1) or (K, K), got {counts.shape}")
        if callable(similarity):
            raise ValueError("similarity: expected a matrix beside a matrix of counts, got a function")
        shared = checked_similarity(similarity, len(counts), symmetric=not asymmetric)
        soft, hard = soft_counts(counts, shared), closed.class_counts(counts.astype(np.int64))
    pixels = int(hard[1].sum())
    return OpenMiouResult(
        open=miou_scores(soft, mean_over=mean_over, seen=seen),
        vanilla=miou_scores(hard, mean_over=mean_over, seen=seen),
        no_label=pixels - int(hard[2].sum()),
        pixels=pixels,
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
        mask = class_mask(seen, counts.shape[-1], "seen")
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


def soft_counts(confusion: Values | PairCounts, similarity: Values | PairSimilarity) -> NDArray[np.float64]:
    """(..., 3, K) soft pixels found, true pixels, and soft pixels predicted of each class.

    `confusion` is (..., K, K + 1), its last column "no such label", which is a full miss and a false positive of no
    class; or (..., K, K); or the pairs seen. `similarity` is (K, K) or, with the pairs seen, a function of two arrays
    of labels. With TP, FP and FN the soft true positives, false positives and false negatives: found = TP, true = TP +
    FN, predicted = TP + FP.

    >>> soft_counts(np.array([[2, 2, 1], [0, 1, 0]]), [[1, 0.5], [0.5, 1]])
    array([[3., 1.],
           [5., 1.],
           [3., 2.]])
    """
    if isinstance(confusion, PairCounts):
        if callable(similarity) or _is_scored_by_pairs(confusion):
            return soft_counts_of_pairs(confusion, similarity)
        confusion = confusion.table()
    if callable(similarity):
        raise ValueError("similarity: expected a matrix beside a matrix of counts, got a function")
    counts = pixel_counts(confusion, "confusion")
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
    similarity: Values | PairSimilarity,
    *,
    images: int,
    classes: int | None = None,
) -> NDArray[np.float64]:
    """(images, 3, K) soft counts of every image, from the cells of their confusion counts that are not zero.

    `image` (n,) is 0..images-1, `cell` (n,) is true * (K + 1) + predicted, `pixels` (n,) the count. Sums over images
    are the soft counts of the whole, so the result is what a bootstrap over images resamples. `similarity` is (K, K),
    or a function of two arrays of labels, with K in `classes`.

    >>> soft_counts_by_image([0, 0, 1], [0, 1, 4], [5, 2, 3], [[1, 0.5], [0.5, 1]], images=2).tolist()
    [[[6.0, 0.0], [7.0, 0.0], [6.0, 1.0]], [[0.0, 3.0], [0.0, 3.0], [0.0, 3.0]]]
    """
    shared: Values | PairSimilarity = similarity
    if callable(similarity):
        if classes is None:
            raise ValueError("classes: expected their number beside a similarity that is a function, got None")
    else:
        shared = checked_similarity(similarity, len(as_numpy(similarity)))
        classes = len(shared)
    image, cell = integer_array(image, "image"), integer_array(cell, "cell")
    pixels = pixel_counts(pixels, "pixels")
    _check_range(image, images, "image")
    _check_range(cell, classes * (classes + 1), "cell")
    true = cell // (classes + 1)
    called = cell - true * (classes + 1)
    share = look_up_pairs(shared, true, called, classes)
    return _sum_shares(image, true, called, pixels, share, (images, classes))


def _is_scored_by_pairs(pairs: PairCounts) -> bool:
    return not pairs.is_table or pairs.classes > MAX_MATRIX_CLASSES


def soft_counts_of_pairs(pairs: PairCounts, similarity: Values | PairSimilarity) -> NDArray[np.float64]:
    """(3, K) soft counts as those of `soft_counts`, from the pairs seen; the similarity is read only for these.

    >>> pairs = PairCounts(2)
    >>> pairs.add([0, 0, 0, 0, 0, 1], [0, 0, 1, 1, -1, 1])
    >>> soft_counts_of_pairs(pairs, lambda true, called: np.where(true == called, 1, 0.5)).tolist()
    [[3.0, 1.0], [5.0, 1.0], [3.0, 2.0]]
    """
    true, called, pixels = pairs.pairs()
    share = look_up_pairs(similarity, true, called, pairs.classes)
    image = np.zeros(len(true), np.int64)
    return np.asarray(_sum_shares(image, true, called, pixels, share, (1, pairs.classes))[0])


def _sum_shares(
    image: NDArray[np.integer],
    true: NDArray[np.integer],
    called: NDArray[np.integer],
    pixels: NDArray[np.integer],
    share: NDArray[np.float64],
    shape: tuple[int, int],
) -> NDArray[np.float64]:
    """(images, 3, K) soft counts; `shape` is (images, K)."""
    images, classes = shape
    slot = image.astype(np.int64) * (classes + 1)
    slots = images * (classes + 1)
    found = np.bincount(slot + true, share * pixels, slots)
    false = np.bincount(slot + called, (1 - share) * pixels, slots)
    # For empty input bincount returns integers, whatever the weights.
    stack = np.stack([found, np.bincount(slot + true, pixels, slots), found + false]).astype(np.float64, copy=False)
    return np.moveaxis(stack.reshape(3, images, classes + 1), 0, 1)[..., :classes]


def _check_range(values: NDArray[np.integer], end: int, name: str) -> None:
    if values.size and not 0 <= values.min() <= values.max() < end:
        raise ValueError(f"{name}: expected numbers from 0 to {end - 1}, got {values.min()}..{values.max()}")
