"""Similarity of listed pairs, where the matrix of all pairs does not fit into memory: as the matrices, cell by cell.

Every function here is given what the K labels stand for and returns a function of two arrays (n,) of label numbers
that returns the similarities (n,) of these pairs: those of `graph_measures` and of `matrix.cosine_matrix`. Memory grows
with the labels and with the pairs asked for together, never with K x K.

>>> from hardlook.similarity.graph_measures import HypernymGraph
>>> animals = HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)])  # 2 and 3 are kinds of 1, which is a kind of 0
>>> path_pairs(animals, [2, 3, -1])(np.array([0, 0, 2]), np.array([1, 2, 2])).round(3).tolist()
[0.333, 0.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.similarity.graph_measures import UNREACHABLE, HypernymGraph, check_content
from hardlook.similarity.matrix import UNKNOWN, check_nodes, unit_vectors

Labels = NDArray[np.int64]
Shares = NDArray[np.float64]
PairSimilarity = Callable[[Labels, Labels], Shares]

# Pairs of nodes whose common ancestors, some ten each, are found together; and numbers of vectors at a time.
BLOCK_PAIRS = 2**16
BLOCK_NUMBERS = 2**21


@dataclass(frozen=True, eq=False)
class AncestorLists:
    """The ancestors of many nodes, themselves included, as one ascending list of node * n + ancestor.

    `keys` (m,) are these numbers, `climbs` (m,) the edges on the shortest path from the node up to the ancestor, and
    `indptr` (n + 1,) where each node's ancestors begin; a node that was not asked for has none.
    """

    size: int
    keys: Labels
    climbs: Labels
    indptr: Labels

    @classmethod
    def of(cls, graph: HypernymGraph, nodes: Labels) -> AncestorLists:
        """The lists of the nodes and of all their ancestors."""
        size, members = len(graph), graph.ancestors(nodes)
        front = members * size + members
        levels = [front]
        while len(front):
            above, times = graph.gather_hypernyms(front % size)
            front = np.unique(np.repeat(front // size, times) * size + above)
            levels.append(front)
        # Of several paths the shortest comes first.
        keys, first = np.unique(np.concatenate(levels), return_index=True)
        climbs = np.repeat(np.arange(len(levels)), [len(level) for level in levels])[first]
        return cls(size, keys, climbs, np.searchsorted(keys, np.arange(size + 1) * size))

    def common(self, one: Labels, other: Labels) -> tuple[Labels, Labels, Labels, Labels]:
        """The ancestors of each node of `one` (p,), pair after pair: where each pair's begin (p,), and their numbers.

        Then for each the edges from the pair's two nodes through it, UNREACHABLE where it is none of `other`'s, and
        the pair that it belongs to.
        """
        counts = self.indptr[one + 1] - self.indptr[one]
        starts = np.cumsum(counts) - counts
        pair = np.repeat(np.arange(len(one)), counts)
        place = np.repeat(self.indptr[one] - starts, counts) + np.arange(len(pair))
        ancestors = self.keys[place] % self.size
        wanted = other[pair] * self.size + ancestors
        found = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        lengths = np.where(self.keys[found] == wanted, self.climbs[place] + self.climbs[found], UNREACHABLE)
        return starts, ancestors, lengths, pair

    def has_ancestor(self, nodes: Labels, ancestors: Labels) -> NDArray[np.bool_]:
        """(p,) whether each node has the ancestor, or is it."""
        wanted = nodes * self.size + ancestors
        found = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.asarray(self.keys[found] == wanted)

    def distances(self, one: Labels, other: Labels) -> Labels:
        """(p,) edges on the shortest path, up and down, between the nodes of each pair; UNREACHABLE if none."""
        starts, _, lengths, _ = self.common(one, other)
        return np.asarray(np.minimum.reduceat(lengths, starts))

    def max_over_common(self, values: Shares, one: Labels, other: Labels) -> Shares:
        """(p,) the greatest of `values` (n,) over the common ancestors of each pair; -inf where there are none."""
        starts, ancestors, lengths, _ = self.common(one, other)
        return np.asarray(np.maximum.reduceat(np.where(lengths < UNREACHABLE, values[ancestors], -np.inf), starts))


def path_pairs(graph: HypernymGraph, nodes: ArrayLike) -> PairSimilarity:
    """Path similarity, as `graph_measures.path_matrix`."""
    given = check_nodes(nodes, len(graph))
    lists = AncestorLists.of(graph, given[given != UNKNOWN])

    def measure(one: Labels, other: Labels) -> Shares:
        distance = lists.distances(one, other)
        return np.where(distance < UNREACHABLE, 1.0 / (1.0 + distance), 0.0)

    return _compare_nodes(given, measure)


def wu_palmer_pairs(
    graph: HypernymGraph, nodes: ArrayLike, *, tie_rank: NDArray[np.int64] | None = None
) -> PairSimilarity:
    """Wu-Palmer similarity, as `graph_measures.wu_palmer_matrix`."""
    given = check_nodes(nodes, len(graph))
    lists = AncestorLists.of(graph, given[given != UNKNOWN])
    rank = np.arange(len(graph)) if tie_rank is None else np.asarray(tie_rank)
    min_depth, max_depth = graph.min_depth, graph.max_depth
    ascending = np.lexsort((-rank, min_depth))
    order = np.empty(len(graph))
    order[ascending] = np.arange(len(graph))

    def measure(one: Labels, other: Labels) -> Shares:
        best = lists.max_over_common(order, one, other)
        shared = np.isfinite(best)
        common = ascending[np.where(shared, best, 0).astype(np.int64)]
        lowest = np.where(lists.has_ancestor(other, one) & (min_depth[one] == min_depth[common]), one, common)
        lowest = np.where(lists.has_ancestor(one, other) & (min_depth[other] == min_depth[common]), other, lowest)
        # Without a common hypernym there is no path to measure.
        lowest = np.where(shared, lowest, one)
        lengths = lists.distances(one, lowest) + lists.distances(other, lowest)
        doubled = 2.0 * (max_depth[lowest] + 1)
        return np.where(shared, doubled / (doubled + lengths), 0.0)

    return _compare_nodes(given, measure)


def lin_pairs(graph: HypernymGraph, nodes: ArrayLike, information_content: NDArray[np.float64]) -> PairSimilarity:
    """Lin similarity, as `graph_measures.lin_matrix`."""
    content = check_content(graph, information_content)
    given = check_nodes(nodes, len(graph))
    lists = AncestorLists.of(graph, given[given != UNKNOWN])

    def measure(one: Labels, other: Labels) -> Shares:
        shared, both = lists.max_over_common(content, one, other), content[one] + content[other]
        defined = np.isfinite(both) & (both > 0) & np.isfinite(shared)
        similarity = np.zeros(len(one))
        np.divide(2.0 * np.where(defined, shared, 0.0), both, out=similarity, where=defined)
        return np.minimum(similarity, 1.0)

    return _compare_nodes(given, measure)


def lesk_pairs(tokens: Sequence[Sequence[str]]) -> PairSimilarity:
    """Gloss overlap, as `graph_measures.lesk_matrix`."""
    column: dict[str, int] = {}
    entries = [sorted({column.setdefault(word, len(column)) for word in words}) for words in tokens]
    sizes = np.array([len(words) for words in entries], np.int64)
    words = np.array([word for entry in entries for word in entry], np.int64)
    width, indptr = max(len(column), 1), np.concatenate([[0], np.cumsum(sizes)])
    keys = np.repeat(np.arange(len(entries)), sizes) * width + words

    def measure(one: Labels, other: Labels) -> Shares:
        counts = sizes[one]
        pair = np.repeat(np.arange(len(one)), counts)
        place = np.repeat(indptr[one] - (np.cumsum(counts) - counts), counts) + np.arange(len(pair))
        wanted = other[pair] * width + words[place]
        found = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        common = np.bincount(pair[keys[found] == wanted], minlength=len(one)).astype(np.float64)
        both = (sizes[one] + sizes[other]).astype(np.float64)
        return np.divide(2.0 * common, both, out=np.zeros(len(one)), where=both > 0)

    return _in_blocks(measure, BLOCK_PAIRS)


def cosine_pairs(vectors: ArrayLike) -> PairSimilarity:
    """Cosine of vectors (K, D), as `matrix.cosine_matrix` but for the last digit: products are added in another order.

    >>> cosine_pairs([[1, 0], [1, 1], [-1, 0]])(np.array([0, 0, 2]), np.array([1, 2, 2])).round(3).tolist()
    [0.707, 0.0, 1.0]
    """
    rows = unit_vectors(vectors)

    def measure(one: Labels, other: Labels) -> Shares:
        cosine: Shares = np.einsum("ij,ij->i", rows[one], rows[other])
        return cosine.clip(0.0, 1.0)

    return _in_blocks(measure, max(1, BLOCK_NUMBERS // max(1, rows.shape[1])))


def identity_pairs() -> PairSimilarity:
    """1 for a label and itself, else 0."""
    return _is_same


def among_rows(pairs: PairSimilarity, places: ArrayLike) -> PairSimilarity:
    """The similarity of a list of labels (L,), given by their numbers in `pairs`; -1 is unlike every other label.

    >>> within = among_rows(lambda one, other: np.full(len(one), 0.5), [1, -1, 0])
    >>> within(np.array([0, 0, 1]), np.array([2, 1, 1])).tolist()
    [0.5, 0.0, 1.0]
    """
    place = np.asarray(places, np.int64)

    def measure(one: Labels, other: Labels) -> Shares:
        values = _is_same(one, other)
        first, second = place[one], place[other]
        known = (one != other) & (first != UNKNOWN) & (second != UNKNOWN)
        values[known] = pairs(first[known], second[known])
        return values

    return measure


def _is_same(one: Labels, other: Labels) -> Shares:
    return np.asarray(one == other, np.float64)


def _compare_nodes(nodes: Labels, measure: PairSimilarity) -> PairSimilarity:
    """The similarity of labels by their nodes: 1 for one node, 0 with the unknown node, else `measure` of both."""

    def compare(one: Labels, other: Labels) -> Shares:
        values = _is_same(one, other)
        first, second = nodes[one], nodes[other]
        known = (first != UNKNOWN) & (second != UNKNOWN)
        values[known & (first == second)] = 1.0
        differ = np.flatnonzero(known & (first != second))
        for start in range(0, len(differ), BLOCK_PAIRS):
            block = differ[start : start + BLOCK_PAIRS]
            values[block] = measure(first[block], second[block])
        return values

    return compare


def _in_blocks(measure: PairSimilarity, pairs: int) -> PairSimilarity:
    """1 for a label and itself, else `measure`, a block of pairs at a time."""

    def compare(one: Labels, other: Labels) -> Shares:
        values = np.ones(len(one))
        differ = np.flatnonzero(one != other)
        for start in range(0, len(differ), pairs):
            block = differ[start : start + pairs]
            values[block] = measure(one[block], other[block])
        return values

    return compare
