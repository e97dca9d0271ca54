"""COCO's greedy matching, compiled; import it inside functions, numba is slow to load."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.detection import IGNORED, UNMATCHED
from hardlook.metrics.kernels.compiled import compiled


@compiled
def match_greedily(
    overlap: NDArray[np.float64],
    order: NDArray[np.intp],
    columns: NDArray[np.intp],
    found_group: NDArray[np.int64],
    truth_group: NDArray[np.int64],
    crowd: NDArray[np.bool_],
    ignored: NDArray[np.bool_],
    outside: NDArray[np.bool_],
    trapped: NDArray[np.bool_],
    thresholds: NDArray[np.float64],
    matches: NDArray[np.int16],
) -> None:
    """Fill `matches` (A, T, D), filled with IGNORED before, for the detections listed in `order`.

    `overlap` is (D, G); `order` and `columns` list detections and objects in the order of matching; a detection
    can match objects of its own group only. `ignored` (A, G) objects count neither as found nor as missed, detections
    `outside` (A, D) are left out when unmatched, and a match with a `trapped` (G,) object is recorded as none.
    """
    objects = len(columns)
    reach = np.zeros(overlap.shape[0])
    for d in order:
        for g in columns:
            if found_group[d] == truth_group[g] and overlap[d, g] > reach[d]:
                reach[d] = overlap[d, g]
    arranged = np.empty(objects, np.int64)
    taken = np.empty(objects, np.bool_)
    for a in range(ignored.shape[0]):
        # Objects that count are first, each part in its given order.
        filled = 0
        for part in range(2):
            for g in columns:
                if ignored[a, g] == (part == 1):
                    arranged[filled] = g
                    filled += 1
        for t in range(len(thresholds)):
            taken[:] = False
            for d in order:
                best = -1
                level = min(thresholds[t], 1 - 1e-10)
                if reach[d] >= level:
                    for g in arranged:
                        if found_group[d] != truth_group[g] or (taken[g] and not crowd[g]):
                            continue
                        if best >= 0 and not ignored[a, best] and ignored[a, g]:
                            break
                        if overlap[d, g] >= level:
                            level = overlap[d, g]
                            best = int(g)
                if best >= 0:
                    taken[best] = True
                if best >= 0 and (ignored[a, best] or not trapped[best]):
                    matches[a, t, d] = IGNORED if ignored[a, best] else best
                else:
                    matches[a, t, d] = IGNORED if outside[a, d] else UNMATCHED
