"""Sums that are mostly zeros: one row a unit, many columns, a few numbers a row.

A pair of images adds to the columns of its own split and class and to no others. With hundreds of columns the
dense table would be nearly all zeros, so scipy's sparse arrays are taken as they are. Equal numbers give equal
totals: whole numbers to the last bit.

>>> from scipy.sparse import csr_array
>>> is_sparse(csr_array([[0, 3], [4, 0]])), is_sparse([[0, 3], [4, 0]])
(True, False)
"""

from typing import Any

import numpy as np

from hardlook.stats.clusters import Clusters


def is_sparse(sums: object) -> bool:
    """Whether `sums` is a sparse matrix or array of scipy, told without loading scipy."""
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
    >>> from hardlook.stats.clusters import find_clusters
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
