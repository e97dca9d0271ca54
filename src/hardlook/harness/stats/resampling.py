"""Resampling of clusters: the checks of the input, the clusters, and how often each appears in each resample.

Units of one image, class or fold resemble each other. Drawing them one by one would treat them as independent and make
intervals too narrow, so whole clusters are drawn, within strata where these are given. A resample of sums is a row of
multiplicities times the cluster sums, so a block of resamples is one matrix product. Draws come from the generator
resample by resample: the block size changes memory, never the draws.

Sums may be dense or sparse: where a unit adds to few of hundreds of columns, scipy's sparse arrays give the same totals
in less memory. NaN and infinite numbers are never dropped silently: every function raises an error that counts them.

>>> find_clusters(4, ["cat", "ant", "cat", "bee"]).codes
array([2, 0, 2, 1])
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Labels = Sequence[Hashable] | NDArray[Any]


@dataclass(frozen=True)
class Clusters:
    """Which cluster each unit belongs to, and how many clusters each stratum has.

    `codes` has shape (n_units,) with values in [0, n). `sizes` has shape (n_strata,) and counts clusters.
    Clusters are numbered stratum by stratum, so stratum 0 holds the first `sizes[0]` of them, and so on.
    """

    codes: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @property
    def n(self) -> int:
        """The number of clusters."""
        return int(self.sizes.sum())

    @property
    def can_vary(self) -> bool:
        """Whether a resample can differ from the data: some stratum has at least two clusters."""
        return bool((self.sizes >= 2).any())

    def sum(self, sums: Any) -> Any:
        """Add the rows of each cluster: (n_units, n_columns) to (n, n_columns), dense or sparse as they are."""
        if is_sparse(sums):
            return sparse_cluster_sums(self, sums)
        if self.n == len(sums):
            totals = np.empty_like(sums)
            totals[self.codes] = sums
            return totals
        if np.array_equal(sums, np.floor(sums)):
            order = np.argsort(self.codes, kind="stable")
        else:
            # Float addition depends on the order: fix it by value, so that row order changes no bit.
            order = np.lexsort((*sums.T, self.codes))
        starts = np.searchsorted(self.codes[order], np.arange(self.n))
        return np.add.reduceat(sums[order], starts, axis=0)


def find_clusters(n_units: int, labels: Labels | None = None, strata: Labels | None = None) -> Clusters:
    """Number the clusters by sorted label, so that the order of the rows does not matter.

    `labels` and `strata` hold one hashable per unit. Without `labels` each unit is its own cluster and its row
    is its label; without `strata` there is one stratum. A cluster must lie within one stratum.

    >>> find_clusters(4, strata=["test", "train", "test", "train"]).sizes
    array([2, 2])
    """
    codes = np.arange(n_units) if labels is None else encode_labels(labels, n_units, "clusters")
    n = int(codes.max()) + 1 if n_units else 0
    if strata is None:
        return Clusters(codes, np.array([n]))
    stratum = encode_labels(strata, n_units, "strata")
    stratum_of = np.zeros(n, dtype=np.int64)
    stratum_of[codes] = stratum
    split = np.flatnonzero(stratum_of[codes] != stratum)
    if len(split):
        example = split[0] if labels is None else labels[split[0]]
        raise ValueError(
            f"strata: {len(np.unique(codes[split]))} clusters lie in more than one stratum, such as {example!r}; "
            "label clusters by (stratum, cluster) if these are different things with one name"
        )
    order = np.argsort(stratum_of, kind="stable")
    number = np.empty(n, dtype=np.int64)
    number[order] = np.arange(n)
    return Clusters(number[codes], np.bincount(stratum_of))


def encode_labels(labels: Labels, n_units: int, name: str) -> NDArray[np.int64]:
    """Replace each label by its place among the sorted distinct labels; shape (n_units,).

    Strings and numbers sort as usual. Other labels, and mixtures, sort by type name and then by `repr`.
    None and NaN are not labels and raise a ValueError that counts them.

    >>> encode_labels([10, 9, 10], 3, "clusters")
    array([1, 0, 1])
    >>> encode_labels([("b", 1), ("a", 2)], 2, "clusters")
    array([1, 0])
    """
    if len(labels) != n_units:
        raise ValueError(f"{name}: expected one label for each of {n_units} units, got {len(labels)}")
    if isinstance(labels, np.ndarray):
        if labels.ndim != 1:
            raise ValueError(f"{name}: expected shape ({n_units},), got {labels.shape}")
        if labels.dtype.kind in "biuSU":
            return np.unique(labels, return_inverse=True)[1].astype(np.int64)
        labels = labels.tolist()
    # NaN is the one label that differs from itself.
    missing = sum(label is None or label != label for label in labels)
    if missing:
        raise ValueError(f"{name}: {missing} of {n_units} labels are None or NaN; give every unit a label")
    place = {label: i for i, label in enumerate(_sorted_labels(set(labels)))}
    return np.fromiter((place[label] for label in labels), dtype=np.int64, count=n_units)


def _sorted_labels(distinct: set[Hashable]) -> list[Hashable]:
    if all(isinstance(label, str) for label in distinct) or all(isinstance(x, Real) for x in distinct):
        return sorted(distinct)  # type: ignore[type-var]
    return sorted(distinct, key=lambda label: (type(label).__qualname__, repr(label)))


# Numbers in one block of multiplicities: 2 MB of float64 stay near the cache.
BLOCK_CELLS = 2**18

# Fewer rows than this would make the matrix product slow, so many clusters may take more memory per block.
MIN_ROWS = 8


def block_sizes(rows: int, columns: int) -> Iterator[int]:
    """Split `rows` rows of `columns` numbers into blocks of bounded memory.

    >>> list(block_sizes(60, 10_000))
    [26, 26, 8]
    """
    most = max(MIN_ROWS, BLOCK_CELLS // max(1, columns))
    for start in range(0, rows, most):
        yield min(most, rows - start)


def draw_multiplicities(clusters: Clusters, resamples: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Yield blocks of shape (rows, n_clusters): how often each resample holds each cluster.

    Each stratum of m clusters is drawn m times with replacement, so each row sums to n_clusters. The blocks
    have `resamples` rows in all. Values are whole numbers kept as float64 for the matrix product.

    >>> (block,) = draw_multiplicities(find_clusters(5), resamples=3, rng=np.random.default_rng(0))
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


def is_sparse(sums: object) -> bool:
    """Whether `sums` is a sparse matrix or array of scipy, checked without importing scipy."""
    return hasattr(sums, "tocsr") and hasattr(sums, "nnz")


def finite_sparse_rows(sums: Any, name: str) -> Any:
    """Return `sums`, any sparse matrix of shape (n_units, n_columns), as a float64 `csr_array`.

    What is NaN or infinite is counted in a ValueError; `name` is the word the error uses.

    >>> from scipy.sparse import csc_matrix
    >>> finite_sparse_rows(csc_matrix([[0, 3], [4, 0]]), "sums").toarray()
    array([[0., 3.],
           [4., 0.]])
    """
    from scipy.sparse import csr_array

    if sums.ndim != 2:
        raise ValueError(f"{name}: expected shape (n_units, n_columns), got {sums.shape}")
    rows = csr_array(sums, dtype=np.float64)
    bad = int(rows.nnz - np.isfinite(rows.data).sum())
    if bad:
        raise ValueError(
            f"{name}: {bad} of {rows.shape[0] * rows.shape[1]} values are NaN or infinite; "
            "leave those units out and report how many"
        )
    return rows


def sparse_cluster_sums(clusters: Clusters, rows: Any) -> Any:
    """Add the rows of each cluster: `csr_array` (n_units, n_columns) to `csr_array` (n_clusters, n_columns).

    >>> from scipy.sparse import csr_array
    >>> units = csr_array([[1.0, 0.0], [0.0, 5.0], [2.0, 0.0]])
    >>> sparse_cluster_sums(find_clusters(3, ["b", "a", "b"]), units).toarray()
    array([[0., 5.],
           [3., 0.]])
    """
    from scipy.sparse import coo_array, csr_array

    shape = (clusters.n, rows.shape[1])
    cluster = np.repeat(clusters.codes, np.diff(rows.indptr))
    column, data = rows.indices.astype(np.int64), rows.data
    if np.array_equal(data, np.floor(data)):
        return csr_array(coo_array((data, (cluster, column)), shape=shape))
    # Float addition depends on the order: fix it by value, so that row order changes no bit.
    order = np.lexsort((data, column, cluster))
    cell = (cluster * shape[1] + column)[order]
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    at = np.divmod(cell[starts], shape[1])
    return csr_array(coo_array((np.add.reduceat(data[order], starts), at), shape=shape))


def exact_totals(rows: Any) -> NDArray[np.float64]:
    """The sum of each column of `rows` (n_units, n_columns), dense or sparse, rounded once.

    A score is shown with a few digits, and the order in which floats are added must not decide one of them.

    >>> exact_totals(np.array([[0.1], [0.2], [0.3], [-0.6]]))
    array([2.77555756e-17])
    """
    whole = rows.data if is_sparse(rows) else rows
    # Sums of whole numbers are exact below 2^53.
    if np.array_equal(whole, np.floor(whole)) and np.abs(whole).sum() < 2**53:
        totals: NDArray[np.float64] = np.asarray(rows.sum(axis=0), np.float64)
        return totals
    if is_sparse(rows):
        by_column = rows.tocsc()
        parts = np.split(by_column.data, by_column.indptr[1:-1])
    else:
        parts = list(rows.T)
    return np.array([math.fsum(part) for part in parts])


def finite_vector(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `values` as a float64 vector, or raise a ValueError that counts what is not finite.

    `values` has shape (n,), n >= 0; `name` is the word the error uses for it.

    >>> finite_vector([1, float("nan")], "scores")
    Traceback (most recent call last):
    ...
    ValueError: scores: 1 of 2 values are NaN or infinite; leave those units out and report how many
    """
    return _finite(values, name, ndim=1)


def finite_rows(sums: ArrayLike, name: str) -> Any:
    """Return `sums` as a float64 matrix or `csr_array`, or raise a ValueError that counts what is not finite.

    `sums` has shape (n_units, n_columns); integers above 2**53 in absolute value lose their last digits.
    """
    return finite_sparse_rows(sums, name) if is_sparse(sums) else _finite(sums, name, ndim=2)


def check_probability(value: float, name: str) -> None:
    """Raise a ValueError unless `value` lies strictly between 0 and 1.

    >>> check_probability(95, "level")
    Traceback (most recent call last):
    ...
    ValueError: level: expected a number between 0 and 1, got 95
    """
    if not 0 < value < 1:
        raise ValueError(f"{name}: expected a number between 0 and 1, got {value}")


def _finite(values: ArrayLike, name: str, ndim: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim:
        expected = "(n,)" if ndim == 1 else "(n_units, n_columns)"
        raise ValueError(f"{name}: expected shape {expected}, got {array.shape}")
    bad = int(array.size - np.isfinite(array).sum())
    if bad:
        raise ValueError(
            f"{name}: {bad} of {array.size} values are NaN or infinite; leave those units out and report how many"
        )
    return array
