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
    codes: NDArray[np.int16],
    matches: NDArray[np.int16],
) -> None:
    """Fill `matches` (A, T, D), filled with IGNORED before, for the detections listed in `order`.

    A match is recorded as the number that `codes` (G,) has for the object, such as its index or its class.

    `overlap` is (D, G); `order` and `columns` list detections and objects in the order of matching; a detection
    can match objects of its own group only. `ignored` (A, G) objects count neither as found nor as missed, detections
    `outside` (A, D) are left out when unmatched, and a match with a `trapped` (G,) object is recorded as none.
    """
    # Pairs below the lowest threshold cannot match: each detection has its few candidates, most of them none or one.
    lowest = min(thresholds.min(), 1 - 1e-10)
    near = np.empty(overlap.shape, np.int64)
    candidates = np.empty(overlap.shape, np.int64)
    counts = np.zeros(len(overlap), np.int64)
    hopeful = np.empty(len(order), np.int64)
    n_hopeful = 0
    for d in order:
        for g in columns:
            if found_group[d] == truth_group[g] and overlap[d, g] >= lowest:
                near[d, counts[d]] = g
                counts[d] += 1
        if counts[d]:
            hopeful[n_hopeful] = d
            n_hopeful += 1
        else:
            for a in range(ignored.shape[0]):
                alone = IGNORED if outside[a, d] else UNMATCHED
                for t in range(len(thresholds)):
                    matches[a, t, d] = alone
    taken = np.empty(len(columns), np.bool_)
    for a in range(ignored.shape[0]):
        # Objects that count are first, each part in its given order.
        for d in hopeful[:n_hopeful]:
            filled = 0
            for part in range(2):
                for place in range(counts[d]):
                    if ignored[a, near[d, place]] == (part == 1):
                        candidates[d, filled] = near[d, place]
                        filled += 1
        for t in range(len(thresholds)):
            taken[:] = False
            for d in hopeful[:n_hopeful]:
                best = -1
                level = min(thresholds[t], 1 - 1e-10)
                for place in range(counts[d]):
                    g = candidates[d, place]
                    if taken[g] and not crowd[g]:
                        continue
                    if best >= 0 and not ignored[a, best] and ignored[a, g]:
                        break
                    if overlap[d, g] >= level:
                        level = overlap[d, g]
                        best = int(g)
                if best >= 0:
                    taken[best] = True
                if best >= 0 and (ignored[a, best] or not trapped[best]):
                    matches[a, t, d] = IGNORED if ignored[a, best] else codes[best]
                else:
                    matches[a, t, d] = IGNORED if outside[a, d] else UNMATCHED


@compiled
def overlap_boxes(
    found: NDArray[np.float64],
    truth: NDArray[np.float64],
    crowd: NDArray[np.bool_],
    overlap: NDArray[np.float64],
) -> None:
    """Fill `overlap` (D, G) as `box_overlap` computes it, to the last bit."""
    for d in range(len(found)):
        x, y, width, height = found[d]
        for g in range(len(truth)):
            across = min(x + width, truth[g, 0] + truth[g, 2]) - max(x, truth[g, 0])
            down = min(y + height, truth[g, 1] + truth[g, 3]) - max(y, truth[g, 1])
            common = max(across, 0.0) * max(down, 0.0)
            union = width * height + truth[g, 2] * truth[g, 3] - common
            if crowd[g]:
                union = width * height
            overlap[d, g] = common / union if common != 0 else 0.0


@compiled
def match_many(
    starts: NDArray[np.int64],
    object_starts: NDArray[np.int64],
    boxes: NDArray[np.float64],
    object_boxes: NDArray[np.float64],
    overlaps: NDArray[np.float64],
    labels: NDArray[np.int64],
    object_classes: NDArray[np.int64],
    crowd: NDArray[np.bool_],
    ignored: NDArray[np.bool_],
    outside: NDArray[np.bool_],
    orders: NDArray[np.int64],
    ranks: NDArray[np.int32],
    columns: NDArray[np.int64],
    trapped: NDArray[np.bool_],
    most: int,
    thresholds: NDArray[np.float64],
    matches: NDArray[np.int16],
) -> None:
    """Fill `matches` (2, A, T, N), filled with IGNORED before, with classes of objects found: by class, then pooled.

    Image i has the N detections from `starts[i]` and the M objects from `object_starts[i]` on, up to those of the next.
    Their overlaps come from boxes (N, 4) and (M, 4), or are given one after another, (D, G) of each image. `orders`,
    `ranks` (2, N) and `columns` (M,) list detections and objects of each image in the order of matching, as indices
    into all; ranks from `most` on do not count. `ignored` (A, M), `outside` (A, N) and `trapped` (2, M) are as in
    `match_greedily`.
    """
    taken = 0
    for i in range(len(starts) - 1):
        start, end, first, last = starts[i], starts[i + 1], object_starts[i], object_starts[i + 1]
        found, truth = end - start, last - first
        if len(overlaps):
            overlap = overlaps[taken : taken + found * truth].reshape(found, truth)
            taken += found * truth
        else:
            overlap = np.empty((found, truth))
            overlap_boxes(boxes[start:end], object_boxes[first:last], crowd[first:last], overlap)
        order = np.empty(found, np.int64)
        codes = object_classes[first:last].astype(np.int16)
        pool, object_pool = np.zeros(found, np.int64), np.zeros(truth, np.int64)
        for kind in range(2):
            counted = 0
            for place in range(start, end):
                d = orders[kind, place]
                if ranks[kind, d] < most:
                    order[counted] = d - start
                    counted += 1
            match_greedily(
                overlap, order[:counted], columns[first:last] - first,
                labels[start:end] if kind == 0 else pool, object_classes[first:last] if kind == 0 else object_pool,
                crowd[first:last], ignored[:, first:last], outside[:, start:end], trapped[kind, first:last],
                thresholds, codes, matches[kind, :, :, start:end],
            )  # fmt: skip
