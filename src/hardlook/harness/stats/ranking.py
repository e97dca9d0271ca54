"""Rankings with tied sets, Holm's correction for many comparisons, and how many units a comparison needs.

Models without a significant difference share a tied set. The sets are written as letters beside each model, as in a
compact letter display: two models that share a letter belong to a run of neighbours with no significant difference in
it. H.-P. Piepho, "An Algorithm for a Letter-Based Representation of All-Pairwise Comparisons", Journal of Computational
and Graphical Statistics 13 (2004).

With twenty true null hypotheses one in twenty comparisons looks significant at 0.05 by chance. Holm's method keeps the
probability of even one false claim at alpha and is never weaker than Bonferroni's. S. Holm, "A Simple Sequentially
Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6 (1979).

The numbers of units use the normal approximation to the paired t test and are meant for planning: the observed
difference and spread stand in for the true ones, so treat the result as an order of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.harness.stats.resampling import check_probability, finite_vector


@dataclass(frozen=True)
class Standing:
    """The place of one model: its rank, starting at 1, and the names of the tied sets it belongs to."""

    model: str
    score: float
    rank: int
    sets: tuple[str, ...]


def rank_models(
    models: Sequence[str], scores: ArrayLike, differs: ArrayLike, *, higher_is_better: bool = True
) -> tuple[Standing, ...]:
    """Rank models best first, with tied sets; a rank is one plus the number of better models it is not tied to.

    `scores` has shape (k,), `differs` shape (k, k): symmetric, True where two models differ significantly. A
    tied set is a longest run of neighbours in the ranking without a significant pair in it, so a pair that is
    alike but has a significant pair between them shares no set. Equal scores are ordered by name.

    >>> differs = [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    >>> for place in rank_models(["ant", "bee", "cat"], [0.7, 0.6, 0.5], differs):
    ...     print(place.rank, place.model, "".join(place.sets))
    1 ant a
    1 bee ab
    2 cat b
    """
    values = finite_vector(scores, "scores")
    apart = np.asarray(differs, dtype=np.bool_)
    k = len(models)
    if len(set(models)) != k:
        raise ValueError(f"models: {k - len(set(models))} of {k} names appear twice; names must differ")
    if len(values) != k or apart.shape != (k, k):
        raise ValueError(
            f"expected {k} scores and differs of shape ({k}, {k}) for {k} models, got {len(values)} and {apart.shape}"
        )
    if not np.array_equal(apart, apart.T):
        raise ValueError("differs: expected a symmetric matrix, one value for each pair of models")
    sign = -1.0 if higher_is_better else 1.0
    order = sorted(range(k), key=lambda i: (sign * values[i], models[i]))
    runs = _tied_runs(apart[np.ix_(order, order)])
    return tuple(
        Standing(
            model=models[i],
            score=float(values[i]),
            rank=1 + min(start for start, stop in runs if start <= place < stop),
            sets=tuple(tied_set_name(s) for s, (start, stop) in enumerate(runs) if start <= place < stop),
        )
        for place, i in enumerate(order)
    )


def _tied_runs(apart: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Longest runs [start, stop) of places without a significant pair; each place lies in at least one."""
    runs: list[tuple[int, int]] = []
    for start in range(len(apart)):
        stop = start + 1
        while stop < len(apart) and not apart[start:stop, stop].any():
            stop += 1
        if not runs or stop > runs[-1][1]:
            runs.append((start, stop))
    return runs


def tied_set_name(index: int) -> str:
    """The name of a tied set: a to z, then aa, ab and so on.

    >>> tied_set_name(0), tied_set_name(25), tied_set_name(26), tied_set_name(27)
    ('a', 'z', 'aa', 'ab')
    """
    name = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, len(ascii_lowercase))
        name = ascii_lowercase[letter] + name
    return name


def competition_ranks(scores: ArrayLike, *, tolerance: float = 0.0, higher_is_better: bool = True) -> NDArray[np.int64]:
    """Competition ranks (1, 2, 2, 4): equal scores share the best rank and the next ranks stay empty.

    `scores` has shape (k,), finite. Scores within `tolerance` of the best score of their group are equal;
    comparing with the best, not with the neighbour, keeps long chains of small steps apart.

    >>> competition_ranks([0.9, 0.5, 0.7, 0.7])
    array([1, 4, 2, 2])
    >>> competition_ranks([1.0, 0.95, 0.9], tolerance=0.06)
    array([1, 1, 3])
    """
    if tolerance < 0:
        raise ValueError(f"tolerance: expected at least 0, got {tolerance}")
    values = finite_vector(scores, "scores")
    cost = -values if higher_is_better else values
    order = np.argsort(cost, kind="stable")
    ranks = np.empty(len(cost), dtype=np.int64)
    best, rank = -np.inf, 0
    for place, i in enumerate(order):
        if rank == 0 or cost[i] - best > tolerance:
            best, rank = cost[i], place + 1
        ranks[i] = rank
    return ranks


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down adjusted p-values, to be compared with alpha as they are.

    `p_values` has any shape and values in [0, 1] or NaN; all of them form one family. The result has the same
    shape. A NaN stays NaN and is not counted: it is a comparison that was not made.

    >>> holm([0.01, 0.04, 0.03, float("nan")])
    array([0.03, 0.06, 0.06,  nan])
    """
    p = np.asarray(p_values, dtype=np.float64)
    outside = int(((p < 0) | (p > 1)).sum())
    if outside:
        raise ValueError(f"p_values: {outside} of {p.size} lie outside [0, 1]")
    adjusted = p.copy()
    made = ~np.isnan(p)
    family = p[made]
    order = np.argsort(family, kind="stable")
    steps = family[order] * np.arange(len(family), 0, -1)
    result = np.empty_like(family)
    result[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    adjusted[made] = result
    return adjusted


def significant_pairs(p_values: ArrayLike, alpha: float = 0.05) -> NDArray[np.bool_]:
    """Which pairs of models differ at `alpha` after Holm's correction over all pairs.

    `p_values` has shape (k, k) and is symmetric; the diagonal is ignored. The result has the same shape, is
    symmetric, and is False on the diagonal and where the p-value is NaN.

    >>> significant_pairs([[1, 0.01, 0.2], [0.01, 1, 0.03], [0.2, 0.03, 1]]).astype(int)
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 0, 0]])
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 2 or p.shape[0] != p.shape[1]:
        raise ValueError(f"p_values: expected shape (k, k), got {p.shape}")
    if not np.array_equal(p, p.T, equal_nan=True):
        raise ValueError("p_values: expected a symmetric matrix, one value for each pair of models")
    check_probability(alpha, "alpha")
    upper = np.triu_indices(len(p), k=1)
    differs = np.zeros(p.shape, dtype=np.bool_)
    differs[upper] = holm(p[upper]) <= alpha
    return differs | differs.T


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
    # A mean that is zero but for rounding would otherwise need 10**30 units instead of infinitely many.
    if abs(mean) <= 1e-12 * float(np.abs(vector).mean()):
        return math.inf
    needed = (factor * float(vector.std(ddof=1)) / mean) ** 2
    return float(max(2, math.ceil(needed)))


def units_needed_for(
    difference: float,
    standard_error: float,
    n: int,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    fixed_error: float = 0.0,
    freedom: float = math.inf,
) -> float:
    """Units needed to tell an observed difference of any score from zero, given its standard error over n units.

    For scores that are not means, such as an mIoU: `standard_error` is that of the paired difference, as a bootstrap
    gives it, and shrinks with the root of the units. The answer is n * ((z(1 - alpha/2) + z(power)) * standard error
    / difference)^2, rounded up and at least 2. `fixed_error` is a further one that more units do not make smaller,
    such as that of a few seeds: its share of the difference is taken off first. `freedom` is that of the standard
    error over n units; where it is given, quantiles are those of Student's t, with as many more for more units. The
    answer is infinite where the difference is zero or within the fixed error, and NaN where the difference or its error
    is not known or n < 2.

    >>> units_needed_for(0.01, 0.02, 240)
    7535.0
    """
    factor = _quantile_sum(alpha, power)
    if n < 2 or not (math.isfinite(difference) and math.isfinite(standard_error)):
        return math.nan
    # A difference that is zero but for rounding would otherwise need 10**20 units instead of infinitely many.
    if difference == 0 or abs(difference) < 1e-9 * standard_error:
        return math.inf
    needed = float(n)
    # More units have more degrees of freedom, and smaller quantiles need fewer units: a few rounds settle it.
    for _ in range(1 if math.isinf(freedom) else 20):
        room = difference**2 - (factor * fixed_error) ** 2
        if not room > 0:
            return math.inf
        needed = n * (factor * standard_error) ** 2 / room
        factor = _quantile_sum(alpha, power, max(freedom * needed / n, 2.0))
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


def _quantile_sum(alpha: float, power: float, freedom: float = math.inf) -> float:
    check_probability(alpha, "alpha")
    check_probability(power, "power")
    from scipy.special import ndtri, stdtrit

    if math.isfinite(freedom):
        return float(stdtrit(freedom, 1 - alpha / 2) + stdtrit(freedom, power))
    return float(ndtri(1 - alpha / 2) + ndtri(power))
