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

from collections.abc import Callable, Iterator
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.harness.stats.intervals import Estimate, Resampling, make_resampling_plan, summarise
from hardlook.harness.stats.jackknife import Spread, SpreadMeter
from hardlook.harness.stats.resampling import (
    block_sizes,
    draw_multiplicities,
    exact_totals,
    finite_rows,
    finite_vector,
    is_sparse,
)

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
    values = apply_statistic(statistic, exact_totals(rows)[None])[0]
    replicates = [np.empty((0, len(values)))]
    replicates += [
        apply_statistic(statistic, block @ cluster_sums)
        for block in draw_multiplicities(plan.clusters, plan.resamples, plan.rng)
    ]
    left_out: NDArray[np.float64] | Spread | None = None
    if plan.resamples and plan.method == "bca":
        left_out = np.concatenate(list(leave_each_out(statistic, cluster_sums, plan.clusters.sizes)))
    elif plan.resamples and plan.method == "jackknife":
        left_out = measure_spread(statistic, cluster_sums, plan.clusters.sizes)
    return summarise(plan, values, np.concatenate(replicates), left_out)


# More clusters than this are left out in groups, so that a spread never takes longer than the resamples.
MAX_GROUPS = 1_000


def measure_spread(
    statistic: Statistic, cluster_sums: Any, sizes: NDArray[np.int64], groups: int = MAX_GROUPS
) -> Spread:
    """The spread of scores without each cluster; beyond `groups` clusters, without each group of them.

    `cluster_sums` (n_clusters, n_columns), dense or sparse, has `sizes` clusters of each stratum, one after the other.
    """
    grouped, group_sizes = group_clusters(cluster_sums, sizes, groups)
    total = grouped.sum(axis=0)
    meter = SpreadMeter(apply_statistic(statistic, total[None])[0], group_sizes)
    for scores in leave_each_out(statistic, grouped, group_sizes):
        meter.add(scores)
    return meter.measure()


def group_clusters(cluster_sums: Any, sizes: NDArray[np.int64], groups: int) -> tuple[Any, NDArray[np.int64]]:
    """The sums of each group of clusters (see `assign_groups`), and the groups of each stratum.

    >>> group_clusters(np.array([[1.0], [2.0], [4.0], [8.0]]), np.array([4]), 2)[0].tolist()
    [[5.0], [10.0]]
    """
    if sizes.sum() <= groups:
        return cluster_sums, sizes
    codes, kept = assign_groups(sizes, groups)
    if not is_sparse(cluster_sums):
        columns = [np.bincount(codes, column, minlength=int(kept.sum())) for column in cluster_sums.T]
        return np.stack(columns, axis=1), kept
    from scipy.sparse import csr_array

    members = csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))), shape=(int(kept.sum()), len(codes)))
    return members @ cluster_sums, kept


def assign_groups(sizes: NDArray[np.int64], groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The group of each cluster, about `groups` groups of equal numbers in all, and the groups of each stratum.

    A stratum keeps two groups where it has two clusters, so that it still varies. With no more clusters than groups
    each is a group of its own.

    >>> assign_groups(np.array([4, 2]), 3)
    (array([0, 1, 0, 1, 2, 3]), array([2, 2]))
    """
    n = int(sizes.sum())
    kept = sizes if n <= groups else np.minimum(sizes, np.maximum(2, sizes * groups // n))
    if len(sizes) == 1:
        return np.arange(n) % kept[0] if n else np.arange(0), kept
    place = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(np.cumsum(kept) - kept, sizes) + place % np.repeat(kept, sizes), kept


def leave_each_out(statistic: Statistic, cluster_sums: Any, sizes: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
    """Yield blocks (m, n_scores) of the scores without each cluster, in order.

    The other clusters of its stratum count more, n / (n - 1) times, so that a stratum keeps its weight and a total its
    size. Without the only cluster of a stratum nothing changes. Of a class that only the left-out cluster has, exactly
    nothing is left: the other summands are zeros.

    >>> next(leave_each_out(ratio, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2]))).tolist()
    [[0.75], [0.5]]
    """
    n, columns = cluster_sums.shape
    ends = np.cumsum(sizes)
    # A row of sums for each stratum; what is left of one without a cluster counts `factor` times.
    spans = zip(ends - sizes, ends, strict=True)
    strata = np.stack([np.asarray(cluster_sums[first:last].sum(axis=0)) for first, last in spans])
    total, factor = strata.sum(axis=0), np.where(sizes > 1, sizes / np.maximum(sizes - 1, 1), 1.0)
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    start = 0
    for rows in block_sizes(n, columns):
        part, inside = cluster_sums[start : start + rows], stratum[start : start + rows]
        part = part.toarray() if is_sparse(part) else np.array(part)
        part[sizes[inside] == 1] = 0.0
        left = total - strata[inside] + (strata[inside] - part) * factor[inside, None]
        yield apply_statistic(statistic, left)
        start += rows


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
    `Resampling`. The method is "percentile" by default: the jackknife is wrong for scores that jump, such as a median.
    It and BCa add one call per cluster.

    >>> values = np.array([0.1, 0.5, 0.6])
    >>> median = lambda units: float(np.median(values[units]))
    >>> bootstrap_indices(3, median, rng=np.random.default_rng(0), resamples=100).value
    0.5
    """
    options.setdefault("method", "percentile")
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
    left_out: NDArray[np.float64] | Spread | None = None
    if plan.method != "percentile" and plan.resamples:
        scores = np.array([[score(units[codes != cluster])] for cluster in range(plan.clusters.n)])
        meter = SpreadMeter(value, plan.clusters.sizes)
        meter.add(scores)
        left_out = scores if plan.method == "bca" else meter.measure()
    return summarise(plan, value, np.array(replicates).reshape(-1, 1), left_out)[0]
