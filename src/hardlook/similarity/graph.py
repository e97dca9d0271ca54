"""A graph of hypernyms: each node points to the more general nodes above it.

>>> animals = HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)])  # 2 and 3 are kinds of 1, which is a kind of 0
>>> animals.hypernyms(2).tolist(), animals.ancestors(2).tolist(), animals.max_depth.tolist()
([1], [0, 1, 2], [0, 1, 2, 2])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class HypernymGraph:
    """Nodes 0..n-1 and their hypernyms in compressed rows; instance hypernyms count as hypernyms.

    The hypernyms of node i are `indices[indptr[i]:indptr[i + 1]]`, in the order that a dictionary lists them. `indptr`
    has shape (n + 1,), `indices` one entry an edge; both become int64. Several roots are allowed, cycles are not: they
    are found, and named, at the first use of a depth.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]

    def __post_init__(self) -> None:
        indptr, indices = np.asarray(self.indptr, np.int64), np.asarray(self.indices, np.int64)
        if indptr.ndim != 1 or indices.ndim != 1 or len(indptr) == 0:
            raise ValueError(
                f"graph: expected vectors indptr (n + 1,) and indices, got {indptr.shape}, {indices.shape}"
            )
        if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
            raise ValueError(f"graph: expected indptr to rise from 0 to {len(indices)}, the number of edges")
        if len(indices) and not 0 <= indices.min() <= indices.max() < len(indptr) - 1:
            raise ValueError(f"graph: expected hypernyms in 0..{len(indptr) - 2}, got {indices.min()}..{indices.max()}")
        object.__setattr__(self, "indptr", indptr)
        object.__setattr__(self, "indices", indices)

    @classmethod
    def from_edges(cls, size: int, edges: Iterable[tuple[int, int]]) -> HypernymGraph:
        """The graph of `size` nodes with edges (hyponym, hypernym); a node's hypernyms keep the order they come in."""
        pairs = np.array(list(edges), np.int64).reshape(-1, 2)
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
        indptr = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(pairs[:, 0], minlength=size), out=indptr[1:])
        return cls(indptr, pairs[:, 1])

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def hypernyms(self, node: int) -> NDArray[np.int64]:
        """The hypernyms of one node, in order."""
        return self.indices[self.indptr[node] : self.indptr[node + 1]]

    def hypernyms_of(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The hypernyms of many nodes, one after the other, and how many each has: shapes (edges,) and (len(nodes),).

        >>> HypernymGraph.from_edges(3, [(1, 0), (2, 0), (2, 1)]).hypernyms_of(np.array([2, 0, 1]))
        (array([0, 1, 0]), array([2, 0, 1]))
        """
        starts = self.indptr[nodes]
        counts = self.indptr[nodes + 1] - starts
        shift = np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return self.indices[shift + np.arange(len(shift))], counts

    def ancestors(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """One node's ancestors or several nodes' together, the nodes included, ascending."""
        found = np.zeros(len(self), bool)
        front = np.unique(np.atleast_1d(np.asarray(nodes, np.int64)))
        while len(front):
            found[front] = True
            above = self.hypernyms_of(front)[0]
            front = np.unique(above[~found[above]])
        return np.flatnonzero(found)

    @cached_property
    def max_depth(self) -> NDArray[np.int64]:
        """(n,) edges on the longest way up from each node to a root; a cycle is a ValueError that names a node."""
        hyponyms = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        order = np.argsort(self.indices, kind="stable")
        starts = np.searchsorted(self.indices[order], np.arange(len(self) + 1))
        below = HypernymGraph(starts, hyponyms[order])
        depth = np.full(len(self), -1, np.int64)
        waiting = np.diff(self.indptr)
        front, level = np.flatnonzero(waiting == 0), 0
        # A node's turn comes when the last of its hypernyms has had its own: that one lies on the longest way.
        while len(front):
            depth[front] = level
            reached, times = np.unique(below.hypernyms_of(front)[0], return_counts=True)
            waiting[reached] -= times
            front, level = reached[waiting[reached] == 0], level + 1
        if (depth < 0).any():
            raise ValueError(f"graph: expected no cycle, but node {self._on_cycle(depth)} is above itself")
        return depth

    @cached_property
    def min_depth(self) -> NDArray[np.int64]:
        """(n,) edges on the shortest way up from each node to a root."""
        depth = np.zeros(len(self), np.int64)
        order = np.argsort(self.max_depth, kind="stable")
        for nodes in np.split(order, np.cumsum(np.bincount(self.max_depth)))[1:-1]:
            above, counts = self.hypernyms_of(nodes)
            depth[nodes] = 1 + np.minimum.reduceat(depth[above], np.cumsum(counts) - counts)
        return depth

    def _on_cycle(self, depth: NDArray[np.int64]) -> int:
        node, seen = int(np.flatnonzero(depth < 0)[0]), set[int]()
        while node not in seen:
            seen.add(node)
            node = next(int(above) for above in self.hypernyms(node) if depth[above] < 0)
        return node
