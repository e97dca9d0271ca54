"""Means over classes and folds, from cell totals: the mIoU of a selection, and what papers print beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.one_shot_pairs.cells import (
    INTERSECTION,
    PAIR_IOU,
    PAIRS,
    PIXELS,
    UNION,
    Cells,
    Chosen,
    Totals,
)
from hardlook.metrics.one_shot_scores import class_iou, fb_iou, mean_of_defined

Values = NDArray[np.float64]


def class_ious(cells: Cells, totals: Totals, chosen: Chosen) -> tuple[list[str], Values]:
    """The classes of the chosen cells, and their IoU (m, classes): sums of intersections over sums of unions."""
    names = cells.values_of("class", chosen)
    pooled = np.stack([totals[:, chosen & cells.where(**{"class": name})].sum(1) for name in names], axis=1)
    return names, class_iou(pooled[..., INTERSECTION], pooled[..., UNION])


def mean_iou(cells: Cells, totals: Totals, chosen: Chosen) -> Values:
    """(m,): mean over classes in each fold, then over folds; NaN where nothing is chosen."""
    if not chosen.any():
        return np.full(len(totals), np.nan)
    folds = [class_ious(cells, totals, chosen & cells.where(fold=fold))[1] for fold in _folds(cells, chosen)]
    return mean_of([mean_of(np.moveaxis(fold, -1, 0)) for fold in folds])


def foreground_background_iou(cells: Cells, totals: Totals, chosen: Chosen) -> Values:
    """(m,): mean of the IoU of object and of background, all classes of a fold pooled, then over folds."""
    folds = []
    for fold in _folds(cells, chosen):
        pooled = totals[:, chosen & cells.where(fold=fold)].sum(1)
        folds.append(fb_iou(pooled[:, INTERSECTION], pooled[:, UNION], pooled[:, PIXELS]))
    return mean_of(folds)


def pair_iou(totals: Totals, chosen: Chosen) -> Values:
    """(m,): mean IoU over single pairs, those with neither truth nor prediction left out."""
    pooled = totals[:, chosen].sum(1)
    return class_iou(pooled[:, PAIR_IOU], pooled[:, PAIRS])


def mean_of(parts: list[Values] | Values) -> Values:
    """Mean over the first axis of what is defined; NaN where nothing is."""
    return mean_of_defined(np.asarray(parts), axis=0)


def _folds(cells: Cells, chosen: Chosen) -> list[int]:
    return cells.values_of("fold", chosen)
