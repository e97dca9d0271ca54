"""How many units a comparison needs before it can tell two models apart.

All functions here use the normal approximation to the paired t test and are meant for planning: the observed
difference and spread stand in for the true ones, so treat the answer as an order of magnitude.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from hardlook.stats.finite import check_probability, finite_vector


def units_needed(differences: ArrayLike, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Units needed to tell the observed mean difference from zero in a two-sided test.

    `differences` has shape (n,): score of A minus score of B per unit, or per cluster where units are drawn in
    clusters. The answer is a whole number n = ((z(1 - alpha/2) + z(power)) * sd / mean)^2, rounded up and at
    least 2. It is infinite where the mean difference is zero, and NaN with fewer than two differences.

    >>> units_needed([0.4, -0.2, 0.1, 0.1])  # mean 0.1, standard deviation 0.245
    48.0
    """
    vector = finite_vector(differences, "differences")
    factor = _quantile_sum(alpha, power)
    if len(vector) < 2:
        return math.nan
    mean = float(vector.mean())
    # A mean that is zero but for rounding would otherwise ask for 10**30 units instead of infinitely many.
    if abs(mean) <= 1e-12 * float(np.abs(vector).mean()):
        return math.inf
    needed = (factor * float(vector.std(ddof=1)) / mean) ** 2
    return float(max(2, math.ceil(needed)))


def units_needed_for(
    difference: float, standard_error: float, n: int, *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Units needed to tell an observed difference of any score from zero, given its standard error over n units.

    For scores that are no means, such as an mIoU: `standard_error` is that of the paired difference, as a bootstrap
    gives it, and shrinks with the root of the units. The answer is n * ((z(1 - alpha/2) + z(power)) * standard error
    / difference)^2, rounded up and at least 2. It is infinite where the difference is zero, and NaN where the
    difference or its error is not known or n < 2.

    >>> units_needed_for(0.01, 0.02, 240)
    7535.0
    """
    factor = _quantile_sum(alpha, power)
    if n < 2 or not (math.isfinite(difference) and math.isfinite(standard_error)):
        return math.nan
    # A difference that is zero but for rounding would otherwise ask for 10**20 units instead of infinitely many.
    if difference == 0 or abs(difference) < 1e-9 * standard_error:
        return math.inf
    needed = n * (factor * standard_error / difference) ** 2
    return float(max(2, math.ceil(needed)))


def detectable_difference(standard_deviation: float, n: int, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest mean difference that n units would reveal with the given power.

    `standard_deviation` is that of the paired differences per unit, in the units of the score; so is the
    result. With n < 2 it is NaN.

    >>> round(detectable_difference(0.2, 100), 4)
    0.056
    """
    factor = _quantile_sum(alpha, power)
    if not (standard_deviation >= 0 and math.isfinite(standard_deviation)):
        raise ValueError(f"standard_deviation: expected a finite number from 0, got {standard_deviation}")
    return factor * standard_deviation / math.sqrt(n) if n >= 2 else math.nan


def _quantile_sum(alpha: float, power: float) -> float:
    check_probability(alpha, "alpha")
    check_probability(power, "power")
    from scipy.special import ndtri

    return float(ndtri(1 - alpha / 2) + ndtri(power))
