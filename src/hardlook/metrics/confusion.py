"""Which label was given where another was true: pixel counts.

>>> import numpy as np
>>> confusion_counts(np.array([0, 0, 1, 255]), np.array([0, 1, -1, 0]), classes=2, ignore=255)
array([[1, 1, 0],
       [0, 0, 1]])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def confusion_counts(
    truth: NDArray[np.integer], prediction: NDArray[np.integer], *, classes: int, ignore: int | None = 255
) -> NDArray[np.int64]:
    """(classes, classes + 1) counts of (true, predicted) pairs; the last column is "no such label".

    `truth` holds 0..classes-1 or `ignore`, which drops the pixel; any prediction outside 0..classes-1 falls into
    the last column. A truth outside its range is an error: it would vanish from every score.
    """
    if truth.shape != prediction.shape:
        raise ValueError(f"truth has shape {truth.shape}, prediction {prediction.shape}")
    true_labels = np.ravel(truth).astype(np.int64)
    predicted = np.ravel(prediction).astype(np.int64)
    if ignore is not None:
        kept = true_labels != ignore
        true_labels, predicted = true_labels[kept], predicted[kept]
    wrong = true_labels[(true_labels < 0) | (true_labels >= classes)]
    if wrong.size:
        raise ValueError(f"truth holds label {int(wrong[0])}, outside 0..{classes - 1} and not ignored")
    predicted = np.where((predicted < 0) | (predicted >= classes), classes, predicted)
    flat = np.bincount(true_labels * (classes + 1) + predicted, minlength=classes * (classes + 1))
    return flat.reshape(classes, classes + 1)
