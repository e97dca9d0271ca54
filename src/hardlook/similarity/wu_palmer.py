"""Wu-Palmer similarity: how deep the lowest common hypernym lies, beside how deep the two nodes lie (Wu, Palmer 1994).

>>> from hardlook.similarity.graph import HypernymGraph
>>> graph = HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)])
>>> wu_palmer_matrix(graph, [2, 3, 0]).round(3)
array([[1.   , 0.667, 0.5  ],
       [0.667, 1.   , 0.5  ],
       [0.5  , 0.5  , 1.   ]])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.similarity.ancestry import FAR, find_ancestry
from hardlook.similarity.graph import HypernymGraph
from hardlook.similarity.matrix import distinct_nodes, restrict


def wu_palmer_matrix(
    graph: HypernymGraph, nodes: ArrayLike, *, tie_rank: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """(K, K) Wu-Palmer similarity of K nodes, in [0, 1]; 0 where two nodes share no hypernym, and for the node -1.

    For nodes a and b, s is the common hypernym (a and b themselves may be it) of the greatest `min_depth`. Of several,
    it is a or b where one of them qualifies, else the one of the lowest `tie_rank` (n,), by default the lowest
    number. With D = max_depth(s) + 1 and p the shortest way through common hypernyms,

        similarity = 2 D / (2 D + p(a, s) + p(b, s)).

    This is nltk's `wup_similarity` on nouns, ties by name, with two repairs. nltk gives some nodes less than 1 with
    themselves, namely those with one short and one long way to the root; here the diagonal is 1. And where a is above
    b, nltk may give (a, b) and (b, a) different values, because it looks for the first of the two among the tied
    hypernyms and not for the second; here both have the value of (a, b).
    """
    distinct, places = distinct_nodes(nodes, len(graph))
    if len(distinct) == 0:
        return np.eye(len(places))
    ancestry = find_ancestry(graph, distinct)
    members, own = ancestry.members, np.arange(len(distinct))
    min_depth = graph.min_depth[members]
    rank = members if tie_rank is None else np.asarray(tie_rank)[members]
    ascending = np.lexsort((-rank, min_depth))
    worth = np.empty(len(members))
    worth[ascending] = np.arange(len(members))

    best = ancestry.best_shared(worth)
    shared = np.isfinite(best)
    lowest = ascending[np.where(shared, best, 0).astype(np.int64)]
    row_is_above = ancestry.climbs[ancestry.rows] < FAR
    itself = row_is_above & (min_depth[ancestry.rows][:, None] == min_depth[lowest])
    lowest = np.where(itself, ancestry.rows[:, None], lowest)
    lowest = np.where(itself.T, ancestry.rows[None, :], lowest)

    distance = ancestry.distances
    ways = distance[lowest, own[:, None]] + distance[lowest, own[None, :]]
    doubled = 2.0 * (graph.max_depth[members][lowest] + 1)
    similarity = np.where(shared, doubled / (doubled + ways), 0.0)
    np.fill_diagonal(similarity, 1.0)
    return restrict(similarity, places)
