"""Swaps of clusters between two runs, and how often they reach the difference that was seen.

One set of swaps serves any number of scores: each row says which clusters change sides, and every score is computed
from both sides. So a hundred scores cost the same draws as one.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hardlook.stats.resampling import block_sizes

# Up to this many clusters all 2**n swaps are tried, and the p-value has no random part.
EXACT_CLUSTERS = 14
# Differences that are equal in exact arithmetic may differ by rounding; those closer than this are ties.
TIE = 1e-12


class SwapCounts:
    """Counts, for k scores at once, how many swaps leave a difference at least as large as the observed one.

    `observed` has shape (k,): score of A minus score of B. `scale` has shape (k,): the size of the numbers that were
    subtracted, to which rounding errors are relative. Swaps whose difference is NaN or infinite are counted in
    `undefined` (k,) and as reaching it: they count against significance.

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

        With all swaps tried (`exact`) it is their share; with random ones the data count as one more swap.
        """
        reached = self.reached if exact else self.reached + 1
        shares = reached / max(self.tried if exact else self.tried + 1, 1)
        return np.where(np.isfinite(self.observed), shares, np.nan)


def swaps_of(
    n: int, swaps: int, rng: np.random.Generator, exact_up_to: int = EXACT_CLUSTERS
) -> Iterator[NDArray[np.float64]]:
    """Blocks of rows of zeros and ones, shape (m, n): every swap of few clusters, else `swaps` random ones.

    >>> next(swaps_of(2, 99, np.random.default_rng(0))).shape
    (4, 2)
    """
    if swaps < 1:
        raise ValueError(f"swaps: expected at least 1, got {swaps}")
    return all_swaps(n) if is_exact(n, exact_up_to) else random_swaps(n, swaps, rng)


def swaps_tried(n: int, swaps: int, exact_up_to: int = EXACT_CLUSTERS) -> int:
    """How many swaps `swaps_of` yields.

    >>> swaps_tried(3, 999), swaps_tried(30, 999)
    (8, 999)
    """
    return 2**n if is_exact(n, exact_up_to) else swaps


def is_exact(n: int, exact_up_to: int = EXACT_CLUSTERS) -> bool:
    """Whether all swaps of n clusters are tried.

    >>> is_exact(14), is_exact(15), is_exact(10, exact_up_to=9)
    (True, False, False)
    """
    return n <= exact_up_to


def all_swaps(n: int) -> Iterator[NDArray[np.float64]]:
    """Yield all 2**n sets of clusters as rows of zeros and ones, shape (2**n, n), in one block.

    >>> next(all_swaps(2))
    array([[0., 0.],
           [1., 0.],
           [0., 1.],
           [1., 1.]])
    """
    yield ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float64)


def random_swaps(n: int, swaps: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Yield blocks of random sets of clusters as rows of zeros and ones, `swaps` rows of n in all.

    Every cluster takes one random bit. A row begins with a new word of 64 bits, so that the size of the blocks
    changes memory and never the draws.

    >>> [block.shape for block in random_swaps(10_000, 40, np.random.default_rng(0))]
    [(26, 10000), (14, 10000)]
    """
    for rows in block_sizes(swaps, n):
        words = rng.integers(0, 2**64, size=(rows, -(-n // 64)), dtype=np.uint64)
        # Little-endian bytes on every machine, so that equal seeds swap equal clusters.
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), axis=1, count=n, bitorder="little")
        yield bits.astype(np.float64)
