"""Confidence intervals: the t interval of a mean, jackknife bounds, percentile and BCa bounds of bootstrap replicates.

The t interval is for a handful of numbers that are already summaries, such as one score per fold. For many units, or
for a score that is not a mean, use `hardlook.harness.stats.bootstrap`, whose options and results are defined here.

BCa (bias-corrected and accelerated) is from B. Efron, "Better Bootstrap Confidence Intervals", Journal of the
American Statistical Association 82 (1987). The formulas are those of B. Efron and R. J. Tibshirani, "An
Introduction to the Bootstrap" (1993), section 14.3; with strata the acceleration is that of several samples,
equation 15.36.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Required, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.harness.stats.jackknife import UNBOUNDED, Range, Spread, jackknife_bounds
from hardlook.harness.stats.resampling import Clusters, Labels, check_probability, find_clusters, finite_vector

Method = Literal["jackknife", "percentile", "bca"]
METHODS: tuple[Method, ...] = ("jackknife", "percentile", "bca")


@dataclass(frozen=True)
class Interval:
    """A confidence interval together with how it was made.

    `low` and `high` are in the units of the score and are both NaN where no interval exists, for example with
    fewer than two units. `level` lies in (0, 1). `n` counts the things that vary (units, or clusters where
    they are given) and `resampled` names them.
    """

    low: float
    high: float
    level: float
    method: str
    n: int
    resampled: str

    @property
    def defined(self) -> bool:
        """Whether both bounds are numbers."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Estimate:
    """A score, its interval, and how many resamples it comes from.

    `standard_error` is the standard deviation (ddof 1) of the score over the resamples. `undefined` counts the
    resamples, out of `resamples`, in which the score was NaN or infinite; the interval comes from the others, and
    there is none where these are more than the share 1 - level. `rough` says that few clusters decide the score, so
    that a jackknife interval covers less, or more, than it should.
    """

    value: float
    interval: Interval
    standard_error: float
    resamples: int
    undefined: int
    rough: bool = False


def t_interval(values: ArrayLike, level: float = 0.95, resampled: str = "unit", range: Range = UNBOUNDED) -> Interval:
    """Student's t interval of the mean: mean +- sem * t(n - 1), cut where it would leave the `range` of the values.

    `values` has shape (n,) and any unit; the standard error uses ddof 1. With n < 2 both bounds are NaN, since
    one number says nothing about its spread. NaN or infinite values raise a ValueError that counts them.

    >>> interval = t_interval([40, 60, 80, 20])
    >>> round((interval.high - interval.low) / 2, 6)
    41.085205
    """
    check_probability(level, "level")
    vector = finite_vector(values, "values")
    n = len(vector)
    if n < 2:
        return Interval(math.nan, math.nan, level, "t", n, resampled)
    # scipy.special is a fifth of the import time of scipy.stats, and still too slow to load with the package.
    from scipy.special import stdtrit

    mean = math.fsum(vector) / n
    sem = float(vector.std(ddof=1)) / math.sqrt(n)
    half = sem * float(stdtrit(n - 1, (1 + level) / 2))
    return Interval(max(mean - half, range[0]), min(mean + half, range[1]), level, "t", n, resampled)


class Resampling(TypedDict, total=False):
    """What to draw, how often, and which interval to form.

    - `rng`: the generator to draw from. Equal seed and labels draw equal resamples, whatever is scored.
    - `clusters`: one label per unit; units with the same label are drawn together. By default each
      unit is drawn alone and its row is its label.
    - `strata`: one label per unit; clusters are drawn within their stratum, whose size stays fixed.
    - `resamples`: how many, 10,000 by default; 0 gives the value alone, with NaN bounds.
    - `level`: of the interval, 0.95 by default.
    - `method`: "jackknife" (default; "percentile" for `bootstrap_indices`), "percentile" or "bca".
    - `range`: the lowest and highest possible value of the scores, or a pair for each, which the jackknife interval
      needs near its ends; by default none is known.
    - `resampled`: the word for what is drawn, such as "image"; it is kept in the interval.
    """

    rng: Required[np.random.Generator]
    clusters: Labels | None
    strata: Labels | None
    resamples: int
    level: float
    method: Method
    range: Range | Sequence[Range]
    resampled: str


@dataclass(frozen=True)
class ResamplingPlan:
    """The options of one bootstrap with defaults filled in and labels turned into clusters.

    `resamples` is 0 where no resample could differ from the data.
    """

    rng: np.random.Generator
    clusters: Clusters
    resamples: int
    level: float
    method: Method
    resampled: str
    range: Range | Sequence[Range] = UNBOUNDED


def make_resampling_plan(n_units: int, **options: Unpack[Resampling]) -> ResamplingPlan:
    """Check the options, fill in the defaults and number the clusters of `n_units` units.

    >>> plan = make_resampling_plan(3, rng=np.random.default_rng(0), clusters=["a", "b", "a"])
    >>> plan.clusters.n, plan.resampled, plan.resamples
    (2, 'cluster', 10000)
    """
    unknown = sorted(set(options) - set(Resampling.__annotations__))
    if unknown or "rng" not in options:
        wrong = f"unknown {', '.join(unknown)}" if unknown else "rng is missing"
        raise TypeError(f"bootstrap options: {wrong}; there are {', '.join(Resampling.__annotations__)}")
    level = options.get("level", 0.95)
    method = options.get("method", "jackknife")
    resamples = options.get("resamples", 10_000)
    labels, strata = options.get("clusters"), options.get("strata")
    check_probability(level, "level")
    if method not in METHODS:
        raise ValueError(f"method: expected one of {', '.join(map(repr, METHODS))}, got {method!r}")
    if resamples < 0:
        raise ValueError(f"resamples: expected at least 0, got {resamples}")
    clusters = find_clusters(n_units, labels, strata)
    drawn = ("unit" if labels is None else "cluster") + ("" if strata is None else " within stratum")
    return ResamplingPlan(
        rng=options["rng"],
        clusters=clusters,
        resamples=resamples if clusters.can_vary else 0,
        level=level,
        method=method,
        resampled=options.get("resampled", drawn),
        range=options.get("range", UNBOUNDED),
    )


def summarise(
    plan: ResamplingPlan,
    values: NDArray[np.float64],
    replicates: NDArray[np.float64],
    left_out: NDArray[np.float64] | Spread | None,
    ranges: ArrayLike | None = None,
    rests_on: ArrayLike | None = None,
) -> tuple[Estimate, ...]:
    """Turn replicates into one estimate per score.

    `values` has shape (n_scores,) and `replicates` (resamples, n_scores); those that are NaN or infinite are counted
    and left out. `left_out` is what the method needs: the spread of the scores without each cluster for the jackknife,
    these scores (n_clusters, n_scores) for BCa, None for percentiles. The jackknife takes the `ranges` of the scores,
    (n_scores, 2), by default that of the plan, and the number of clusters that each `rests_on`, by default all.

    >>> plan = make_resampling_plan(3, rng=np.random.default_rng(0), method="percentile")
    >>> (estimate,) = summarise(plan, np.array([2.0]), np.array([[1.0], [2.0], [np.nan]]), None)
    >>> estimate.undefined, estimate.resamples
    (1, 3)
    """
    bounds, rough = None, np.zeros(len(values), np.bool_)
    if isinstance(left_out, Spread):
        rough = left_out.is_rough()
        clusters = plan.clusters.n if rests_on is None else rests_on
        bounds = jackknife_bounds(values, left_out, plan.level, plan.range if ranges is None else ranges, clusters)
    estimates = []
    for i, value in enumerate(values):
        column = replicates[:, i]
        defined = column[np.isfinite(column)]
        if bounds is not None:
            low, high = float(bounds[0][i]), float(bounds[1][i])
        elif isinstance(left_out, np.ndarray):
            low, high = bca_bounds(defined, float(value), left_out[:, i], plan.clusters.sizes, plan.level)
        else:
            low, high = percentile_bounds(defined, plan.level)
        error = float(defined.std(ddof=1)) if len(defined) > 1 else math.nan
        if too_often_undefined(len(column) - len(defined), len(column), plan.level):
            low = high = math.nan
        interval = Interval(low, high, plan.level, plan.method, plan.clusters.n, plan.resampled)
        undefined = len(column) - len(defined)
        estimates.append(
            Estimate(float(value), interval, error, len(column), undefined, bool(rough[i]) and interval.defined)
        )
    return tuple(estimates)


def too_often_undefined(undefined: int, resamples: int, level: float) -> bool:
    """Whether a score is undefined in more resamples than an interval of this level leaves out: it then has none.

    The bounds come from the other resamples. The undefined ones could all lie beyond one bound; while they are no
    more than the share 1 - level, the interval still holds that much of what was drawn.

    >>> too_often_undefined(50, 1000, 0.95), too_often_undefined(51, 1000, 0.95)
    (False, True)
    """
    return undefined > (1 - level) * resamples + 1e-9


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
    # Half of the replicates that equal the value, but for rounding, count as below it, or coarse scores would look
    # biased.
    rounding = 1e-12 * abs(value)
    below = ((replicates < value - rounding).mean() + (replicates <= value + rounding).mean()) / 2
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
