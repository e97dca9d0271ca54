"""Soft average precision over the detections that can matter, compiled; import it where it is called.

The sums are those of `precision_kernel`, in the same order. It differs in what it need not look at: nothing ignored
comes here, and a detection that found nothing is added whatever its weight, since a branch that half of all weights
take costs more than adding zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.compiled import compiled
from hardlook.metrics.detection_matching import UNMATCHED
from hardlook.metrics.precision_kernel import count_hit, read_off


@compiled
def accumulate_counting(
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
    """Fill `precision` and `recall` (P, K), which come filled with NaN.

    `starts` (P + 1,), `places` and `found` are those of `Counting`; `labels`, `weights` (N,) of all detections;
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
        read_off(objects[p], hits, best, precision[p], recall[p])
