"""Lin similarity: the information that two nodes share, beside the information in each (Lin 1998).

The information content of a node is -ln p, with p the share of all occurrences in a corpus that name the node or
something below it.

>>> import numpy as np
>>> from hardlook.similarity.graph import HypernymGraph
>>> graph = HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)])
>>> content = information_content(graph, np.array([4, 0, 2, 2]), smoothing=0)
>>> content.round(3)
array([0.   , 0.693, 1.386, 1.386])
>>> lin_matrix(graph, [2, 3, 0], content).round(3)
array([[1. , 0.5, 0. ],
       [0.5, 1. , 0. ],
       [0. , 0. , 1. ]])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.similarity.ancestry import find_ancestry
from hardlook.similarity.graph import HypernymGraph
from hardlook.similarity.matrix import distinct_nodes, restrict


def information_content(graph: HypernymGraph, counts: ArrayLike, *, smoothing: float = 1.0) -> NDArray[np.float64]:
    """(n,) information content of every node in nats, from (n,) counts of occurrences of the node itself.

    An occurrence weighs 1 for the node and for each of its ancestors, however many ways lead there. As in nltk's `ic`,
    `smoothing` is added once to every node's sum and once to the total of all occurrences, and does not travel
    upwards; with 0, a node that never occurs, nor anything below it, has infinite content. (nltk's `ic` differs where
    two ways of one length lead to an ancestor: it counts the occurrence twice from there up.)
    """
    weights = np.asarray(counts, np.float64)
    if weights.shape != (len(graph),) or not np.isfinite(weights).all() or (weights < 0).any() or smoothing < 0:
        raise ValueError(f"counts: expected ({len(graph)},) finite values of at least 0, got shape {weights.shape}")
    total = weights.sum() + smoothing
    if total == 0:
        raise ValueError("counts: expected at least one occurrence or some smoothing, got zero in all")
    sums = accumulate(graph, weights) + smoothing
    content = np.full(len(graph), np.inf)
    occurs = sums > 0
    content[occurs] = np.log(total / sums[occurs])
    # Sums in floating point may pass the total by a rounding error.
    return np.asarray(np.maximum(content, 0.0))


def accumulate(graph: HypernymGraph, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) sum of the weights of each node and of all distinct nodes below it.

    >>> accumulate(HypernymGraph.from_edges(4, [(1, 0), (2, 0), (3, 1), (3, 2)]), np.array([1.0, 0, 0, 5])).tolist()
    [6.0, 5.0, 5.0, 5.0]
    """
    sources = np.flatnonzero(weights)
    depth = graph.max_depth.max(initial=0)
    # A pair (source, ancestor) is one number: duplicates, from several ways to one ancestor, fall to np.unique.
    front = sources * len(graph) + sources
    pairs = [front]
    for _ in range(depth):
        above, times = graph.hypernyms_of(front % len(graph))
        front = np.unique(np.repeat(front // len(graph), times) * len(graph) + above)
        pairs.append(front)
    distinct = np.unique(np.concatenate(pairs))
    sums = np.bincount(distinct % len(graph), weights[distinct // len(graph)], minlength=len(graph))
    return sums.astype(np.float64)


def lin_matrix(graph: HypernymGraph, nodes: ArrayLike, information_content: NDArray[np.float64]) -> NDArray[np.float64]:
    """(K, K) Lin similarity 2 IC(s) / (IC(a) + IC(b)) of K nodes, in [0, 1], from the (n,) content of all nodes.

    s is the common hypernym (a and b themselves may be it) of the greatest content. The diagonal is 1. The similarity
    is 0 for the node -1, where two nodes share no hypernym, where both have content 0, and where one has infinite
    content (nltk, which puts 1e300 for infinity, has 1 there if s has infinite content too). A content that grows
    upwards could give more than 1 and is cut to 1.
    """
    content = np.asarray(information_content, np.float64)
    if content.shape != (len(graph),) or np.isnan(content).any() or (content < 0).any():
        raise ValueError(f"information content: expected ({len(graph)},) values of at least 0, got {content.shape}")
    distinct, places = distinct_nodes(nodes, len(graph))
    if len(distinct) == 0:
        return np.eye(len(places))
    ancestry = find_ancestry(graph, distinct)
    shared = ancestry.best_shared(content[ancestry.members])
    own = content[distinct]
    both = own[:, None] + own[None, :]
    defined = np.isfinite(both) & (both > 0) & np.isfinite(shared)
    similarity = np.zeros(both.shape)
    np.divide(2.0 * np.where(defined, shared, 0.0), both, out=similarity, where=defined)
    similarity = np.minimum(similarity, 1.0)
    np.fill_diagonal(similarity, 1.0)
    return restrict(similarity, places)
