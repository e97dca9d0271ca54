"""From resampled scores to an interval: percentile and BCa.

BCa (bias-corrected and accelerated) is from B. Efron, "Better Bootstrap Confidence Intervals", Journal of the
American Statistical Association 82 (1987). The formulas are those of B. Efron and R. J. Tibshirani, "An
Introduction to the Bootstrap" (1993), section 14.3; with strata the acceleration is that of several samples,
equation 15.36.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Method = Literal["percentile", "bca"]


def percentile_bounds(replicates: NDArray[np.float64], level: float) -> tuple[float, float]:
    """The central `level` share of the replicates; NaN bounds where there are none.

    `replicates` has shape (resamples,) and is finite; quantiles interpolate linearly.

    >>> percentile_bounds(np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    return _quantiles(replicates, (1 - level) / 2, (1 + level) / 2)


def bca_bounds(
    replicates: NDArray[np.float64],
    value: float,
    jackknife: NDArray[np.float64],
    sizes: NDArray[np.int64],
    level: float,
) -> tuple[float, float]:
    """Percentile bounds moved for the bias and the skewness of the score.

    `replicates` has shape (resamples,) and is finite. `jackknife` has shape (n_clusters,): the score without
    each cluster. `sizes` has shape (n_strata,). Both bounds are NaN where BCa does not exist: the score is
    undefined without some cluster, or all replicates lie on one side of `value`.

    >>> symmetric = np.arange(101.0)
    >>> low, high = bca_bounds(symmetric, 50.0, np.array([49.0, 50.0, 51.0]), np.array([3]), 0.9)
    >>> round(low, 6), round(high, 6)
    (5.0, 95.0)
    """
    from scipy.special import ndtr, ndtri

    if not (len(replicates) and math.isfinite(value)):
        return math.nan, math.nan
    # Half of the replicates that equal the value count as below it, or coarse scores would look biased.
    below = ((replicates < value).mean() + (replicates <= value).mean()) / 2
    bias = float(ndtri(below))
    skew = acceleration(jackknife, sizes)
    if not (math.isfinite(bias) and math.isfinite(skew)):
        return math.nan, math.nan
    shifted = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = ndtr(bias + shifted / (1 - skew * shifted))
    return _quantiles(replicates, float(low), float(high))


def acceleration(jackknife: NDArray[np.float64], sizes: NDArray[np.int64]) -> float:
    """Skewness of the score's influence values over six; NaN if the score is undefined without a cluster.

    `jackknife` has shape (n_clusters,), stratum after stratum; `sizes` has shape (n_strata,). A stratum of one
    cluster cannot vary and has no part in it.

    >>> round(acceleration(np.array([1.0, 2.0, 3.0]), np.array([3])), 12)
    0.0
    """
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    varies = sizes[stratum] >= 2
    stratum, scores = stratum[varies], jackknife[varies]
    if not np.isfinite(scores).all():
        return math.nan
    size = sizes[stratum]
    mean = np.bincount(stratum, weights=scores, minlength=len(sizes)) / np.maximum(sizes, 1)
    influence = (size - 1) * (mean[stratum] - scores) / size
    spread = float((influence**2).sum())
    if spread == 0:
        return 0.0
    return float((influence**3).sum()) / (6 * math.pow(spread, 1.5))


def _quantiles(replicates: NDArray[np.float64], low: float, high: float) -> tuple[float, float]:
    if not len(replicates):
        return math.nan, math.nan
    bounds = np.quantile(replicates, [low, high])
    return float(bounds[0]), float(bounds[1])
