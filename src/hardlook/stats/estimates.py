"""The options that every bootstrap shares, and the estimate it ends in."""

import math
from dataclasses import dataclass
from typing import Required, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from hardlook.stats.bounds import Method, bca_bounds, percentile_bounds
from hardlook.stats.clusters import Clusters, Labels, find_clusters
from hardlook.stats.finite import check_probability
from hardlook.stats.intervals import Estimate, Interval


class Resampling(TypedDict, total=False):
    """What to draw, how often, and which interval to form.

    - `rng`: the generator to draw from. Equal seed and labels draw equal resamples, whatever is scored.
    - `clusters`: one label per unit; units with the same label are drawn together. By default each
      unit is drawn alone and its row is its label.
    - `strata`: one label per unit; clusters are drawn within their stratum, whose size stays fixed.
    - `resamples`: how many, 10,000 by default; 0 gives the value alone, with NaN bounds.
    - `level`: of the interval, 0.95 by default.
    - `method`: "percentile" (default) or "bca".
    - `resampled`: the word for what is drawn, such as "image"; it is kept in the interval.
    """

    rng: Required[np.random.Generator]
    clusters: Labels | None
    strata: Labels | None
    resamples: int
    level: float
    method: Method
    resampled: str


@dataclass(frozen=True)
class Plan:
    """The options of one bootstrap with defaults filled in and labels turned into clusters.

    `resamples` is 0 where no resample could differ from the data.
    """

    rng: np.random.Generator
    clusters: Clusters
    resamples: int
    level: float
    method: Method
    resampled: str


def find_plan(n_units: int, **options: Unpack[Resampling]) -> Plan:
    """Check the options, fill in the defaults and number the clusters of `n_units` units.

    >>> plan = find_plan(3, rng=np.random.default_rng(0), clusters=["a", "b", "a"])
    >>> plan.clusters.n, plan.resampled, plan.resamples
    (2, 'cluster', 10000)
    """
    unknown = sorted(set(options) - set(Resampling.__annotations__))
    if unknown or "rng" not in options:
        wrong = f"unknown {', '.join(unknown)}" if unknown else "rng is missing"
        raise TypeError(f"bootstrap options: {wrong}; there are {', '.join(Resampling.__annotations__)}")
    level = options.get("level", 0.95)
    method = options.get("method", "percentile")
    resamples = options.get("resamples", 10_000)
    labels, strata = options.get("clusters"), options.get("strata")
    check_probability(level, "level")
    if method not in ("percentile", "bca"):
        raise ValueError(f"method: expected 'percentile' or 'bca', got {method!r}")
    if resamples < 0:
        raise ValueError(f"resamples: expected at least 0, got {resamples}")
    clusters = find_clusters(n_units, labels, strata)
    drawn = ("unit" if labels is None else "cluster") + ("" if strata is None else " within stratum")
    return Plan(
        rng=options["rng"],
        clusters=clusters,
        resamples=resamples if clusters.can_vary else 0,
        level=level,
        method=method,
        resampled=options.get("resampled", drawn),
    )


def summarise(
    plan: Plan,
    values: NDArray[np.float64],
    replicates: NDArray[np.float64],
    jackknife: NDArray[np.float64] | None,
) -> tuple[Estimate, ...]:
    """Turn replicates into one estimate per score.

    `values` has shape (n_scores,), `replicates` (resamples, n_scores) and `jackknife`, which only BCa needs,
    (n_clusters, n_scores). Replicates that are NaN or infinite are counted and left out.

    >>> plan = find_plan(3, rng=np.random.default_rng(0))
    >>> (estimate,) = summarise(plan, np.array([2.0]), np.array([[1.0], [2.0], [np.nan]]), None)
    >>> estimate.undefined, estimate.resamples
    (1, 3)
    """
    estimates = []
    for i, value in enumerate(values):
        column = replicates[:, i]
        defined = column[np.isfinite(column)]
        if jackknife is None:
            low, high = percentile_bounds(defined, plan.level)
        else:
            low, high = bca_bounds(defined, float(value), jackknife[:, i], plan.clusters.sizes, plan.level)
        error = float(defined.std(ddof=1)) if len(defined) > 1 else math.nan
        interval = Interval(low, high, plan.level, plan.method, plan.clusters.n, plan.resampled)
        estimates.append(Estimate(float(value), interval, error, len(column), len(column) - len(defined)))
    return tuple(estimates)
