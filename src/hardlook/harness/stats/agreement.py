"""Agreement between people who judge the same units: Krippendorff's alpha, Fleiss' and Cohen's kappa.

Each compares how often people disagree with how often they would by chance: 1 is full agreement, 0 is chance, and
below 0 they disagree more than chance. Alpha takes missing ratings and ordered values, so it is the one for a crowd.
K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011). J. L. Fleiss, "Measuring Nominal Scale Agreement
Among Many Raters", Psychological Bulletin 76 (1971). J. Cohen, "A Coefficient of Agreement for Nominal Scales" (1960).

All three are functions of sums over units, so their intervals come from the sums of resampled units.

>>> nan = float("nan")
>>> round(krippendorff_alpha([[1, 2, 3, nan], [1, 2, 3, 3], [nan, 3, 3, 3]], "nominal"), 6)  # 1 - 9 * 2 / 56
0.678571
"""

from __future__ import annotations

from typing import Literal, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.harness.stats.bootstrap import Statistic, apply_statistic, bootstrap_score
from hardlook.harness.stats.intervals import Estimate, Resampling
from hardlook.harness.stats.resampling import finite_rows

Level = Literal["nominal", "ordinal", "interval"]

Weights = Literal["none", "linear", "quadratic"]

Array = NDArray[np.float64]


def krippendorff_alpha(ratings: ArrayLike, level: Level = "nominal") -> float:
    """Krippendorff's alpha, at most 1.

    `ratings` has shape (raters, units), NaN where a rater did not rate a unit. `level` says what the values mean:
    `nominal` names, `ordinal` ranks, `interval` numbers whose differences count. Units with fewer than two ratings
    cannot disagree and are left out. NaN where no unit has two ratings, or where all ratings of such units are
    equal: chance then predicts no disagreement either.

    >>> krippendorff_alpha([[1, 2, 5], [1, 2, 5]], "interval")
    1.0
    """
    sums, statistic = _alpha_parts(ratings, level)
    return _of_all(sums, statistic)


def krippendorff_alpha_interval(ratings: ArrayLike, scale: Level, /, **options: Unpack[Resampling]) -> Estimate:
    """Krippendorff's alpha with an interval from resampled units.

    As `krippendorff_alpha`, whose `level` is `scale` here; `options` are the fields of `Resampling`, of which `rng`
    is required and `clusters` has one label per unit. Needs memory for units x distinct values squared.

    >>> ratings = [[1, 2, 5, 4, 1], [1, 3, 5, 4, 2]]
    >>> estimate = krippendorff_alpha_interval(ratings, "ordinal", rng=np.random.default_rng(0), resampled="pair")
    >>> estimate.value in estimate.interval, estimate.interval.n
    (True, 5)
    """
    sums, statistic = _alpha_parts(ratings, scale)
    return bootstrap_score(sums, statistic, **options)


def fleiss_kappa(counts: ArrayLike) -> float:
    """Fleiss' kappa, at most 1.

    `counts` has shape (units, categories): how many raters put each unit into each category, whole numbers from 0.
    Units may have different numbers of ratings (Fleiss' own have one); those with fewer than two are left out. NaN
    where none is left, or where all ratings fall into one category.

    >>> fleiss_kappa([[3, 0], [0, 3], [3, 0]]), round(fleiss_kappa([[2, 1], [1, 2]]), 6)
    (1.0, -0.333333)
    """
    return _of_all(_fleiss_sums(counts), _fleiss)


def fleiss_kappa_interval(counts: ArrayLike, /, **options: Unpack[Resampling]) -> Estimate:
    """Fleiss' kappa with an interval from resampled units; `options` are the fields of `Resampling`.

    >>> counts = [[3, 0], [0, 3], [2, 1], [3, 0]]
    >>> fleiss_kappa_interval(counts, rng=np.random.default_rng(0), resamples=100).interval.resampled
    'unit'
    """
    return bootstrap_score(_fleiss_sums(counts), _fleiss, **options)


def cohen_kappa(a: ArrayLike, b: ArrayLike, weights: Weights = "none") -> float:
    """Cohen's kappa of two raters, at most 1.

    `a` and `b` have shape (units,), the finite values that each gave. `weights` makes a disagreement worse with the
    distance of the two values among the sorted distinct ones: not at all, `linear` or `quadratic`. NaN without units
    or where both give one same value throughout.

    >>> cohen_kappa([1, 1, 2, 2], [1, 1, 2, 1])
    0.5
    """
    sums, statistic = _cohen_parts(a, b, weights)
    return _of_all(sums, statistic)


def _alpha_parts(ratings: ArrayLike, level: Level) -> tuple[Array, Statistic]:
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"ratings: expected shape (raters, units), got {table.shape}")
    if np.isinf(table).any():
        raise ValueError(f"ratings: {int(np.isinf(table).sum())} of {table.size} are infinite; NaN means missing")
    if level not in get_args(Level):
        raise ValueError(f"level: expected one of {', '.join(get_args(Level))}, got {level!r}")
    given = ~np.isnan(table)
    values, codes = np.unique(table[given], return_inverse=True)
    counts = np.zeros((table.shape[1], len(values)))
    np.add.at(counts, (np.nonzero(given)[1], codes), 1.0)
    people = counts.sum(axis=1)
    # Ordered pairs of ratings within a unit, so weighed that each rating counts once.
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(values))
    pairs = np.where(people[:, None, None] > 1, pairs / np.maximum(people - 1, 1)[:, None, None], 0.0)

    def alpha(totals: Array) -> Array:
        coincidences = totals.reshape(len(totals), len(values), len(values))
        of_value = coincidences.sum(axis=2)
        distance = _distance(values, of_value, level)
        observed = (coincidences * distance).sum(axis=(1, 2))
        expected = np.einsum("mc,mck,mk->m", of_value, distance, of_value)
        return np.asarray(1 - (of_value.sum(axis=1) - 1) * observed / np.where(expected > 0, expected, np.nan))

    return pairs.reshape(len(pairs), len(values) ** 2), alpha


def _distance(values: Array, of_value: Array, level: Level) -> Array:
    """(m, C, C) or (1, C, C) squared distances of C values, `of_value` (m, C) being how often each was given."""
    if level == "nominal":
        return 1 - np.eye(len(values))[None]
    # Ranks: how many ratings lie between two values, half of their own included.
    place = values[None] if level == "interval" else np.cumsum(of_value, axis=1) - of_value / 2
    return np.asarray((place[:, :, None] - place[:, None, :]) ** 2)


def _fleiss_sums(counts: ArrayLike) -> Array:
    """(units, 2 + categories): share of agreeing pairs, 1, ratings by category; zeros for a unit with one rating."""
    table = finite_rows(counts, "counts")
    if (table < 0).any() or (table != np.floor(table)).any():
        raise ValueError("counts: expected whole numbers from 0, how many raters chose each category")
    people = table.sum(axis=1)
    agreeing = ((table**2).sum(axis=1) - people) / np.maximum(people * (people - 1), 1)
    return np.asarray(np.column_stack([agreeing, np.ones(len(table)), table]) * (people > 1)[:, None])


def _fleiss(totals: Array) -> Array:
    observed = totals[:, 0] / totals[:, 1]
    shares = totals[:, 2:] / totals[:, 2:].sum(axis=1, keepdims=True)
    return _beyond_chance(observed, (shares**2).sum(axis=1))


def _cohen_parts(a: ArrayLike, b: ArrayLike, weights: Weights) -> tuple[Array, Statistic]:
    one, other = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"a has {one.size} values and b {other.size}; expected shape (units,) of both")
    both = finite_rows(np.stack([one, other]), "a and b")
    if weights not in get_args(Weights):
        raise ValueError(f"weights: expected one of {', '.join(get_args(Weights))}, got {weights!r}")
    values, codes = np.unique(both, return_inverse=True)
    first, second = codes.reshape(both.shape)
    places = np.arange(len(values))
    sums = np.zeros((both.shape[1], len(values) ** 2))
    sums[np.arange(len(sums)), first * len(values) + second] = 1
    gap = np.abs(places[:, None] - places).astype(np.float64)
    cost = {"none": (gap > 0).astype(np.float64), "linear": gap, "quadratic": gap**2}[weights]
    furthest = max(1.0, float(cost.max(initial=0.0)))

    def kappa(totals: Array) -> Array:
        shares = totals.reshape(len(totals), len(values), len(values)) / totals.sum(axis=1)[:, None, None]
        chance = shares.sum(axis=2)[:, :, None] * shares.sum(axis=1)[:, None, :]
        observed, expected = ((part * cost / furthest).sum(axis=(1, 2)) for part in (shares, chance))
        return _beyond_chance(1 - observed, 1 - expected)

    return sums, kappa


def _beyond_chance(observed: Array, expected: Array) -> Array:
    # Chance that agrees always, but for rounding, leaves nothing to be better at.
    return np.asarray((observed - expected) / np.where(1 - expected > 1e-12, 1 - expected, np.nan))


def _of_all(sums: Array, statistic: Statistic) -> float:
    return float(apply_statistic(statistic, sums.sum(axis=0)[None])[0, 0])
