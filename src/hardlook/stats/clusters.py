"""Clusters: the groups of units that are drawn together, and the strata they are drawn within.

Units of one image, class or fold resemble each other. Drawing them one by one would pretend that they were
independent and make intervals too narrow, so whole clusters are drawn instead.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def sum(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add the rows of each cluster: (n_units, n_columns) to (n, n_columns)."""
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

    >>> find_clusters(4, ["cat", "ant", "cat", "bee"]).codes
    array([2, 0, 2, 1])
    >>> find_clusters(4, strata=["test", "train", "test", "train"]).sizes
    array([2, 2])
    """
    codes = np.arange(n_units) if labels is None else label_codes(labels, n_units, "clusters")
    if strata is None:
        n = int(codes.max()) + 1 if n_units else 0
        return Clusters(codes, np.array([n]))
    stratum = label_codes(strata, n_units, "strata")
    n = int(codes.max()) + 1 if n_units else 0
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


def label_codes(labels: Labels, n_units: int, name: str) -> NDArray[np.int64]:
    """Replace each label by its place among the sorted distinct labels; shape (n_units,).

    Strings and numbers sort as usual. Other labels, and mixtures, sort by type name and then by `repr`.
    None and NaN are no labels and raise a ValueError that counts them.

    >>> label_codes([10, 9, 10], 3, "clusters")
    array([1, 0, 1])
    >>> label_codes([("b", 1), ("a", 2)], 2, "clusters")
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
