"""Scores of one-shot segmentation from pixel counts: class IoU, LCA, HCA, GS, FB-IoU and SCS.

From "What Ails One-Shot Image Segmentation: A Data Perspective" (NeurIPS 2022 D&B). Counts are sums over pairs, so
everything here works on totals with any leading axes, such as resamples.

Missing values: a class without pixels has IoU NaN and is left out of the mean over classes. A split without any class
is NaN, and so are the LCA and HCA of its fold: weights are not redistributed. LCA and HCA of several folds are the
`mean_of_defined` of theirs. GS needs the models of all folds and is NaN when one has no score.

>>> lca, hca = lca_hca({"easy_sal": 0.5, "easy_nsal": 0.35, "hard_sal": 0.38, "hard_nsal": 0.13})
>>> round(float(lca), 4), round(float(hca), 4)
(0.4225, 0.2375)

SCS, the support cognizance score, says how far the prediction follows the support. A good score needs high IoU where
the support shows the query's class (L0 identical, L1 transformed, L2 similar, L3 dissimilar) and low IoU where it does
not (L4 other class, L5 null mask, L6 empty image). A class that lacks a level has no score (NaN). Two readings:

- `paper`: per class (4 L0 + 2 L1 + 2 L2 + L3 + (1 - L4) + (1 - L5) + (1 - L6)) / 12.
- `released`: four groups of pairs with weights 4 (L0), 3 (L1), 1 (L2 and L3) and 1 (L4 to L6 pooled, inverted) over 9.

>>> round(float(scs_paper([[0.8, 0.7, 0.6, 0.5, 0.4, 0.2, 0.3]])), 4)
0.7
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.arrays import divide

SPLITS = ("easy_sal", "easy_nsal", "hard_sal", "hard_nsal")
# The supplement prints .25 as the last weight; only .5 reproduces its own table.
LOW_COMPLEXITY_WEIGHTS = (3.0, 0.75, 0.75, 0.5)
HIGH_COMPLEXITY_WEIGHTS = LOW_COMPLEXITY_WEIGHTS[::-1]
LEVELS = ("L0", "L1", "L2", "L3", "L4", "L5", "L6")
POOLED_LEVELS = ("L0", "L1", "L2+L3", "L4", "L5", "L6")
RELEASED_GROUPS = (("L0",), ("L1",), ("L2", "L3"), ("L4", "L5", "L6"))

# Negative weights invert: w (1 - IoU) = w - w IoU.
PAPER_WEIGHTS = {
    7: np.array([4.0, 2.0, 2.0, 1.0, -1.0, -1.0, -1.0]),
    6: np.array([4.0, 2.0, 3.0, -1.0, -1.0, -1.0]),
}
RELEASED_WEIGHTS = np.array([4.0, 3.0, 1.0, -1.0])


def class_iou(intersection: ArrayLike, union: ArrayLike) -> NDArray[np.float64]:
    """IoU of each class: summed intersections over summed unions, in [0, 1]; NaN where the union is 0.

    Both have one shape (...), such as (resamples, classes).

    >>> class_iou([3, 0], [4, 0])
    array([0.75,  nan])
    """
    above, below = np.asarray(intersection, np.float64), np.asarray(union, np.float64)
    if above.shape != below.shape:
        raise ValueError(f"class_iou: expected counts of one shape, got {above.shape} and {below.shape}")
    return divide(above, below)


def mean_of_defined(values: ArrayLike, axis: int = -1) -> NDArray[np.float64]:
    """Mean along `axis` of the values that are not NaN; NaN where there are none.

    mIoU is this over the classes of `class_iou`.

    >>> mean_of_defined([[0.5, np.nan, 0.7], [np.nan, np.nan, np.nan]])
    array([0.6, nan])
    """
    array = np.asarray(values, np.float64)
    defined = ~np.isnan(array)
    return divide(np.where(defined, array, 0.0).sum(axis=axis), defined.sum(axis=axis))


def lca_hca(split_mious: Mapping[str, ArrayLike] | ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Low- and high-complexity accuracy: weighted means of the mIoU of the four tier-1 splits, in [0, 1].

    `split_mious` maps each name of `SPLITS` to values (...), or is an array (..., 4) in that order. Each result has
    shape (...). The score of several folds is the mean of theirs.

    >>> [float(score) for score in lca_hca([1.0, 0.0, 0.0, 0.0])]
    [0.6, 0.1]
    """
    if isinstance(split_mious, Mapping):
        missing = [name for name in SPLITS if name not in split_mious]
        if missing:
            raise ValueError(f"split_mious: expected {', '.join(SPLITS)}, missing {', '.join(missing)}")
        values = np.stack(np.broadcast_arrays(*(np.asarray(split_mious[name], float) for name in SPLITS)), axis=-1)
    else:
        values = np.asarray(split_mious, np.float64)
        if values.shape[-1:] != (len(SPLITS),):
            raise ValueError(f"split_mious: expected shape (..., 4) in the order {SPLITS}, got {values.shape}")
    low, high = np.asarray(LOW_COMPLEXITY_WEIGHTS), np.asarray(HIGH_COMPLEXITY_WEIGHTS)
    return np.asarray((values * low).sum(-1) / low.sum()), np.asarray((values * high).sum(-1) / high.sum())


def generalization_score(ious: ArrayLike) -> NDArray[np.float64]:
    """GS: the mean over folds' models of their mean class IoU on tier 3, in [0, 1].

    `ious` has shape (..., folds, classes), each the pooled IoU of a class under the model of a fold.

    >>> float(generalization_score([[0.8, 0.6], [0.9, np.nan]]))
    0.8
    """
    array = np.asarray(ious, np.float64)
    if array.ndim < 2:
        raise ValueError(f"generalization_score: expected shape (..., folds, classes), got {array.shape}")
    return np.asarray(mean_of_defined(array).mean(axis=-1))


def fb_iou(intersection: ArrayLike, union: ArrayLike, pixels: ArrayLike) -> NDArray[np.float64]:
    """Foreground-background IoU: the mean of both, each pooled over all pairs and classes, in [0, 1].

    All have one shape (...): sums over pairs of the foreground's intersection and union and of the pixels scored.
    NaN where the foreground or the background has no pixel.

    >>> float(fb_iou(intersection=2, union=4, pixels=10))
    0.625
    """
    hits, either, every = (np.asarray(counts, np.float64) for counts in (intersection, union, pixels))
    return (class_iou(hits, either) + class_iou(every - either, every - hits)) / 2


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
    return _weight_ious(array, weights)


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
    return _weight_ious(groups, RELEASED_WEIGHTS)


def scs_released(intersections: ArrayLike, unions: ArrayLike) -> NDArray[np.float64]:
    """SCS (...) from counts (..., classes, 4): the mean over the classes that have a score.

    >>> first, second = ([80, 70, 110, 90], [100, 100, 200, 300]), ([90, 60, 100, 60], [100, 100, 200, 300])
    >>> round(float(scs_released([first[0], second[0]], [first[1], second[1]])), 6)
    0.736111
    """
    return mean_of_defined(class_scs_released(intersections, unions))


def _weight_ious(ious: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    inverted = np.where(weights < 0, 1 - ious, ious)
    return np.asarray((inverted * np.abs(weights)).sum(-1) / np.abs(weights).sum())
