"""The jackknife interval: how much a score changes when each cluster is left out, turned into bounds within its range.

The standard error comes from the scores without each cluster (M. H. Quenouille, "Notes on Bias in Estimation",
Biometrika 43 (1956); J. W. Tukey, 1958). Three things make intervals of few clusters cover what they should:

- The quantile is Student's t. A few large clusters, or a long tail, make the standard error itself uncertain: the
  degrees of freedom are those of a variance whose terms have the observed kurtosis, Satterthwaite's idea (Biometrics
  Bulletin 2 (1946)) with an estimated fourth moment. For a normal sample they are n - 1.
- Near the ends of its range a score varies less. The bounds are those of E. B. Wilson (Journal of the American
  Statistical Association 22 (1927)): the values m with |score - m| = t * error(m), where error(m)^2 is proportional to
  (m - lowest) (highest - m), and to m - lowest for a range without a highest value. They never leave the range.
- Where all clusters agree there is no spread to measure. With n clusters a share of 1 - ((1 - level) / 2)^(1/n) of
  other clusters can have been missed, as in the interval of C. J. Clopper and E. S. Pearson (Biometrika 26 (1934));
  these might have had any value of the range. A score without a known range has no interval then.

Without a range the bounds follow a quarter of the observed skewness, and the degrees of freedom fall faster with the
kurtosis; both by simulation. `benchmarks/interval_coverage.py` measures all of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
Range = tuple[float, float]

UNBOUNDED: Range = (-math.inf, math.inf)

# By simulation, for scores without a range: the part of the skewness, and the power of the kurtosis.
_SKEWNESS_PART, _KURTOSIS_POWER = 0.25, 1.5

# By simulation, where intervals miss their goal (docs/statistics.md): fewer degrees of freedom than this, and either
# less than this part of those of a normal sample or a score whose own distribution is more skewed than this.
_ROUGH_FREEDOM, _ROUGH_TAILS, _ROUGH_SKEWNESS = 15.0, 0.5, 0.4

# Changes below this, relative to the score, are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Spread:
    """What the scores without each cluster say about k scores, each field (k,).

    `standard_error` is NaN where a score is undefined without some cluster. `freedom` counts clusters less strata.
    `tails` in (0, 1] is the kurtosis of a normal sample over the observed one. `slope` is the third moment of the
    changes over the second one.
    """

    standard_error: Numbers
    freedom: Numbers
    tails: Numbers
    slope: Numbers

    def quantile(self, level: float, power: float = 1.0) -> Numbers:
        """The two-sided t quantile of each score."""
        from scipy.special import stdtrit

        found: Numbers = stdtrit(np.maximum(self.freedom * self.tails**power, 1.0), (1 + level) / 2)
        return found

    def is_rough(self) -> NDArray[np.bool_]:
        """(k,): whether so few clusters decide a score that its interval covers less, or more, than it should.

        These are a few large clusters, a long tail, and a few wrong answers among right ones.

        >>> even = Spread(*(np.array([value]) for value in (0.1, 29.0, 1.0, 0.0)))
        >>> tail = Spread(*(np.array([value]) for value in (0.1, 29.0, 0.3, 0.05)))
        >>> bool(even.is_rough()[0]), bool(tail.is_rough()[0])
        (False, True)
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            skewed = np.abs(self.slope) > _ROUGH_SKEWNESS * self.standard_error
            few = (self.standard_error > 0) & (self.freedom * self.tails < _ROUGH_FREEDOM)
        return few & (skewed | (self.tails < _ROUGH_TAILS))

    def p_values(self, values: ArrayLike) -> Numbers:
        """Two-sided p-values (k,) that the true values are 0; NaN where there is no spread."""
        from scipy.special import stdtr

        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.abs(np.asarray(values, np.float64)) / self.standard_error
            p: Numbers = 2 * stdtr(np.maximum(self.freedom * self.tails, 1.0), -ratio)
        return np.where(self.standard_error > 0, p, np.nan)


def add_variances(spread: Spread, parts: Sequence[tuple[Numbers, Numbers | float]]) -> Spread:
    """The spread with further, independent variances (k,), each with its degrees of freedom, by Welch's formula.

    >>> spread = Spread(np.array([3.0]), np.array([10.0]), np.array([1.0]), np.array([0.0]))
    >>> both = add_variances(spread, [(np.array([16.0]), 2)])
    >>> float(both.standard_error[0]), round(float(both.freedom[0]), 2)
    (5.0, 4.59)
    """
    if not parts:
        return spread
    own = spread.standard_error**2
    total = own + sum(variance for variance, _ in parts)
    freedom = np.maximum(spread.freedom * spread.tails, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        joint = total**2 / (own**2 / freedom + sum(variance**2 / count for variance, count in parts))
    joint = np.where(np.isfinite(joint), joint, freedom)
    return Spread(np.sqrt(total), joint, np.ones_like(joint), spread.slope)


class SpreadMeter:
    """Adds up the scores without each cluster, in blocks, so that they are never all in memory.

    `values` (k,) are the scores of all clusters, `sizes` (strata,) the clusters of each stratum. A stratum of one
    cluster cannot vary and has no part in the spread. Where at least half of the clusters of a stratum change nothing
    (images without the class), the score rests on the others, and only these count; a few that change nothing are
    those that happen to agree with the score.

    >>> heights = np.array([1.0, 2.0, 4.0, 9.0])
    >>> meter = SpreadMeter(np.array([4.0]), np.array([4]))
    >>> meter.add((heights.sum() - heights[:, None]) / 3)
    >>> round(float(meter.measure().standard_error[0]), 9) == round(float(heights.std(ddof=1)) / 2, 9)
    True
    """

    def __init__(self, values: Numbers, sizes: NDArray[np.int64]) -> None:
        self._values = np.asarray(values, np.float64)
        self._stratum = np.repeat(np.arange(len(sizes)), sizes)
        self._sizes = np.asarray(sizes, np.float64)
        self._varies = self._sizes >= 2
        # Of the changes: how many, and the sums of their first four powers.
        self._sums = np.zeros((len(sizes), 5, len(self._values)))
        self._undefined = ~np.isfinite(self._values)
        self._done = 0

    def add(self, scores: Numbers) -> None:
        """Add the next clusters: the scores without each, (m, k), in the order of the clusters."""
        stratum = self._stratum[self._done : self._done + len(scores)]
        self._done += len(scores)
        with np.errstate(invalid="ignore"):
            change = scores - self._values
        undefined = ~np.isfinite(change)
        if undefined.any():
            self._undefined |= (undefined & self._varies[stratum][:, None]).any(axis=0)
            change = np.where(undefined, 0.0, change)
        active = np.abs(change) > _ROUNDING * np.abs(self._values)
        change = np.where(active, change, 0.0)
        starts = np.flatnonzero(np.diff(stratum, prepend=-1))
        square = change * change
        for place, power in enumerate((active.astype(np.float64), change, square, square * change, square * square)):
            self._sums[stratum[starts], place] += np.add.reduceat(power, starts, axis=0)

    def measure(self) -> Spread:
        """The spread, after all clusters were added."""
        active, first, second, third, fourth = np.moveaxis(self._sums[self._varies], 1, 0)
        n = np.where(
            (active > 0) & (2 * active > self._sizes[self._varies, None]), self._sizes[self._varies, None], active
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(n > 0, first / n, 0.0)
            part = np.where(n > 1, (n - 1) / n, np.where(n == 1, 0.5, 0.0))
            central2 = np.maximum(second - n * mean**2, 0.0)
            central3 = third - 3 * mean * second + 2 * n * mean**3
            central4 = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * n * mean**4
            # A single cluster that changes the score: its change against none.
            alone = n == 1
            central2, central4 = np.where(alone, second, central2), np.where(alone, fourth, central4)
            variance = (part * central2).sum(axis=0)
            squares = (part**2 * central2).sum(axis=0)
            clusters = n.sum(axis=0)
            freedom = np.maximum(clusters - (n > 0).sum(axis=0), 1.0)
            normal = 3 * (clusters - 1) / (clusters + 1)
            observed = clusters * (part**4 * central4).sum(axis=0) / squares**2
            tails = np.where(squares > 0, np.clip(normal / observed, 0.0, 1.0), 1.0)
            slope = np.where(squares > 0, -(part**3 * central3).sum(axis=0) / squares, 0.0)
        error = np.where(self._undefined, np.nan, np.sqrt(variance))
        return Spread(error, freedom, np.where(np.isfinite(tails), tails, 1.0), slope)


def jackknife_bounds(
    values: ArrayLike, spread: Spread, level: float, ranges: ArrayLike = UNBOUNDED, rests_on: ArrayLike = 0
) -> tuple[Numbers, Numbers]:
    """Low and high (k,) of scores `values` (k,), NaN where there is no interval.

    `ranges` is (k, 2) or one pair: the lowest and highest possible value, infinite where there is none. `rests_on`
    counts the clusters behind each score, for scores on which all clusters agree.

    >>> spread = Spread(np.array([0.3]), np.array([9.0]), np.array([1.0]), np.array([0.0]))
    >>> low, high = jackknife_bounds([0.9], spread, 0.95, (0, 1))
    >>> bool(0 < low[0] < 0.9 < high[0] < 1)
    True
    >>> agreed = Spread(np.array([0.0]), np.array([29.0]), np.array([1.0]), np.array([0.0]))
    >>> [round(float(bound[0]), 3) for bound in jackknife_bounds([1.0], agreed, 0.95, (0, 1), 30)]
    [0.884, 1.0]
    """
    value = np.asarray(values, np.float64)
    lowest, highest = np.moveaxis(np.broadcast_to(np.asarray(ranges, np.float64), (len(value), 2)), 1, 0)
    # A value beyond its range was not measured on that scale: no range is known then.
    outside = (value < lowest - 1e-9) | (value > highest + 1e-9)
    lowest, highest = np.where(outside, -np.inf, lowest), np.where(outside, np.inf, highest)
    bounded, above = np.isfinite(lowest) & np.isfinite(highest), np.isfinite(lowest) & ~np.isfinite(highest)
    below = ~np.isfinite(lowest) & np.isfinite(highest)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        variance = spread.standard_error**2
        free = ~(bounded | above | below)
        t = np.where(free, spread.quantile(level, _KURTOSIS_POWER), spread.quantile(level))
        # (value - m)^2 = t^2 * variance(m), a quadratic in m: variance(m) = constant + linear m + square m^2.
        whole = variance / ((value - lowest) * (highest - value))
        linear = np.select(
            [bounded, above, below],
            [whole * (lowest + highest), variance / (value - lowest), variance / (value - highest)],
            _SKEWNESS_PART * spread.slope,
        )
        square = np.where(bounded, -whole, 0.0)
        constant = variance - linear * value - square * value**2
        a, b, c = 1 - t**2 * square, -2 * value - t**2 * linear, value**2 - t**2 * constant
        root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
        low, high = (-b - root) / (2 * a), (-b + root) / (2 * a)
        missed = 1 - ((1 - level) / 2) ** (1 / np.maximum(np.asarray(rests_on, np.float64), 1.0))
        width = np.where(bounded, highest - lowest, 0.0)
        agreed = spread.standard_error <= 1e-10 * np.maximum(np.abs(value), width)
        agreed |= (value <= lowest) | (value >= highest)
        low = np.where(agreed, np.where(bounded, value - (value - lowest) * missed, np.nan), low)
        high = np.where(agreed, np.where(bounded, value + (highest - value) * missed, np.nan), high)
        # Rounding must not push a bound beyond the score or out of the range.
        low, high = np.maximum(np.minimum(low, value), lowest), np.minimum(np.maximum(high, value), highest)
    known = np.isfinite(value) & np.isfinite(spread.standard_error) & np.isfinite(low) & np.isfinite(high)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)
