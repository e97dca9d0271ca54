"""SCS, the support cognizance score: how far the prediction follows the support.

From "What Ails One-Shot Image Segmentation: A Data Perspective" (NeurIPS 2022 D&B). A good score needs high IoU
where the support shows the query's class (L0 identical, L1 transformed, L2 similar, L3 dissimilar) and low IoU where
it does not (L4 other class, L5 null mask, L6 empty image). Two readings:

- `paper`: per class (4 L0 + 2 L1 + 2 L2 + L3 + (1 - L4) + (1 - L5) + (1 - L6)) / 12.
- `released`: four groups of pairs with weights 4 (L0), 3 (L1), 1 (L2 and L3) and 1 (L4 to L6 pooled, inverted) over 9.

A class that lacks a level has no score (NaN) and leaves the mean over classes: its weights are not shared out anew.
Who reports the mean counts such classes.

>>> round(float(scs_paper([[0.8, 0.7, 0.6, 0.5, 0.4, 0.2, 0.3]])), 4)
0.7
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.one_shot_scores import class_iou, mean_of_defined

LEVELS = ("L0", "L1", "L2", "L3", "L4", "L5", "L6")
POOLED_LEVELS = ("L0", "L1", "L2+L3", "L4", "L5", "L6")
RELEASED_GROUPS = (("L0",), ("L1",), ("L2", "L3"), ("L4", "L5", "L6"))
# Negative weights invert: w (1 - IoU) = w - w IoU.
PAPER_WEIGHTS = {
    7: np.array([4.0, 2.0, 2.0, 1.0, -1.0, -1.0, -1.0]),
    6: np.array([4.0, 2.0, 3.0, -1.0, -1.0, -1.0]),
}
RELEASED_WEIGHTS = np.array([4.0, 3.0, 1.0, -1.0])


def class_scs_paper(levels: ArrayLike) -> NDArray[np.float64]:
    """Score of each class, in [0, 1], from the IoU of its levels.

    `levels` has shape (..., 7) in the order of `LEVELS`, or (..., 6) in that of `POOLED_LEVELS`, where one IoU
    serves L2 and L3 with weight 3. The result has shape (...), NaN where a level is NaN.

    >>> float(class_scs_paper([1, 1, 1, 0, 0, 0]))
    1.0
    """
    array = np.asarray(levels, np.float64)
    weights = PAPER_WEIGHTS.get(array.shape[-1]) if array.ndim else None
    if weights is None:
        raise ValueError(f"levels: expected shape (..., 7) or (..., 6) with L2+L3 pooled, got {array.shape}")
    return _weighted(array, weights)


def scs_paper(levels: ArrayLike) -> NDArray[np.float64]:
    """SCS (...) from levels (..., classes, 7) or (..., classes, 6): the mean over the classes that have a score.

    >>> perfect, incomplete = [1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0, np.nan]
    >>> float(scs_paper([perfect, incomplete]))
    1.0
    """
    return mean_of_defined(class_scs_paper(levels))


def class_scs_released(intersections: ArrayLike, unions: ArrayLike) -> NDArray[np.float64]:
    """Score of each class, in [0, 1], from counts (..., 4) pooled in the order of `RELEASED_GROUPS`.

    >>> round(float(class_scs_released([80, 70, 110, 90], [100, 100, 200, 300])), 6)
    0.727778
    """
    groups = class_iou(intersections, unions)
    if groups.shape[-1:] != (len(RELEASED_GROUPS),):
        raise ValueError(f"groups: expected shape (..., 4) for {RELEASED_GROUPS}, got {groups.shape}")
    return _weighted(groups, RELEASED_WEIGHTS)


def scs_released(intersections: ArrayLike, unions: ArrayLike) -> NDArray[np.float64]:
    """SCS (...) from counts (..., classes, 4): the mean over the classes that have a score.

    >>> first, second = ([80, 70, 110, 90], [100, 100, 200, 300]), ([90, 60, 100, 60], [100, 100, 200, 300])
    >>> round(float(scs_released([first[0], second[0]], [first[1], second[1]])), 6)
    0.736111
    """
    return mean_of_defined(class_scs_released(intersections, unions))


def _weighted(ious: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    inverted = np.where(weights < 0, 1 - ious, ious)
    return np.asarray((inverted * np.abs(weights)).sum(-1) / np.abs(weights).sum())
