"""Paired comparison of two runs on the same units: the bootstrap of the difference, and the permutation test.

Two models score the same images, so their scores are correlated. Drawing the same resample for both keeps the
correlation, and the interval of the difference is narrower than two separate intervals suggest.

If A and B are equally good, then their results on any image are exchangeable. The permutation test swaps them on
random sets of whole clusters and counts how often the difference is at least as large as the observed one. One set of
swaps serves any number of scores: a hundred scores cost the same draws as one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.harness.stats.bootstrap import Statistic, apply_statistic, bootstrap_scores
from hardlook.harness.stats.intervals import Estimate, Resampling
from hardlook.harness.stats.resampling import Labels, block_sizes, find_clusters, finite_rows, finite_vector

# Up to this many clusters all 2**n swaps are tried, and the p-value has no random part.
EXACT_CLUSTERS = 14

# Differences that are equal in exact arithmetic may differ by rounding; those closer than this are ties.
TIE = 1e-12


def paired_bootstrap(
    sums_a: ArrayLike, sums_b: ArrayLike, statistic: Statistic, **options: Unpack[Resampling]
) -> Estimate:
    """Bootstrap the difference, score of A minus score of B, with the same resamples for both.

    `sums_a` and `sums_b` have equal shape (n_units, n_columns), row i of both being the same unit. `statistic`
    maps totals (m, n_columns) to scores (m,). `options` are the fields of `Resampling`. For the difference of
    two means, `bootstrap_mean(a - b)` does the same.

    >>> from hardlook.harness.stats.bootstrap import ratio
    >>> a, b = [[3, 4], [4, 4], [2, 4]], [[2, 4], [3, 4], [1, 4]]
    >>> gain = paired_bootstrap(a, b, ratio, rng=np.random.default_rng(0), resampled="image", range=(-1, 1))
    >>> gain.value, gain.value in gain.interval
    (0.25, True)
    """
    estimates = paired_bootstrap_scores(sums_a, sums_b, statistic, **options)
    if len(estimates) != 1:
        raise ValueError(f"statistic: expected one score, got {len(estimates)}; use paired_bootstrap_scores")
    return estimates[0]


def paired_bootstrap_scores(
    sums_a: ArrayLike, sums_b: ArrayLike, statistic: Statistic, **options: Unpack[Resampling]
) -> tuple[Estimate, ...]:
    """Bootstrap the differences of several scores, such as one IoU per class, from the same resamples.

    As `paired_bootstrap`, with a `statistic` that maps totals (m, n_columns) to (m, n_scores).

    >>> a, b = [[3, 1], [4, 1]], [[2, 1], [3, 1]]
    >>> gains = paired_bootstrap_scores(a, b, lambda totals: totals, rng=np.random.default_rng(0))
    >>> [gain.value for gain in gains]
    [2.0, 0.0]
    """
    rows_a, rows_b = check_paired_sums(sums_a, sums_b)
    columns = rows_a.shape[1]

    def difference(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        return apply_statistic(statistic, totals[:, :columns]) - apply_statistic(statistic, totals[:, columns:])

    return bootstrap_scores(np.concatenate([rows_a, rows_b], axis=1), difference, **options)


@dataclass(frozen=True)
class PermutationTest:
    """A difference and its two-sided p-value.

    `difference` is score of A minus score of B. `p_value` lies in (0, 1], or is NaN where the difference is
    undefined. `swaps` counts the swaps tried: all 2**n if `exact`, else random ones. `undefined` counts those
    whose difference was NaN or infinite; they count against significance. `n` counts the clusters and
    `swapped` says what they are, such as "image".
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

    >>> from hardlook.harness.stats.bootstrap import ratio
    >>> a, b = [[3, 4], [4, 4], [2, 4]], [[2, 4], [3, 4], [1, 4]]
    >>> permutation_test(a, b, ratio, rng=np.random.default_rng(0)).p_value  # 2 of 8 swaps reach 0.25
    0.25
    """
    rows_a, rows_b = check_paired_sums(sums_a, sums_b)
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
    return _test(difference, groups.n, scale, swaps, rng, swapped or ("unit" if clusters is None else "cluster"))


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
    return _test(difference, groups.n, scale, swaps, rng, swapped or ("unit" if clusters is None else "cluster"))


def _test(
    difference: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    n: int,
    scale: float,
    swaps: int,
    rng: np.random.Generator,
    swapped: str,
) -> PermutationTest:
    blocks = draw_swaps(n, swaps, rng)
    exact = is_exact(n)
    observed = float(difference(np.zeros((1, n)))[0])
    if not math.isfinite(observed):
        return PermutationTest(observed, math.nan, n, 0, exact, 0, swapped)
    counts = SwapCounts(np.array([observed]), np.array([scale]))
    for mask in blocks:
        counts.add(difference(mask)[:, None])
    p_value = float(counts.p_values(exact=exact)[0])
    return PermutationTest(observed, p_value, n, counts.tried, exact, int(counts.undefined[0]), swapped)


def check_paired_sums(sums_a: ArrayLike, sums_b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Check that both sums are finite and of equal shape; return them as float64 matrices.

    >>> check_paired_sums([[1, 2]], [[1, 2], [3, 4]])
    Traceback (most recent call last):
    ...
    ValueError: sums of A have shape (1, 2) and sums of B (2, 2); both need one row for each shared unit
    """
    rows_a, rows_b = finite_rows(sums_a, "sums of A"), finite_rows(sums_b, "sums of B")
    if rows_a.shape != rows_b.shape:
        raise ValueError(
            f"sums of A have shape {rows_a.shape} and sums of B {rows_b.shape}; both need one row for each shared unit"
        )
    return rows_a, rows_b


class SwapCounts:
    """Counts, for k scores at once, how many swaps leave a difference at least as large as the observed one.

    `observed` has shape (k,): score of A minus score of B. `scale` has shape (k,): the size of the numbers that were
    subtracted, to which rounding errors are relative. Swaps whose difference is NaN or infinite are counted in
    `undefined` (k,) and as at least as large: they count against significance.

    >>> counts = SwapCounts(np.array([0.5]), np.array([1.0]))
    >>> counts.add(np.array([[0.5], [-0.5], [0.1], [np.nan]]))
    >>> counts.p_values(exact=True), counts.undefined
    (array([0.75]), array([1]))
    """

    def __init__(self, observed: NDArray[np.float64], scale: NDArray[np.float64]) -> None:
        self.observed = observed
        with np.errstate(invalid="ignore"):
            self.threshold = np.abs(observed) - TIE * scale
        self.tried = 0
        self.reached = np.zeros(len(observed), dtype=np.int64)
        self.undefined = np.zeros(len(observed), dtype=np.int64)

    def add(self, differences: NDArray[np.float64]) -> None:
        """Count a block of swaps: their differences, shape (m, k)."""
        apart = np.abs(differences)
        missing = ~np.isfinite(apart)
        self.tried += len(apart)
        self.undefined += missing.sum(axis=0)
        self.reached += (missing | (apart >= self.threshold)).sum(axis=0)

    def p_values(self, *, exact: bool) -> NDArray[np.float64]:
        """Two-sided p-values (k,), NaN where the observed difference is not finite.

        If `exact`, count / swaps; else (count + 1) / (swaps + 1), where the observed data count as one more swap.
        """
        reached = self.reached if exact else self.reached + 1
        shares = reached / max(self.tried if exact else self.tried + 1, 1)
        return np.where(np.isfinite(self.observed), shares, np.nan)


def draw_swaps(
    n: int, swaps: int, rng: np.random.Generator, exact_up_to: int = EXACT_CLUSTERS
) -> Iterator[NDArray[np.float64]]:
    """Blocks of rows, shape (m, n), 1 where a cluster is swapped: all 2**n swaps if exact, else `swaps` random ones.

    >>> next(draw_swaps(2, 99, np.random.default_rng(0)))
    array([[0., 0.],
           [1., 0.],
           [0., 1.],
           [1., 1.]])
    """
    if swaps < 1:
        raise ValueError(f"swaps: expected at least 1, got {swaps}")
    if is_exact(n, exact_up_to):
        return iter([((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)])
    return draw_random_swaps(n, swaps, rng)


def count_swaps(n: int, swaps: int, exact_up_to: int = EXACT_CLUSTERS) -> int:
    """How many swaps `draw_swaps` yields.

    >>> count_swaps(3, 999), count_swaps(30, 999)
    (8, 999)
    """
    return 2**n if is_exact(n, exact_up_to) else swaps


def is_exact(n: int, exact_up_to: int = EXACT_CLUSTERS) -> bool:
    """Whether all swaps of n clusters are tried.

    >>> is_exact(14), is_exact(15), is_exact(10, exact_up_to=9)
    (True, False, False)
    """
    return n <= exact_up_to


def draw_random_swaps(n: int, swaps: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Yield blocks of random sets of clusters as rows of zeros and ones, `swaps` rows of n in all.

    Every cluster takes one random bit. A row begins with a new word of 64 bits, so that the block size affects
    memory and never the draws.

    >>> [block.shape for block in draw_random_swaps(10_000, 40, np.random.default_rng(0))]
    [(26, 10000), (14, 10000)]
    """
    for rows in block_sizes(swaps, n):
        words = rng.integers(0, 2**64, size=(rows, -(-n // 64)), dtype=np.uint64)
        # Little-endian bytes on every machine, so that equal seeds swap equal clusters.
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, count=n, bitorder="little")
        yield bits.astype(np.float64)
