"""Confusion of labels: pixel counts of (true, predicted) pairs, and which confusions cost the most.

>>> import numpy as np
>>> confusion_counts(np.array([0, 0, 1, 255]), np.array([0, 1, -1, 0]), classes=2, ignore=255)
array([[1, 1, 0],
       [0, 0, 1]])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.arrays import Values, checked_similarity, integer_array
from hardlook.metrics.kernels import load_kernels


def confusion_counts(truth: Values, prediction: Values, *, classes: int, ignore: int | None = 255) -> NDArray[np.int64]:
    """(classes, classes + 1) counts of (true, predicted) pairs; the last column is "no such label".

    `truth` and `prediction` are arrays or tensors of one shape and any integer types. `truth` holds 0..classes-1 or
    `ignore`, which drops the pixel; any prediction outside 0..classes-1 falls into the last column. A truth outside
    its range is an error: it would vanish from every score.

    >>> confusion_counts([[0, 1]], [[1, 1]], classes=2).tolist()
    [[0, 1, 0], [0, 1, 0]]
    """
    true_labels, predicted = integer_array(truth, "truth"), integer_array(prediction, "prediction")
    if true_labels.shape != predicted.shape:
        raise ValueError(f"truth has shape {true_labels.shape}, prediction {predicted.shape}")
    kernels = load_kernels("confusion")
    count = kernels.count_pairs if kernels else count_pairs_numpy
    counts: NDArray[np.int64] = count(true_labels, predicted, classes, ignore)
    if counts[classes + 1].any():
        kept = true_labels if ignore is None else true_labels[true_labels != ignore]
        wrong = int(kept[(kept < 0) | (kept >= classes)].flat[0])
        raise ValueError(f"truth holds label {wrong}, outside 0..{classes - 1} and not ignored")
    return counts[:classes]


def count_pairs_numpy(
    truth: NDArray[np.integer], prediction: NDArray[np.integer], classes: int, ignore: int | None
) -> NDArray[np.int64]:
    """(classes + 2, classes + 1) counts by numpy alone, used where numba is not installed and to test the kernel.

    Rows are the true classes, then ignored, then any other truth; the last column is "no such label".

    >>> count_pairs_numpy(np.array([0, 0, 9]), np.array([0, 5, 0]), 1, 9).tolist()
    [[1, 1], [1, 0], [0, 0]]
    """
    rows, columns = truth.astype(np.int64), prediction.astype(np.int64)
    ignored = np.zeros(rows.shape, np.bool_) if ignore is None else rows == ignore
    rows[(rows < 0) | (rows >= classes)] = classes + 1
    rows[ignored] = classes
    columns[(columns < 0) | (columns >= classes)] = classes
    flat = np.bincount((rows * (classes + 1) + columns).ravel(), minlength=(classes + 2) * (classes + 1))
    return flat.reshape(classes + 2, classes + 1)


@dataclass(frozen=True)
class ConfusionCosts:
    """One entry per confused pair, highest cost first: class `true` predicted as `called`, K for "no such label".

    `hard` counts the confused pixels, `soft` the share 1 - S of them.
    """

    true: NDArray[np.int64]
    called: NDArray[np.int64]
    hard: NDArray[np.int64]
    soft: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.true)


def confusion_costs(
    confusion: Values, similarity: Values, *, by: Literal["soft", "hard"] = "soft", most: int | None = None
) -> ConfusionCosts:
    """The confusions of a (K, K + 1) or (K, K) confusion matrix, highest cost first; at most `most` of them.

    Pairs without a pixel are left out. Equal costs are ordered by the other cost, then by label.

    >>> costs = confusion_costs([[9, 4, 0], [3, 9, 1]], [[1, 0.75], [0.75, 1]])
    >>> list(zip(costs.true.tolist(), costs.called.tolist(), costs.hard.tolist(), costs.soft.tolist()))
    [(0, 1, 4, 1.0), (1, 2, 1, 1.0), (1, 0, 3, 0.75)]
    """
    counts = integer_array(confusion, "confusion").astype(np.int64)
    classes = len(counts)
    if counts.shape not in ((classes, classes), (classes, classes + 1)):
        raise ValueError(f"confusion: expected shape (K, K + 1) or (K, K), got {counts.shape}")
    unlike = np.ones(counts.shape)
    unlike[:, :classes] -= checked_similarity(similarity, classes)
    true, called = np.nonzero(np.where(np.eye(*counts.shape, dtype=bool), 0, counts))
    hard = counts[true, called]
    soft = hard * unlike[true, called]
    first, second = (soft, hard) if by == "soft" else (hard, soft)
    order = np.lexsort((called, true, -second, -first))[:most]
    return ConfusionCosts(true[order], called[order], hard[order], soft[order])
