"""Path similarity: 1 / (1 + d), d the number of edges on the shortest way through a common hypernym.

>>> from hardlook.similarity.graph import HypernymGraph
>>> graph = HypernymGraph.from_edges(4, [(1, 0), (2, 1), (3, 1)])
>>> path_matrix(graph, [2, 3, 0, -1]).round(3)
array([[1.   , 0.333, 0.333, 0.   ],
       [0.333, 1.   , 0.333, 0.   ],
       [0.333, 0.333, 1.   , 0.   ],
       [0.   , 0.   , 0.   , 1.   ]])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.similarity.ancestry import FAR, find_ancestry
from hardlook.similarity.graph import HypernymGraph
from hardlook.similarity.matrix import distinct_nodes, restrict


def path_matrix(graph: HypernymGraph, nodes: ArrayLike) -> NDArray[np.float64]:
    """(K, K) path similarity of K nodes, in [0, 1].

    A way goes up from one node to a hypernym of both and down to the other; either part may be empty. Where there is
    none, as for the unknown node -1, the similarity is 0. The diagonal is 1.
    """
    distinct, places = distinct_nodes(nodes, len(graph))
    if len(distinct) == 0:
        return np.eye(len(places))
    ancestry = find_ancestry(graph, distinct)
    distance = ancestry.distances[ancestry.rows]
    return restrict(np.where(distance < FAR, 1.0 / (1.0 + distance), 0.0), places)
