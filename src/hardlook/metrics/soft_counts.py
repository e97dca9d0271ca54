"""Class counts that give part of the credit for a similar label.

Of `c[g, p]` pixels of class g that were called p, the share S[g, p] counts as found for g, and the share 1 - S[g, p]
as missed by g and as falsely claimed by p. The three soft counts a class take the places of pixels hit, true and
predicted in `hardlook.metrics.mean_iou`, and every function there scores them: Open mIoU is the closed formula on
soft counts. With the identity for S they are the closed counts, exactly.

>>> import numpy as np
>>> from hardlook.metrics.mean_iou import class_iou, mean_iou
>>> confusion = np.array([[3, 1, 0], [1, 2, 0], [0, 1, 1]])
>>> soft = soft_counts(confusion, [[1, 0.5, 0.25], [0.5, 1, 0.2], [0.25, 0.2, 1]])
>>> class_iou(soft).round(6)
array([0.777778, 0.581395, 0.6     ])
>>> round(float(mean_iou(soft)), 6)
0.653058
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.array_input import Values, integer_array
from hardlook.metrics.similarity_matrix import checked_similarity


def soft_counts(confusion: Values, similarity: Values) -> NDArray[np.float64]:
    """(..., 3, K) soft pixels found, true pixels, and soft pixels claimed of each class.

    `confusion` is (..., K, K + 1), its last column "no such label", which is missed in full and claimed by nobody;
    or (..., K, K). `similarity` is (K, K). With TP, FP and FN the soft true positives, false positives and false
    negatives: found = TP, true = TP + FN, claimed = TP + FP.

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
    # 1 - S before the product: a class that is claimed only where S = 1 then has exactly no false positives.
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
    # Of nothing at all bincount makes integers, whatever the weights.
    stack = np.stack([found, np.bincount(true, pixels, slots), found + false]).astype(np.float64, copy=False)
    return np.moveaxis(stack.reshape(3, images, classes + 1), 0, 1)[..., :classes]


def _check_range(values: NDArray[np.integer], end: int, name: str) -> None:
    if values.size and not 0 <= values.min() <= values.max() < end:
        raise ValueError(f"{name}: expected numbers from 0 to {end - 1}, got {values.min()}..{values.max()}")
