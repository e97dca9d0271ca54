"""The bootstrap, for scores that are functions of sums and for any other score.

Mean scores, IoU, mIoU, recall: each is a function of sums over units (intersections, unions, counts). A resample is
then a row of multiplicities times the sums of the clusters, and 10,000 resamples of 10,000 clusters are one large
matrix product, computed block by block. Whole-number sums are exact below 2**53, so their totals are the same on every
machine. Scores that are not functions of sums, such as a rank correlation, are computed anew from the units of every
resample by `bootstrap_indices`. With equal seed and labels both see the same resamples.

>>> import numpy as np
>>> pixels = np.array([[30, 60], [45, 50], [10, 40], [5, 50]])  # intersection and union of four images
>>> iou = bootstrap_score(pixels, ratio, rng=np.random.default_rng(0), resampled="image")
>>> iou.value, 0.45 in iou.interval
(0.45, True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.harness.stats.intervals import Estimate, Resampling, make_resampling_plan, summarise
from hardlook.harness.stats.resampling import draw_multiplicities, finite_rows, finite_vector, is_sparse

Statistic = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def ratio(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """First column over second column: a mean (sum, count) or an IoU (intersection, union).

    `totals` has shape (..., 2), the result (...); it is NaN where both totals are zero.

    >>> ratio(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([0.5 , 0.75])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(totals[..., 0], totals[..., 1])


def bootstrap_score(sums: ArrayLike, statistic: Statistic, **options: Unpack[Resampling]) -> Estimate:
    """Bootstrap one score that is a function of sums.

    `sums` has shape (n_units, n_columns), finite, dense or sparse. `statistic` maps totals (m, n_columns) to
    scores (m,), each row by itself. It may return NaN where the score is undefined; divisions by zero in it are
    quiet.
    `options` are the fields of `Resampling`, of which `rng` is required.

    With fewer than two clusters in every stratum nothing can vary: the bounds are NaN and no resample is made.

    >>> hits = [[1, 1], [0, 1], [1, 1], [1, 1]]
    >>> bootstrap_score(hits, ratio, rng=np.random.default_rng(0), clusters=["a", "a", "b", "c"]).interval.n
    3
    """
    estimates = bootstrap_scores(sums, statistic, **options)
    if len(estimates) != 1:
        raise ValueError(f"statistic: expected one score, got {len(estimates)}; use bootstrap_scores")
    return estimates[0]


def bootstrap_mean(values: ArrayLike, **options: Unpack[Resampling]) -> Estimate:
    """Bootstrap the mean over units of `values`, shape (n_units,), finite.

    With clusters of different sizes the mean stays the mean over units: large clusters weigh more.

    >>> bootstrap_mean([0.2, 0.4, 0.9], rng=np.random.default_rng(0)).value
    0.5
    """
    vector = finite_vector(values, "values")
    return bootstrap_score(np.stack([vector, np.ones_like(vector)], axis=1), ratio, **options)


def bootstrap_scores(sums: ArrayLike, statistic: Statistic, **options: Unpack[Resampling]) -> tuple[Estimate, ...]:
    """Bootstrap several scores, such as one IoU per class, from the same resamples.

    As `bootstrap_score`, with a `statistic` that maps totals (m, n_columns) to (m, n_scores). The result has one
    estimate per score, in the order of the columns of the statistic. A scipy.sparse matrix of sums draws the same
    resamples and gives the same estimates; totals are dense in both.

    >>> recall_and_precision = lambda t: np.stack([t[..., 0] / t[..., 1], t[..., 0] / t[..., 2]], axis=-1)
    >>> sums = [[1, 2, 2], [3, 4, 6], [2, 2, 2]]
    >>> recall, precision = bootstrap_scores(sums, recall_and_precision, rng=np.random.default_rng(0))
    >>> recall.value, precision.value
    (0.75, 0.6)
    """
    rows = finite_rows(sums, "sums")
    plan = make_resampling_plan(rows.shape[0], **options)
    cluster_sums = plan.clusters.sum(rows)
    total = cluster_sums.sum(axis=0)
    values = apply_statistic(statistic, total[None])[0]
    replicates = [np.empty((0, len(values)))]
    replicates += [
        apply_statistic(statistic, block @ cluster_sums)
        for block in draw_multiplicities(plan.clusters, plan.resamples, plan.rng)
    ]
    jackknife = None
    if plan.method == "bca" and plan.resamples:
        left_out = cluster_sums.toarray() if is_sparse(cluster_sums) else cluster_sums
        jackknife = apply_statistic(statistic, total - left_out)
    return summarise(plan, values, np.concatenate(replicates), jackknife)


def apply_statistic(statistic: Statistic, totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of each row of totals, as a matrix: (m, n_columns) to (m, n_scores).

    A statistic that returns the wrong shape raises a ValueError with both shapes.

    >>> apply_statistic(ratio, np.array([[1.0, 2.0], [0.0, 0.0]]))
    array([[0.5],
           [nan]])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.asarray(statistic(totals), dtype=np.float64)
    m = len(totals)
    if scores.ndim not in (1, 2) or len(scores) != m:
        raise ValueError(
            f"statistic: expected totals {totals.shape} to give scores ({m},) or ({m}, n_scores), got {scores.shape}"
        )
    return scores[:, None] if scores.ndim == 1 else scores


IndexStatistic = Callable[[NDArray[np.int64]], float]


def bootstrap_indices(n_units: int, statistic: IndexStatistic, **options: Unpack[Resampling]) -> Estimate:
    """Bootstrap a score that is computed from a list of units.

    `statistic` maps unit indices of shape (m,), ascending, in [0, n_units) and with repetitions, to one number,
    NaN where undefined. Clusters differ in size, so m varies between resamples. `options` are the fields of
    `Resampling`. BCa adds one call per cluster.

    >>> values = np.array([0.1, 0.5, 0.6])
    >>> median = lambda units: float(np.median(values[units]))
    >>> bootstrap_indices(3, median, rng=np.random.default_rng(0), resamples=100).value
    0.5
    """
    plan = make_resampling_plan(n_units, **options)
    units = np.arange(n_units)
    codes = plan.clusters.codes

    def score(indices: NDArray[np.int64]) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(statistic(indices))

    value = np.array([score(units)])
    replicates = [
        score(np.repeat(units, row[codes]))
        for block in draw_multiplicities(plan.clusters, plan.resamples, plan.rng)
        for row in block.astype(np.int64)
    ]
    jackknife = None
    if plan.method == "bca" and plan.resamples:
        jackknife = np.array([[score(units[codes != cluster])] for cluster in range(plan.clusters.n)])
    return summarise(plan, value, np.array(replicates).reshape(-1, 1), jackknife)[0]
