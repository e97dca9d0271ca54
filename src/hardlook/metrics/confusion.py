"""Which label was given where another was true: pixel counts.

>>> import numpy as np
>>> confusion_counts(np.array([0, 0, 1, 255]), np.array([0, 1, -1, 0]), classes=2, ignore=255)
array([[1, 1, 0],
       [0, 0, 1]])
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.array_input import Values, integer_array

CountPairs = Callable[[NDArray[np.integer], NDArray[np.integer], int, int | None], NDArray[np.int64]]


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
    counts = _fastest_count()(true_labels, predicted, classes, ignore)
    if counts[classes + 1].any():
        kept = true_labels if ignore is None else true_labels[true_labels != ignore]
        wrong = int(kept[(kept < 0) | (kept >= classes)].flat[0])
        raise ValueError(f"truth holds label {wrong}, outside 0..{classes - 1} and not ignored")
    return counts[:classes]


def count_pairs_plainly(
    truth: NDArray[np.integer], prediction: NDArray[np.integer], classes: int, ignore: int | None
) -> NDArray[np.int64]:
    """(classes + 2, classes + 1) counts by numpy alone, for where numba is absent, and to check its kernel by.

    Rows are the true classes, then ignored, then any other truth; the last column is "no such label".

    >>> count_pairs_plainly(np.array([0, 0, 9]), np.array([0, 5, 0]), 1, 9).tolist()
    [[1, 1], [1, 0], [0, 0]]
    """
    rows, columns = truth.astype(np.int64), prediction.astype(np.int64)
    ignored = np.zeros(rows.shape, np.bool_) if ignore is None else rows == ignore
    rows[(rows < 0) | (rows >= classes)] = classes + 1
    rows[ignored] = classes
    columns[(columns < 0) | (columns >= classes)] = classes
    flat = np.bincount((rows * (classes + 1) + columns).ravel(), minlength=(classes + 2) * (classes + 1))
    return flat.reshape(classes + 2, classes + 1)


@cache
def _fastest_count() -> CountPairs:
    try:
        from hardlook.metrics.confusion_kernel import count_pairs
    except ImportError:
        return count_pairs_plainly
    return count_pairs
