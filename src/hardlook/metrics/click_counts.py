"""How many clicks an interactive segmenter needs: NoC, NoF and IoU-AuC of trajectories.

From "RClicks: Realistic Click Simulation for Benchmarking Interactive Segmentation" (2024). A trajectory is the
intersection and the union of prediction and target after each click, both integers. Whether an IoU reaches a threshold
is decided on these integers, so no rounding is involved. Leading axes (instances, courses) are free.

An empty target that is left empty has union 0. It counts as IoU 1: nothing is wrong with the prediction.

>>> hits = [50, 70, 85, 90] + [95] * 16
>>> int(clicks_to_reach(hits, [100] * 20, 90)), bool(failures(hits, [100] * 20, 90))
(4, False)
>>> round(float(area_under_ious(ious(hits, [100] * 20))), 6)
0.917105
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.array_input import Values, integer_array

FailureReading = Literal["released", "ours"]


def ious(intersection: Values, union: Values) -> NDArray[np.float64]:
    """(...) IoU in [0, 1] from integer counts of one shape (...); 1 where the union is 0.

    >>> ious([3, 0, 0], [4, 2, 0])
    array([0.75, 0.  , 1.  ])
    """
    hits, either = _counts(intersection, union)
    return np.asarray(np.where(either > 0, hits / np.maximum(either, 1), 1.0))


def clicks_to_reach(intersection: Values, union: Values, percent: int) -> NDArray[np.int64]:
    """NoC: the first click, from 1, after which the IoU is at least `percent` per cent; the number of rounds if none.

    `intersection` and `union` are integers of one shape (..., rounds), the result has shape (...). `percent` is whole,
    1 to 100.

    >>> clicks_to_reach([[8, 9, 10], [1, 2, 3]], [[10, 10, 10], [10, 10, 10]], 90)
    array([2, 3])
    """
    reached = _reached(intersection, union, percent)
    return np.asarray(np.where(reached.any(-1), reached.argmax(-1) + 1, reached.shape[-1]), np.int64)


def failures(
    intersection: Values, union: Values, percent: int, reading: FailureReading = "released"
) -> NDArray[np.bool_]:
    """(...) whether a trajectory counts as a failure; NoF is how many instances do.

    `released` counts those whose NoC is the number of rounds, so also those that reach the threshold at the last
    click. `ours` counts those that never reach it. Shapes and `percent` as in `clicks_to_reach`.

    >>> bool(failures([5, 9], [10, 10], 90)), bool(failures([5, 9], [10, 10], 90, "ours"))
    (True, False)
    """
    if reading not in ("released", "ours"):
        raise ValueError(f"failures: expected the reading released or ours, got {reading!r}")
    reached = _reached(intersection, union, percent)
    in_time = reached[..., :-1] if reading == "released" else reached
    return np.asarray(~in_time.any(-1))


def area_under_ious(iou: ArrayLike) -> NDArray[np.float64]:
    """IoU-AuC: the area under the IoU against the click, trapezoids over rounds - 1, in [0, 1].

    `iou` has shape (..., rounds), values in [0, 1]; the result has shape (...). With one round it is that round's IoU.

    >>> float(area_under_ious([0.5, 1.0, 1.0]))
    0.875
    """
    curve = np.asarray(iou, np.float64, order="C")
    if not curve.ndim or not curve.shape[-1]:
        raise ValueError(f"area_under_ious: expected shape (..., rounds) with a round at least, got {curve.shape}")
    if not ((curve >= 0) & (curve <= 1)).all():
        raise ValueError("area_under_ious: expected IoUs in [0, 1], got values outside or NaN")
    if curve.shape[-1] == 1:
        return np.asarray(curve[..., 0])
    return np.asarray(((curve[..., 1:] + curve[..., :-1]) / 2).sum(-1) / (curve.shape[-1] - 1))


def _reached(intersection: Values, union: Values, percent: int) -> NDArray[np.bool_]:
    if percent not in range(1, 101):
        raise ValueError(f"percent: expected a whole number in 1..100, got {percent!r}")
    hits, either = _counts(intersection, union)
    if not hits.ndim or not hits.shape[-1]:
        raise ValueError(f"intersection: expected shape (..., rounds) with a round at least, got {hits.shape}")
    return np.asarray(100 * hits >= int(percent) * either)


def _counts(intersection: Values, union: Values) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    hits = integer_array(intersection, "intersection").astype(np.int64)
    either = integer_array(union, "union").astype(np.int64)
    if hits.shape != either.shape:
        raise ValueError(f"expected counts of one shape, got intersection {hits.shape} and union {either.shape}")
    wrong = (hits < 0) | (hits > either)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(f"expected 0 <= intersection <= union, got {hits[where]} and {either[where]} at {where}")
    return hits, either
