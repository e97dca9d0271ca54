"""Soft average precision in one pass over detections in score order, compiled; import it inside functions.

COCO's interpolated precision at a recall level is the best precision at that recall or beyond. So each true positive
raises the best of the highest level it reaches, and a maximum from the right at the end does the rest: no curve is
stored, and the values equal those of a sorted curve to the last bit.

`accumulate_relevant` computes the sums of `accumulate` in the same order over only the detections that can matter: no
ignored ones, and a detection that found nothing is added whatever its weight, since a branch that half of all weights
take costs more than adding zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.detection import IGNORED, UNMATCHED
from hardlook.metrics.kernels.compiled import compiled

EPSILON = np.spacing(1)


@compiled
def count_hit(
    truth: int,
    label: int,
    weight: float,
    objects: NDArray[np.float64],
    similarity: NDArray[np.float64],
    levels: NDArray[np.float64],
    hits: NDArray[np.float64],
    misses: NDArray[np.float64],
    reached: NDArray[np.int64],
    best: NDArray[np.float64],
) -> None:
    """Add a detection that found an object of class `truth` under `label`; the arrays (K,) and (K, R) are changed."""
    alike = similarity[truth, label]
    if label != truth:
        misses[label] += weight * (1 - alike)
    hits[truth] += weight * alike
    share = hits[truth] / objects[truth]
    level = reached[truth]
    while level + 1 < len(levels) and levels[level + 1] <= share:
        level += 1
    reached[truth] = level
    value = hits[truth] / (misses[truth] + hits[truth] + EPSILON)
    if value > best[truth, level]:
        best[truth, level] = value


@compiled
def fill_precision_and_recall(
    objects: NDArray[np.float64],
    hits: NDArray[np.float64],
    best: NDArray[np.float64],
    precision: NDArray[np.float64],
    recall: NDArray[np.float64],
) -> None:
    """Fill `precision` and `recall` (K,) of one setting where a class has objects, from the `best` (K, R) of levels."""
    classes, levels = best.shape
    for k in range(classes):
        if objects[k] == 0:
            continue
        total, highest = 0.0, 0.0
        for level in range(levels - 1, -1, -1):
            highest = max(highest, best[k, level])
            total += highest
        precision[k] = total / levels
        recall[k] = hits[k] / objects[k]


@compiled
def accumulate(
    matched: NDArray[np.int16],
    labels: NDArray[np.int16],
    weights: NDArray[np.float64],
    objects: NDArray[np.float64],
    similarity: NDArray[np.float64],
    levels: NDArray[np.float64],
    precision: NDArray[np.float64],
    recall: NDArray[np.float64],
) -> None:
    """Fill `precision` and `recall` (P, K), filled with NaN before.

    `matched` (P, N) holds the class of the object found, UNMATCHED or IGNORED; `labels`, `weights` (N,); `objects`
    (P, K) counts; `levels` (R,) ascending from 0.
    """
    settings, detections = matched.shape
    classes = objects.shape[1]
    for p in range(settings):
        hits, misses = np.zeros(classes), np.zeros(classes)
        reached = np.zeros(classes, np.int64)
        best = np.zeros((classes, len(levels)))
        for n in range(detections):
            weight, truth, label = weights[n], matched[p, n], labels[n]
            if weight == 0 or truth == IGNORED:
                continue
            if truth == UNMATCHED:
                misses[label] += weight
                continue
            count_hit(truth, label, weight, objects[p], similarity, levels, hits, misses, reached, best)
        fill_precision_and_recall(objects[p], hits, best, precision[p], recall[p])


@compiled
def accumulate_relevant(
    starts: NDArray[np.int64],
    places: NDArray[np.int32],
    found: NDArray[np.int16],
    labels: NDArray[np.int16],
    weights: NDArray[np.float64],
    objects: NDArray[np.float64],
    similarity: NDArray[np.float64],
    levels: NDArray[np.float64],
    precision: NDArray[np.float64],
    recall: NDArray[np.float64],
) -> None:
    """Fill `precision` and `recall` (P, K), filled with NaN before.

    `starts` (P + 1,), `places` and `found` as in `RelevantDetections`; `labels`, `weights` (N,) of all detections;
    `objects` (P, K) counts; `levels` (R,) ascending from 0.
    """
    settings, classes = objects.shape
    for p in range(settings):
        hits, misses = np.zeros(classes), np.zeros(classes)
        reached = np.zeros(classes, np.int64)
        best = np.zeros((classes, len(levels)))
        for place in range(starts[p], starts[p + 1]):
            truth, label, weight = found[place], labels[places[place]], weights[places[place]]
            if truth == UNMATCHED:
                misses[label] += weight
                continue
            if weight == 0:
                continue
            count_hit(truth, label, weight, objects[p], similarity, levels, hits, misses, reached, best)
        fill_precision_and_recall(objects[p], hits, best, precision[p], recall[p])


@compiled
def count_early_hits(
    matched: NDArray[np.int16],
    labels: NDArray[np.int16],
    rank: NDArray[np.int32],
    weights: NDArray[np.float64],
    similarity: NDArray[np.float64],
    limits: NDArray[np.int64],
    hits: NDArray[np.float64],
) -> None:
    """Add to `hits` (L, P, K) what the detections of a `rank` (N,) below each of the `limits` (L,) found.

    `matched` (P, N), `labels` and `weights` (N,) are as in `accumulate`, `similarity` is (K, K).
    """
    most = limits.max()
    for n in range(len(rank)):
        if rank[n] >= most:
            continue
        for p in range(len(matched)):
            truth = matched[p, n]
            if truth >= 0:
                for place in range(len(limits)):
                    if rank[n] < limits[place]:
                        hits[place, p, truth] += similarity[truth, labels[n]] * weights[n]
