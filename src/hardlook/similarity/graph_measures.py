"""Similarity over a graph of hypernyms and over glosses, as arrays: path, Wu-Palmer, Lin and Lesk.

In a graph of hypernyms, each node points to the more general nodes above it.

>>> animals = HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)])  # 2 and 3 are kinds of 1, which is a kind of 0
>>> animals.hypernyms(2).tolist(), animals.ancestors(2).tolist(), animals.max_depth.tolist()
([1], [0, 1, 2], [0, 1, 2, 2])
>>> path_matrix(animals, [2, 3]).round(3).tolist()
[[1.0, 0.333], [0.333, 1.0]]

The common hypernyms of two nodes are above both. So one sweep up, from the given nodes to the roots, and one sweep
down again give the result of every pair at once, in time edges x nodes instead of pairs x ancestors.

>>> shared = find_ancestry(HypernymGraph.from_edges(6, [(1, 0), (2, 1), (3, 1), (4, 3), (5, 0)]), np.array([2, 4]))
>>> shared.members.tolist(), shared.rows.tolist(), shared.distances[shared.rows].tolist()
([0, 1, 2, 3, 4], [2, 4], [[0, 3], [3, 0]])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.similarity.matrix import distinct_nodes, restrict_matrix


@dataclass(frozen=True, eq=False)
class HypernymGraph:
    """Nodes 0..n-1 and their hypernyms in compressed rows; instance hypernyms count as hypernyms.

    The hypernyms of node i are `indices[indptr[i]:indptr[i + 1]]`, in the order that a dictionary lists them. `indptr`
    has shape (n + 1,), `indices` one entry per edge; both become int64. Several roots are allowed, cycles are not: the
    first use of a depth raises an error that names a node on one.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]

    def __post_init__(self) -> None:
        indptr, indices = np.asarray(self.indptr, np.int64), np.asarray(self.indices, np.int64)
        if indptr.ndim != 1 or indices.ndim != 1 or len(indptr) == 0:
            what = f"graph: expected vectors indptr (n + 1,) and indices, got {indptr.shape}, {indices.shape}"
            raise ValueError(what)
        if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
            raise ValueError(f"graph: expected indptr to rise from 0 to {len(indices)}, the number of edges")
        if len(indices) and not 0 <= indices.min() <= indices.max() < len(indptr) - 1:
            raise ValueError(f"graph: expected hypernyms in 0..{len(indptr) - 2}, got {indices.min()}..{indices.max()}")
        object.__setattr__(self, "indptr", indptr)
        object.__setattr__(self, "indices", indices)

    @classmethod
    def from_edges(cls, size: int, edges: Iterable[tuple[int, int]]) -> HypernymGraph:
        """The graph of `size` nodes with edges (hyponym, hypernym); a node's hypernyms keep their order."""
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

    def gather_hypernyms(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The hypernyms of many nodes, one after the other, and how many each has: shapes (edges,) and (len(nodes),).

        >>> HypernymGraph.from_edges(3, [(1, 0), (2, 0), (2, 1)]).gather_hypernyms(np.array([2, 0, 1]))
        (array([0, 1, 0]), array([2, 0, 1]))
        """
        starts = self.indptr[nodes]
        counts = self.indptr[nodes + 1] - starts
        shift = np.repeat(starts - (np.cumsum(counts) - counts), counts)
        return self.indices[shift + np.arange(len(shift))], counts

    def ancestors(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """The ancestors of one node or of several, the nodes included, ascending."""
        found = np.zeros(len(self), bool)
        front = np.unique(np.atleast_1d(np.asarray(nodes, np.int64)))
        while len(front):
            found[front] = True
            above = self.gather_hypernyms(front)[0]
            front = np.unique(above[~found[above]])
        return np.flatnonzero(found)

    @cached_property
    def max_depth(self) -> NDArray[np.int64]:
        """(n,) edges on the longest path from each node up to a root; a cycle is a ValueError that names a node."""
        hyponyms = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        order = np.argsort(self.indices, kind="stable")
        below = HypernymGraph(np.searchsorted(self.indices[order], np.arange(len(self) + 1)), hyponyms[order])
        depth = np.full(len(self), -1, np.int64)
        waiting = np.diff(self.indptr)
        front, level = np.flatnonzero(waiting == 0), 0
        # A node is reached after the last of its hypernyms, which lies on the longest path.
        while len(front):
            depth[front] = level
            reached, times = np.unique(below.gather_hypernyms(front)[0], return_counts=True)
            waiting[reached] -= times
            front, level = reached[waiting[reached] == 0], level + 1
        if (depth < 0).any():
            raise ValueError(f"graph: expected no cycle, but node {self._find_cycle(depth)} is above itself")
        return depth

    @cached_property
    def min_depth(self) -> NDArray[np.int64]:
        """(n,) edges on the shortest path from each node up to a root."""
        depth = np.zeros(len(self), np.int64)
        order = np.argsort(self.max_depth, kind="stable")
        for nodes in np.split(order, np.cumsum(np.bincount(self.max_depth)))[1:-1]:
            above, counts = self.gather_hypernyms(nodes)
            depth[nodes] = 1 + np.minimum.reduceat(depth[above], np.cumsum(counts) - counts)
        return depth

    def _find_cycle(self, depth: NDArray[np.int64]) -> int:
        node, seen = int(np.flatnonzero(depth < 0)[0]), set[int]()
        while node not in seen:
            seen.add(node)
            node = next(int(above) for above in self.hypernyms(node) if depth[above] < 0)
        return node


UNREACHABLE = 1 << 29  # the distance where there is no path; a sum of two still fits into int32


@dataclass(frozen=True, eq=False)
class Sweep:
    """The edges of one level: each row of `targets` receives from its group of `sources`; groups begin at `starts`."""

    targets: NDArray[np.int64]
    sources: NDArray[np.int64]
    starts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ancestry:
    """K distinct nodes with their M ancestors (themselves included), hypernyms before hyponyms.

    `members` (M,) are node numbers of the graph, `rows` (K,) the positions of the given nodes in it. `upward` leads
    from the deepest level to the roots, `downward` back.
    """

    members: NDArray[np.int64]
    rows: NDArray[np.int64]
    upward: tuple[Sweep, ...]
    downward: tuple[Sweep, ...]

    @cached_property
    def climbs(self) -> NDArray[np.int32]:
        """(M, K) edges on the shortest path from each given node up to each member; UNREACHABLE or more if none."""
        steps = np.full((len(self.members), len(self.rows)), UNREACHABLE, np.int32)
        steps[self.rows, np.arange(len(self.rows))] = 0
        return _relax(steps, self.upward)

    @cached_property
    def distances(self) -> NDArray[np.int32]:
        """(M, K) edges on the shortest path, up and down, from given nodes to members; UNREACHABLE or more if none."""
        return _relax(self.climbs.copy(), self.downward)

    def max_over_common(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(K, K) the greatest of `values` (M,) over the common ancestors of each pair; -inf where there are none."""
        best = np.where(self.climbs < UNREACHABLE, values[:, None], -np.inf)
        for level in self.downward:
            inherited = np.maximum.reduceat(best[level.sources], level.starts, axis=0)
            best[level.targets] = np.maximum(best[level.targets], inherited)
        return best[self.rows]


def find_ancestry(graph: HypernymGraph, nodes: NDArray[np.int64]) -> Ancestry:
    """The ancestry of distinct nodes of a graph."""
    members = graph.ancestors(nodes)
    members = members[np.argsort(graph.max_depth[members], kind="stable")]
    depth = graph.max_depth[members]
    place = np.empty(len(graph), np.int64)
    place[members] = np.arange(len(members))
    above, counts = graph.gather_hypernyms(members)
    hyponyms, hypernyms = np.repeat(np.arange(len(members)), counts), place[above]
    return Ancestry(
        members=members,
        rows=place[nodes],
        upward=tuple(reversed(_group_by_level(hypernyms, hyponyms, depth))),
        downward=tuple(_group_by_level(hyponyms, hypernyms, depth)),
    )


def _group_by_level(targets: NDArray[np.int64], sources: NDArray[np.int64], depth: NDArray[np.int64]) -> list[Sweep]:
    """Edges towards `targets`, grouped by the target's level, from the roots down."""
    order = np.argsort(targets, kind="stable")
    targets, sources = targets[order], sources[order]
    # Members are sorted by depth, so edges sorted by target are sorted by the target's level too.
    borders = np.flatnonzero(np.diff(depth[targets], prepend=-1, append=-1))
    sweeps = []
    for begin, end in pairwise(borders.tolist()):
        starts = np.flatnonzero(np.diff(targets[begin:end], prepend=-1))
        sweeps.append(Sweep(targets[begin:end][starts], sources[begin:end], starts))
    return sweeps


def _relax(steps: NDArray[np.int32], sweeps: tuple[Sweep, ...]) -> NDArray[np.int32]:
    for level in sweeps:
        nearest = np.minimum.reduceat(steps[level.sources], level.starts, axis=0) + np.int32(1)
        steps[level.targets] = np.minimum(steps[level.targets], nearest)
    return steps


def path_matrix(graph: HypernymGraph, nodes: ArrayLike) -> NDArray[np.float64]:
    """(K, K) path similarity 1 / (1 + d) of K nodes, in [0, 1]; d is the number of edges on the shortest path.

    A path goes up from one node to a hypernym of both and down to the other; either part may be empty. Where there is
    none, as for the unknown node -1, the similarity is 0. The diagonal is 1.

    >>> path_matrix(HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)]), [2, 3, 0, -1]).round(3)
    array([[1.   , 0.333, 0.333, 0.   ],
           [0.333, 1.   , 0.333, 0.   ],
           [0.333, 0.333, 1.   , 0.   ],
           [0.   , 0.   , 0.   , 1.   ]])
    """
    distinct, places = distinct_nodes(nodes, len(graph))
    ancestry = find_ancestry(graph, distinct)
    distance = ancestry.distances[ancestry.rows]
    return restrict_matrix(np.where(distance < UNREACHABLE, 1.0 / (1.0 + distance), 0.0), places)


def wu_palmer_matrix(
    graph: HypernymGraph, nodes: ArrayLike, *, tie_rank: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """(K, K) Wu-Palmer similarity (1994) of K nodes, in [0, 1]; 0 without a common hypernym, and for the node -1.

    For nodes a and b, s is the common hypernym (a and b themselves may be it) of the greatest `min_depth`. Of several,
    it is a or b where one of them qualifies, else the one of the lowest `tie_rank` (n,), by default the lowest
    number. With D = max_depth(s) + 1 and p the length of the shortest path through common hypernyms,

        similarity = 2 D / (2 D + p(a, s) + p(b, s)).

    This is nltk's `wup_similarity` on nouns, ties by name, with two corrections. nltk gives some nodes less than 1
    with themselves, namely those with one short and one long path to the root; here the diagonal is 1. And where a is
    above b, nltk may give (a, b) and (b, a) different values, because it prefers the first of the two among the tied
    hypernyms and not the second; here both have the value of (a, b).

    >>> wu_palmer_matrix(HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)]), [2, 3, 0]).round(3)
    array([[1.   , 0.667, 0.5  ],
           [0.667, 1.   , 0.5  ],
           [0.5  , 0.5  , 1.   ]])
    """
    distinct, places = distinct_nodes(nodes, len(graph))
    ancestry = find_ancestry(graph, distinct)
    members, own = ancestry.members, np.arange(len(distinct))
    min_depth = graph.min_depth[members]
    rank = members if tie_rank is None else np.asarray(tie_rank)[members]
    ascending = np.lexsort((-rank, min_depth))
    order = np.empty(len(members))
    order[ascending] = np.arange(len(members))

    best = ancestry.max_over_common(order)
    shared = np.isfinite(best)
    lowest = ascending[np.where(shared, best, 0).astype(np.int64)]
    itself = (ancestry.climbs[ancestry.rows] < UNREACHABLE) & (min_depth[ancestry.rows][:, None] == min_depth[lowest])
    lowest = np.where(itself, ancestry.rows[:, None], lowest)
    lowest = np.where(itself.T, ancestry.rows[None, :], lowest)

    distance = ancestry.distances
    lengths = distance[lowest, own[:, None]] + distance[lowest, own[None, :]]
    doubled = 2.0 * (graph.max_depth[members][lowest] + 1)
    similarity = np.where(shared, doubled / (doubled + lengths), 0.0)
    np.fill_diagonal(similarity, 1.0)
    return restrict_matrix(similarity, places)


def information_content(graph: HypernymGraph, counts: ArrayLike, *, smoothing: float = 1.0) -> NDArray[np.float64]:
    """(n,) information content of every node in nats, from (n,) counts of occurrences of the node itself.

    The information content is -ln p, p the share of all occurrences that name the node or something below it. An
    occurrence counts 1 for the node and for each of its ancestors, however many paths lead there. As in nltk's `ic`,
    `smoothing` is added once to every node's sum and once to the total of all occurrences, and is not propagated
    upwards; with 0, a node that never occurs, nor anything below it, has infinite content. (nltk's `ic` differs where
    two paths of one length lead to an ancestor: it counts the occurrence twice from there up.)

    >>> graph = HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)])
    >>> information_content(graph, np.array([4, 0, 2, 2]), smoothing=0).round(3)
    array([0.   , 0.693, 1.386, 1.386])
    """
    weights = np.asarray(counts, np.float64)
    if weights.shape != (len(graph),) or not np.isfinite(weights).all() or (weights < 0).any() or smoothing < 0:
        raise ValueError(f"counts: expected ({len(graph)},) finite values of at least 0, got shape {weights.shape}")
    total = weights.sum() + smoothing
    if total == 0:
        raise ValueError("counts: expected at least one occurrence or some smoothing, got zero in all")
    sums = sum_over_hyponyms(graph, weights) + smoothing
    content = np.full(len(graph), np.inf)
    occurs = sums > 0
    content[occurs] = np.log(total / sums[occurs])
    # Sums in floating point may exceed the total by a rounding error.
    return np.asarray(np.maximum(content, 0.0))


def sum_over_hyponyms(graph: HypernymGraph, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) sum of the weights of each node and of all distinct nodes below it.

    >>> graph = HypernymGraph.from_edges(4, [(1, 0), (2, 0), (3, 1), (3, 2)])
    >>> sum_over_hyponyms(graph, np.array([1.0, 0, 0, 5])).tolist()
    [6.0, 5.0, 5.0, 5.0]
    """
    sources = np.flatnonzero(weights)
    depth = graph.max_depth.max(initial=0)
    # A pair (source, ancestor) is one number; np.unique removes duplicates, from several paths to one ancestor.
    front = sources * len(graph) + sources
    pairs = [front]
    for _ in range(depth):
        above, times = graph.gather_hypernyms(front % len(graph))
        front = np.unique(np.repeat(front // len(graph), times) * len(graph) + above)
        pairs.append(front)
    distinct = np.unique(np.concatenate(pairs))
    return np.bincount(distinct % len(graph), weights[distinct // len(graph)], minlength=len(graph)).astype(np.float64)


def lin_matrix(graph: HypernymGraph, nodes: ArrayLike, information_content: NDArray[np.float64]) -> NDArray[np.float64]:
    """(K, K) Lin similarity (1998) 2 IC(s) / (IC(a) + IC(b)) of K nodes, in [0, 1], from the (n,) content of all nodes.

    s is the common hypernym (a and b themselves may be it) of the greatest content. The diagonal is 1. The similarity
    is 0 for the node -1, where two nodes share no hypernym, where both have content 0, and where one has infinite
    content (nltk, which uses 1e300 for infinity, has 1 there if s has infinite content too). A content that grows
    upwards could give more than 1 and is clipped to 1.

    >>> graph = HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)])
    >>> lin_matrix(graph, [2, 3, 0], np.log([1.0, 2, 4, 4])).round(3)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    content = check_content(graph, information_content)
    distinct, places = distinct_nodes(nodes, len(graph))
    ancestry = find_ancestry(graph, distinct)
    shared = ancestry.max_over_common(content[ancestry.members])
    own = content[distinct]
    both = own[:, None] + own[None, :]
    defined = np.isfinite(both) & (both > 0) & np.isfinite(shared)
    similarity = np.zeros(both.shape)
    np.divide(2.0 * np.where(defined, shared, 0.0), both, out=similarity, where=defined)
    similarity = np.minimum(similarity, 1.0)
    np.fill_diagonal(similarity, 1.0)
    return restrict_matrix(similarity, places)


def check_content(graph: HypernymGraph, information_content: NDArray[np.float64]) -> NDArray[np.float64]:
    """The content (n,) of all nodes of a graph as float64; a ValueError where it is not that."""
    content = np.asarray(information_content, np.float64)
    if content.shape != (len(graph),) or np.isnan(content).any() or (content < 0).any():
        raise ValueError(f"information content: expected ({len(graph)},) values of at least 0, got {content.shape}")
    return content


def lesk_matrix(tokens: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """(K, K) gloss overlap of K entries, in [0, 1]: 2 |A & B| / (|A| + |B|), A and B the sets of their words.

    After Lesk (1986). `tokens` holds one sequence of words per dictionary entry, without stop words. A word counts
    once however often it occurs, and words are equal only if spelled alike. The overlap (Dice's coefficient) is 1 for
    equal sets and 0 for disjoint ones. An entry without words has 0 with every other entry; the diagonal is 1.

    >>> lesk_matrix([("feline", "mammal", "fur"), ("canine", "mammal", "fur", "pack"), ()]).round(3)
    array([[1.   , 0.571, 0.   ],
           [0.571, 1.   , 0.   ],
           [0.   , 0.   , 1.   ]])
    """
    entries = [frozenset(words) for words in tokens]
    sizes = np.array([len(words) for words in entries], np.float64)
    column: dict[str, int] = {}
    filled = [
        (row, column.setdefault(word, len(column))) for row, words in enumerate(entries) for word in sorted(words)
    ]
    rows, columns = np.array(filled, np.int64).reshape(-1, 2).T
    # A word of only one entry adds nothing to any overlap; without those the product is several times smaller.
    several = np.bincount(columns, minlength=len(column)) > 1
    narrow = np.cumsum(several) - 1
    chosen = several[columns]
    holds = np.zeros((len(entries), int(several.sum())), np.float32)
    holds[rows[chosen], narrow[columns[chosen]]] = 1
    # Whole numbers below 2**24 are exact in float32.
    common = (holds @ holds.T).astype(np.float64)
    both = sizes[:, None] + sizes[None, :]
    overlap = np.divide(2.0 * common, both, out=np.zeros(both.shape), where=both > 0)
    np.fill_diagonal(overlap, 1.0)
    return overlap
