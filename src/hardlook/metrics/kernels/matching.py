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
    # Pairs below the lowest threshold cannot match: each detection has its few candidates, in the order of matching.
    lowest = min(thresholds.min(), 1 - 1e-10)
    candidates = np.empty(overlap.shape, np.int64)
    counts = np.empty(len(overlap), np.int64)
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
        for d in order:
            counts[d] = 0
            for g in arranged:
                if found_group[d] == truth_group[g] and overlap[d, g] >= lowest:
                    candidates[d, counts[d]] = g
                    counts[d] += 1
        for t in range(len(thresholds)):
            taken[:] = False
            for d in order:
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
                    matches[a, t, d] = IGNORED if ignored[a, best] else best
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
    """Fill `matches` (2, A * T, N) with the class of the object found, UNMATCHED or IGNORED: by class, then pooled.

    Image i has the N detections from `starts[i]` and the M objects from `object_starts[i]` on, up to those of the next.
    Their overlaps come from boxes (N, 4) and (M, 4), or are given one after another, (D, G) of each image. `orders`,
    `ranks` (2, N) and `columns` (M,) list detections and objects of each image in the order of matching, as indices
    into all; ranks from `most` on do not count. `ignored` (A, M), `outside` (A, N) and `trapped` (2, M) are as in
    `match_greedily`.
    """
    areas = len(ignored)
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
        left_out, outer = ignored[:, first:last].copy(), outside[:, start:end].copy()
        order = np.empty(found, np.int64)
        for kind in range(2):
            counted = 0
            for place in range(start, end):
                d = orders[kind, place]
                if ranks[kind, d] < most:
                    order[counted] = d - start
                    counted += 1
            groups = labels[start:end].copy() if kind == 0 else np.zeros(found, np.int64)
            object_groups = object_classes[first:last].copy() if kind == 0 else np.zeros(truth, np.int64)
            hits = np.full((areas, len(thresholds), found), IGNORED, np.int16)
            match_greedily(
                overlap, order[:counted], columns[first:last] - first, groups, object_groups, crowd[first:last],
                left_out, outer, trapped[kind, first:last], thresholds, hits,
            )  # fmt: skip
            for a in range(areas):
                for t in range(len(thresholds)):
                    for d in range(found):
                        hit = hits[a, t, d]
                        matches[kind, a * len(thresholds) + t, start + d] = (
                            object_classes[first + hit] if hit >= 0 else hit
                        )
