"""Association of two lists: Pearson's and Spearman's correlation, and mutual information with an outcome.

Mutual information is estimated from nearest neighbours after B. C. Ross, "Mutual Information between Discrete and
Continuous Data Sets", PLoS ONE 9(2), 2014. For each value, the distance to its k-th neighbour with the same outcome is
taken and all values within it are counted: few others mean that the attribute separates the outcomes. Equal values are
separated by noise too small to matter otherwise, so attributes that repeat values (counts, shares that are often 0)
give slightly different results for each seed.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> size = rng.random(2000)
>>> dependent = mutual_information(size, size > 0.5, rng=rng)
>>> independent = mutual_information(size, rng.random(2000) > 0.5, rng=rng)
>>> abs(dependent - math.log(2)) < 0.01, independent < 0.03
(True, True)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.harness.stats.intervals import Estimate, Interval
from hardlook.harness.stats.resampling import Labels, check_probability, find_clusters, finite_vector


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's correlation, in [-1, 1].

    `x` and `y` have shape (n,), finite. The result is NaN where it does not exist: n < 2, or all values of one
    list are equal.

    >>> round(pearson([1, 2, 3], [2, 4, 7]), 6)
    0.993399
    """
    a, b = _pair(x, y)
    return _cosine(_centre(a), _centre(b))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation, in [-1, 1]: Pearson's of the ranks, ties having their average rank.

    `x` and `y` have shape (n,), finite. The result is NaN where it does not exist: n < 2, or all values of one
    list are equal.

    >>> spearman([1, 2, 3], [10, 100, 1000])
    1.0
    """
    a, b = _pair(x, y)
    # Twice the centred ranks are whole numbers, so equal and opposite orders give exactly 1 and -1.
    middle = len(a) + 1
    return _cosine(2 * average_ranks(a) - middle, 2 * average_ranks(b) - middle)


def average_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks from 1 for the smallest of the n values; equal values share the average of their places.

    >>> average_ranks([10, 30, 30, 20])
    array([1. , 3.5, 3.5, 2. ])
    """
    _, inverse, counts = np.unique(finite_vector(values, "values"), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def _pair(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = finite_vector(x, "x"), finite_vector(y, "y")
    if len(a) != len(b):
        raise ValueError(f"x has {len(a)} values and y {len(b)}; expected pairs")
    return a, b


def _centre(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # Rounding would leave a constant list with a tiny spread, and a correlation of noise.
    if not len(values) or np.ptp(values) == 0:
        return np.zeros_like(values)
    # Mapping to [0, 1] first keeps squares of very small and very large numbers within range.
    unit = (values - values.min()) / np.ptp(values)
    return np.asarray(unit - unit.mean())


def _cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    size = math.sqrt(float(a @ a) * float(b @ b))
    return max(-1.0, min(1.0, float(a @ b) / size)) if size else math.nan


# Of the standard deviation: Kraskov's advice, with the size that scikit-learn takes.
NOISE = 1e-10


def mutual_information(values: ArrayLike, outcome: ArrayLike, *, k: int = 3, rng: np.random.Generator) -> float:
    """Mutual information in nats, at least 0.

    `values` (n,) is finite; `outcome` (n,) holds any few labels, such as False and True. `rng` draws the noise. An
    outcome that occurs once has no neighbours and is left out; NaN where nothing remains.

    >>> heights, tall = np.arange(1000), np.arange(1000) >= 500
    >>> round(mutual_information(heights, tall, rng=np.random.default_rng(0)), 1)  # log(2) = 0.693
    0.7
    """
    vector, labels = _check_inputs(values, outcome, k)
    return _ross(vector, labels, k, rng)


def mutual_information_interval(
    values: ArrayLike,
    outcome: ArrayLike,
    *,
    k: int = 3,
    rng: np.random.Generator,
    clusters: Labels | None = None,
    halves: int = 200,
    level: float = 0.95,
    resampled: str = "",
) -> Estimate:
    """Mutual information with an interval from random halves of the data.

    As `mutual_information`. A bootstrap would repeat rows, and a repeated row is its own nearest neighbour, which
    ruins the estimate. So each of `halves` draws leaves half of the units (or clusters) out: the delete-half
    jackknife of J. Shao and C. F. J. Wu (1989). The spread of the half-sample estimates is the standard error of the
    whole, since leaving out d of n units scales the variance by (n - d) / d. The interval is normal, its low end cut
    at 0. It covers the spread of the estimator and not its bias, which grows where the information is near 0.

    >>> rng = np.random.default_rng(0)
    >>> size = rng.random(300)
    >>> estimate = mutual_information_interval(size, size + rng.random(300) > 1, rng=rng, halves=50)
    >>> estimate.interval.low < estimate.value < estimate.interval.high, estimate.interval.method
    (True, 'delete-half jackknife')
    """
    from scipy.special import ndtri

    check_probability(level, "level")
    vector, labels = _check_inputs(values, outcome, k)
    grouped = find_clusters(len(vector), clusters)
    value = _ross(vector, labels, k, rng)
    kept = grouped.n // 2
    estimates = []
    for _ in range(halves if grouped.n >= 4 else 0):
        chosen = np.zeros(grouped.n, bool)
        chosen[rng.choice(grouped.n, size=kept, replace=False)] = True
        rows = chosen[grouped.codes]
        estimates.append(_ross(vector[rows], labels[rows], k, rng))
    defined = np.array([estimate for estimate in estimates if math.isfinite(estimate)])
    error = math.nan
    if len(defined) > 1:
        error = float(defined.std(ddof=1)) * math.sqrt(kept / (grouped.n - kept))
    reach = float(ndtri((1 + level) / 2)) * error
    word = resampled or ("unit" if clusters is None else "cluster")
    low = max(0.0, value - reach) if math.isfinite(reach) else math.nan
    interval = Interval(low, value + reach, level, "delete-half jackknife", grouped.n, word)
    return Estimate(value, interval, error, len(estimates), len(estimates) - len(defined))


def _check_inputs(values: ArrayLike, outcome: ArrayLike, k: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    vector, labels = finite_vector(values, "values"), np.asarray(outcome)
    if labels.shape != vector.shape:
        raise ValueError(f"outcome: expected shape {vector.shape} as the values have, got {labels.shape}")
    if k < 1:
        raise ValueError(f"k: expected at least 1, got {k}")
    return vector, np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _ross(values: NDArray[np.float64], labels: NDArray[np.int64], k: int, rng: np.random.Generator) -> float:
    from scipy.special import digamma

    if not len(values):
        return math.nan
    scaled = _scale_to_unit_spread(values)
    noisy = scaled + NOISE * max(1.0, float(np.abs(scaled).mean())) * rng.standard_normal(len(scaled))
    counts = np.bincount(labels)[labels]
    noisy, labels, counts = noisy[counts > 1], labels[counts > 1], counts[counts > 1]
    if not len(noisy):
        return math.nan
    radius = np.empty(len(noisy))
    for label in np.unique(labels):
        radius[labels == label] = _neighbour_distance(noisy[labels == label], k)
    closer = _count_closer(noisy, radius)
    neighbours = np.minimum(k, counts - 1)
    information = digamma(len(noisy)) + digamma(neighbours).mean() - digamma(counts).mean() - digamma(closer).mean()
    return max(0.0, float(information))


def _scale_to_unit_spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # Rounding leaves a constant list with a tiny spread that must not be blown up.
    return values / values.std() if np.ptp(values) > 0 else values


def _neighbour_distance(values: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Distance of each value to its k-th neighbour; with fewer others, to the furthest of them."""
    k = min(k, len(values) - 1)
    order = np.argsort(values)
    padded = np.concatenate([np.full(k, -np.inf), values[order], np.full(k, np.inf)])
    middle = padded[k : len(padded) - k]
    # The k nearest and the value itself are k + 1 neighbours in sorted order: try each such window.
    windows = [
        np.maximum(middle - padded[start : start + len(values)], padded[start + k :][: len(values)] - middle)
        for start in range(k + 1)
    ]
    distance = np.empty(len(values))
    distance[order] = np.min(windows, axis=0)
    return distance


def _count_closer(values: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.int64]:
    """How many values lie strictly closer to each value than its radius, itself among them."""
    ordered = np.sort(values)
    first = np.searchsorted(ordered, values - radius, side="left")
    last = np.searchsorted(ordered, values + radius, side="right") - 1
    # `value + radius` is rounded, so a neighbour at the radius may fall on either side: compare distances instead.
    while len(outside := np.flatnonzero(values - ordered[first] >= radius)):
        first[outside] += 1
    while len(outside := np.flatnonzero(ordered[last] - values >= radius)):
        last[outside] -= 1
    return np.asarray(last - first + 1, np.int64)
