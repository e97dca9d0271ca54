"""Interactive segmentation: how many clicks it takes, and how much the result depends on where people click.

From "RClicks: Realistic Click Simulation for Benchmarking Interactive Segmentation" (2024).

NoC, NoF and IoU-AuC are computed from trajectories: the intersection and the union of prediction and target after each
click, both integers. Whether an IoU reaches a threshold is decided on these integers, so no rounding is involved.
Leading axes (instances, courses) are free. An empty prediction of an empty target has union 0 and counts as IoU 1.

>>> hits = [50, 70, 85, 90] + [95] * 16
>>> int(clicks_to_reach(hits, [100] * 20, 90)), bool(failures(hits, [100] * 20, 90))
(4, False)
>>> round(float(area_under_ious(ious(hits, [100] * 20))), 6)
0.917105

Sample, dSB, dGR, dHH, NSR and the difficulty of instances compare groups of clicks, from the least probable (first) to
the most probable (last). These functions work along the last axis, (..., G), and give one value per instance; the
published figure is the mean over instances.

| quantity | values | figure |
|---|---|---|
| NoC | NoC itself, change `percent` | mean over instances |
| IoU-AuC | 100 x AuC, change `difference` | mean over instances |
| NoF | failures as 0 or 1, change `difference` | sum over instances |

The mean and deviation of NoF are those of the groups' totals: `sample_and_deviation(failed.sum(0))`.

>>> noc = np.array([[10, 8, 6, 5, 5, 4, 4, 4, 3, 2], [4, 4, 3, 3, 3, 3, 2, 2, 2, 2]])
>>> mean, deviation = sample_and_deviation(noc)
>>> round(float(mean.mean()), 6), round(float(deviation.mean()), 6)
(3.95, 1.502217)
>>> [round(float(rise.mean()), 6) for rise in (rise_over_base(noc, [3, 2]), first_to_last(noc), lower_to_upper(noc))]
[55.0, 250.0, 80.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.arrays import Values, divide, integer_array

Change = Literal["percent", "difference"]
Rows = NDArray[np.floating] | NDArray[np.integer] | Sequence[ArrayLike]
FailureReading = Literal["released", "ours"]


def ious(intersection: Values, union: Values) -> NDArray[np.float64]:
    """(...) IoU in [0, 1] from integer counts of one shape (...); 1 where the union is 0.

    >>> ious([3, 0, 0], [4, 2, 0])
    array([0.75, 0.  , 1.  ])
    """
    hits, either = _check_counts(intersection, union)
    return np.asarray(np.where(either > 0, hits / np.maximum(either, 1), 1.0))


def clicks_to_reach(intersection: Values, union: Values, percent: int) -> NDArray[np.int64]:
    """NoC: the first click, from 1, after which the IoU is at least `percent` per cent; the number of rounds if none.

    `intersection` and `union` are integers of one shape (..., rounds), the result has shape (...). `percent` is whole,
    1 to 100.

    >>> clicks_to_reach([[8, 9, 10], [1, 2, 3]], [[10, 10, 10], [10, 10, 10]], 90)
    array([2, 3])
    """
    reached = _find_reached(intersection, union, percent)
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
    reached = _find_reached(intersection, union, percent)
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


def sample_and_deviation(groups: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (ddof 0) over groups, or over users' clicks, of each instance.

    `groups` is (..., G), the results (...); or it is a sequence of N rows of different lengths, such as the IoUs of
    each instance's users, and the results are (N,). No row is empty.

    >>> sample_and_deviation([[1.0, 3.0], [2.0]])
    (array([2., 2.]), array([1., 0.]))
    """
    if not isinstance(groups, np.ndarray):
        rows = [np.asarray(row, np.float64) for row in groups]
        if len({row.shape for row in rows}) > 1:
            pairs = [sample_and_deviation(_not_empty(row, f"row {i}")) for i, row in enumerate(rows)]
            return np.array([mean for mean, _ in pairs]), np.array([deviation for _, deviation in pairs])
    values = _not_empty(np.asarray(groups, np.float64, order="C"), "groups")
    return np.asarray(values.mean(-1)), np.asarray(values.std(-1))


def rise_over_base(groups: ArrayLike, base: ArrayLike, change: Change = "percent") -> NDArray[np.float64]:
    """dSB: from the baseline `base` (...) to the mean over `groups` (..., G), of each instance (...).

    `percent` is 100 (mean - base) / base and needs a base above 0; `difference` is mean - base.

    >>> rise_over_base([[4, 2], [1, 1]], [2, 2])
    array([ 50., -50.])
    """
    values = _not_empty(np.asarray(groups, np.float64), "groups")
    return _compute_change(values.mean(-1), np.asarray(base, np.float64), change, "base")


def first_to_last(groups: ArrayLike, change: Change = "percent") -> NDArray[np.float64]:
    """dGR: the first group against the last, (..., G) to (...): 100 (G1 - G10) / G10, or G1 - G10.

    >>> first_to_last([[6, 5, 4]])
    array([50.])
    """
    values = _not_empty(np.asarray(groups, np.float64), "groups")
    return _compute_change(values[..., 0], values[..., -1], change, "last group")


def lower_to_upper(groups: ArrayLike, change: Change = "percent") -> NDArray[np.float64]:
    """dHH, reading `released`: the mean over j of G_j against G_(j + G/2), (..., G) with an even G to (...).

    >>> lower_to_upper([[6, 4, 4, 2]])
    array([75.])
    """
    values = _not_empty(np.asarray(groups, np.float64), "groups")
    if values.shape[-1] % 2:
        raise ValueError(f"lower_to_upper: expected an even number of groups, got {values.shape[-1]}")
    half = values.shape[-1] // 2
    return np.asarray(_compute_change(values[..., :half], values[..., half:], change, "upper group").mean(-1))


def lower_to_upper_half(lower: ArrayLike, upper: ArrayLike, change: Change = "percent") -> NDArray[np.float64]:
    """dHH, reading `paper`: trajectories of the lower against the upper half of the mass, (...) and (...) to (...).

    >>> lower_to_upper_half([6, 3], [4, 3])
    array([50.,  0.])
    """
    return _compute_change(np.asarray(lower, np.float64), np.asarray(upper, np.float64), change, "upper half")


def noise_to_signal(values: Rows) -> NDArray[np.float64]:
    """NSR of each instance in per cent, (N,): 100 times the standard deviation (ddof 0) over the mean; NaN at mean 0.

    `values` as in `sample_and_deviation`: AuC of the groups (N, G) for NSR@20, or the IoUs of each instance's users
    after their first click for NSR@1. Values are not negative.

    >>> noise_to_signal([[0.5, 1.0, 0.75, 0.75], [0.0, 0.0]]).round(3)
    array([23.57,   nan])
    """
    mean, deviation = (np.atleast_1d(part) for part in sample_and_deviation(values))
    return 100 * divide(deviation, mean)


def instance_difficulty(mean: ArrayLike, deviation: ArrayLike) -> NDArray[np.float64]:
    """(N,) the mean over methods of the deviation over the mean over methods of the mean; NaN where that is 0.

    Both are (methods, N), from `sample_and_deviation` of each method's IoUs.

    >>> instance_difficulty([[0.8, 0.0], [0.4, 0.0]], [[0.1, 0.0], [0.2, 0.0]])
    array([0.25,  nan])
    """
    means, deviations = np.asarray(mean, np.float64), np.asarray(deviation, np.float64)
    if means.shape != deviations.shape or means.ndim != 2 or not len(means):
        raise ValueError(f"expected mean and deviation of shape (methods, N), got {means.shape}, {deviations.shape}")
    return divide(deviations.mean(0), means.mean(0))


def _find_reached(intersection: Values, union: Values, percent: int) -> NDArray[np.bool_]:
    if percent not in range(1, 101):
        raise ValueError(f"percent: expected a whole number in 1..100, got {percent!r}")
    hits, either = _check_counts(intersection, union)
    if not hits.ndim or not hits.shape[-1]:
        raise ValueError(f"intersection: expected shape (..., rounds) with a round at least, got {hits.shape}")
    return np.asarray(100 * hits >= int(percent) * either)


def _check_counts(intersection: Values, union: Values) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    hits = integer_array(intersection, "intersection").astype(np.int64)
    either = integer_array(union, "union").astype(np.int64)
    if hits.shape != either.shape:
        raise ValueError(f"expected counts of one shape, got intersection {hits.shape} and union {either.shape}")
    wrong = (hits < 0) | (hits > either)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(f"expected 0 <= intersection <= union, got {hits[where]} and {either[where]} at {where}")
    return hits, either


def _compute_change(
    to: NDArray[np.float64], since: NDArray[np.float64], change: Change, name: str
) -> NDArray[np.float64]:
    if to.shape != since.shape:
        raise ValueError(f"{name}: expected shape {to.shape}, got {since.shape}")
    if change == "difference":
        return np.asarray(to - since)
    if change != "percent":
        raise ValueError(f"change: expected percent or difference, got {change!r}")
    if not (since > 0).all():
        raise ValueError(f"{name}: expected values above 0 to divide by, got {since[~(since > 0)].flat[0]}")
    return np.asarray(100 * (to - since) / since)


def _not_empty(values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    if not values.ndim or not values.shape[-1]:
        raise ValueError(f"{name}: expected at least one value along the last axis, got shape {values.shape}")
    return values
