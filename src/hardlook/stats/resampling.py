"""Drawing: how often each cluster appears in each bootstrap resample.

A resample of sums is a row of multiplicities times the cluster sums, so a block of resamples is one matrix
product. Draws come from the generator resample by resample: the block size changes memory, never the draws.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hardlook.stats.clusters import Clusters

# Numbers in one block of multiplicities: 2 MB of float64 stay near the cache.
BLOCK_CELLS = 2**18
# Fewer rows than this would make the matrix product slow, so many clusters may take more memory per block.
LEAST_ROWS = 8


def block_sizes(rows: int, columns: int) -> Iterator[int]:
    """Split `rows` rows of `columns` numbers into blocks of bounded memory.

    >>> list(block_sizes(60, 10_000))
    [26, 26, 8]
    """
    most = max(LEAST_ROWS, BLOCK_CELLS // max(1, columns))
    for start in range(0, rows, most):
        yield min(most, rows - start)


def multiplicities(clusters: Clusters, resamples: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Yield blocks of shape (rows, n_clusters): how often each resample holds each cluster.

    Each stratum of m clusters is drawn m times with replacement, so each row sums to n_clusters. The blocks
    have `resamples` rows in all. Values are whole numbers kept as float64 for the matrix product.

    >>> from hardlook.stats.clusters import find_clusters
    >>> (block,) = multiplicities(find_clusters(5), resamples=3, rng=np.random.default_rng(0))
    >>> block.sum(axis=1)
    array([5., 5., 5.])
    """
    n = clusters.n
    for rows in block_sizes(resamples, n):
        drawn = _draw(clusters, rows, rng)
        drawn += n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _draw(clusters: Clusters, rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if len(clusters.sizes) == 1:
        return rng.integers(0, clusters.n, size=(rows, clusters.n))
    # Integers with a bound of their own are drawn four times as slowly. Scaling 53 random bits favours no
    # cluster by more than one part in 10**9 and never reaches the upper bound.
    first = np.cumsum(clusters.sizes) - clusters.sizes
    uniform = rng.random((rows, clusters.n))
    uniform *= np.repeat(clusters.sizes, clusters.sizes)
    drawn = uniform.astype(np.int64)
    drawn += np.repeat(first, clusters.sizes)
    return drawn
