"""The paired permutation test: is the difference larger than exchangeable models would show.

If A and B are equally good, then swapping their results on any image is harmless. The test swaps them on random
sets of whole clusters and counts how often the difference gets at least as large as the observed one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.stats.bootstrap import Statistic, apply_statistic
from hardlook.stats.clusters import Labels, find_clusters
from hardlook.stats.finite import finite_vector
from hardlook.stats.paired import paired_rows
from hardlook.stats.swap_counts import SwapCounts, is_exact, swaps_of


@dataclass(frozen=True)
class PermutationTest:
    """A difference and its two-sided p-value.

    `difference` is score of A minus score of B. `p_value` lies in (0, 1], or is NaN where the difference is
    undefined. `swaps` counts the swaps tried: all 2**n if `exact`, else random ones. `undefined` counts those
    whose difference was NaN or infinite; they count against significance. `n` counts the clusters and
    `swapped` names them.
    """

    difference: float
    p_value: float
    n: int
    swaps: int
    exact: bool
    undefined: int
    swapped: str


def permutation_test(
    sums_a: ArrayLike,
    sums_b: ArrayLike,
    statistic: Statistic,
    *,
    rng: np.random.Generator,
    clusters: Labels | None = None,
    swaps: int = 9_999,
    swapped: str | None = None,
) -> PermutationTest:
    """Test whether A and B differ in a score that is a function of sums.

    `sums_a` and `sums_b` have equal shape (n_units, n_columns), row i of both being the same unit. `statistic`
    maps totals (m, n_columns) to scores (m,). With up to 14 clusters every swap is tried and the p-value is
    exact. With more, `swaps` random ones are, and p = (count + 1) / (swaps + 1).

    >>> from hardlook.stats.bootstrap import ratio
    >>> a, b = [[3, 4], [4, 4], [2, 4]], [[2, 4], [3, 4], [1, 4]]
    >>> permutation_test(a, b, ratio, rng=np.random.default_rng(0)).p_value  # 2 of 8 swaps reach 0.25
    0.25
    """
    rows_a, rows_b = paired_rows(sums_a, sums_b)
    groups = find_clusters(len(rows_a), clusters)
    cluster_a, cluster_b = groups.sum(rows_a), groups.sum(rows_b)
    total_a, total_b = cluster_a.sum(axis=0), cluster_b.sum(axis=0)
    moved = cluster_b - cluster_a

    def score(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = apply_statistic(statistic, totals)
        if scores.shape[1] != 1:
            raise ValueError(f"statistic: expected one score, got {scores.shape[1]}; test them one by one")
        return scores[:, 0]

    def difference(mask: NDArray[np.float64]) -> NDArray[np.float64]:
        change = mask @ moved
        with np.errstate(invalid="ignore"):
            return score(total_a + change) - score(total_b - change)

    scale = float(np.abs([score(total_a[None]), score(total_b[None])]).max())
    return _test(difference, groups.n, scale, swaps, rng, swapped or _name(clusters))


def permutation_test_mean(
    values_a: ArrayLike,
    values_b: ArrayLike,
    *,
    rng: np.random.Generator,
    clusters: Labels | None = None,
    swaps: int = 9_999,
    swapped: str | None = None,
) -> PermutationTest:
    """Test whether the means over units of A and B differ; both have shape (n_units,), finite.

    Swapping a cluster flips the sign of its differences, so this is the sign-flip test. The number of swaps
    and the p-value are those of `permutation_test`.

    >>> permutation_test_mean([3, 5, 4], [1, 2, 3], rng=np.random.default_rng(0)).p_value
    0.25
    """
    a, b = finite_vector(values_a, "values of A"), finite_vector(values_b, "values of B")
    if a.shape != b.shape:
        raise ValueError(f"A has {len(a)} values and B {len(b)}; both need one for each shared unit")
    groups = find_clusters(len(a), clusters)
    # The mean of no units is NaN, as is its p-value.
    units = len(a) or math.nan
    gains = groups.sum((a - b)[:, None])[:, 0] / units
    total = gains.sum() if len(a) else math.nan

    def difference(mask: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(total - 2 * (mask @ gains))

    # Rounding errors are relative to the gains, also where these cancel and the difference is near zero.
    scale = float(np.abs(gains).sum())
    return _test(difference, groups.n, scale, swaps, rng, swapped or _name(clusters))


def _test(
    difference: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    n: int,
    scale: float,
    swaps: int,
    rng: np.random.Generator,
    swapped: str,
) -> PermutationTest:
    blocks = swaps_of(n, swaps, rng)
    exact = is_exact(n)
    observed = float(difference(np.zeros((1, n)))[0])
    if not math.isfinite(observed):
        return PermutationTest(observed, math.nan, n, 0, exact, 0, swapped)
    counts = SwapCounts(np.array([observed]), np.array([scale]))
    for mask in blocks:
        counts.add(difference(mask)[:, None])
    p_value = float(counts.p_values(exact=exact)[0])
    return PermutationTest(observed, p_value, n, counts.tried, exact, int(counts.undefined[0]), swapped)


def _name(clusters: Labels | None) -> str:
    return "unit" if clusters is None else "cluster"
