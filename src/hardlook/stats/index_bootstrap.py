"""The bootstrap for scores that are not functions of sums, such as a rank correlation or an AP.

The score is computed anew from the units of every resample, so it costs `resamples` calls. The draws are those
of `hardlook.stats.bootstrap`: with equal seed and labels both see the same resamples.
"""

from collections.abc import Callable
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from hardlook.stats.estimates import Resampling, find_plan, summarise
from hardlook.stats.intervals import Estimate
from hardlook.stats.resampling import multiplicities

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
    plan = find_plan(n_units, **options)
    units = np.arange(n_units)
    codes = plan.clusters.codes

    def score(indices: NDArray[np.int64]) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(statistic(indices))

    value = np.array([score(units)])
    replicates = [
        score(np.repeat(units, row[codes]))
        for block in multiplicities(plan.clusters, plan.resamples, plan.rng)
        for row in block.astype(np.int64)
    ]
    jackknife = None
    if plan.method == "bca" and plan.resamples:
        jackknife = np.array([[score(units[codes != cluster])] for cluster in range(plan.clusters.n)])
    return summarise(plan, value, np.array(replicates).reshape(-1, 1), jackknife)[0]
