"""What an interval is, and the t interval of a mean.

The t interval is for a handful of numbers that are already summaries, such as one score per fold. For many
units, or for a score that is not a mean, use `hardlook.stats.bootstrap`.
"""

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from hardlook.stats.finite import check_probability, finite_vector


@dataclass(frozen=True)
class Interval:
    """A confidence interval together with how it was made.

    `low` and `high` are in the units of the score and are both NaN where no interval exists, for example with
    fewer than two units. `level` lies in (0, 1). `n` counts the things that vary (units, or clusters where
    they are given) and `resampled` names them.

    >>> Interval(0.4, 0.6, level=0.95, method="percentile", n=20, resampled="image").defined
    True
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
    """A score, its interval, and what the resampling met on the way.

    `standard_error` is the standard deviation (ddof 1) of the score over the resamples. `undefined` counts the
    resamples, out of `resamples`, in which the score was NaN or infinite; the interval comes from the others.

    >>> interval = Interval(0.4, 0.6, level=0.95, method="percentile", n=20, resampled="image")
    >>> Estimate(0.5, interval, standard_error=0.05, resamples=1000, undefined=0).value
    0.5
    """

    value: float
    interval: Interval
    standard_error: float
    resamples: int
    undefined: int


def t_interval(values: ArrayLike, level: float = 0.95, resampled: str = "unit") -> Interval:
    """Student's t interval of the mean: mean +- sem * t(n - 1).

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

    mean = float(vector.mean())
    sem = float(vector.std(ddof=1)) / math.sqrt(n)
    half = sem * float(stdtrit(n - 1, (1 + level) / 2))
    return Interval(mean - half, mean + half, level, "t", n, resampled)
