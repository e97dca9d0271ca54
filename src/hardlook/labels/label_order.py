"""An order of labels in which similar ones lie together, and a sample of it that a picture has room for.

>>> matrix = np.eye(4)
>>> matrix[0, 2] = matrix[2, 0] = matrix[1, 3] = matrix[3, 1] = 0.8
>>> order = similar_together(matrix).tolist()
>>> {order.index(0) - order.index(2), order.index(1) - order.index(3)} <= {-1, 1}
True
>>> spread_sample(np.arange(12), 6, run=3).tolist()
[1, 2, 3, 7, 8, 9]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RUN = 3


def similar_together(matrix: NDArray[np.float64], *, optimal: bool = False) -> NDArray[np.int64]:
    """(K,) rows of a similarity matrix (K, K) in the order of a clustering (average linkage of 1 - similarity).

    `optimal` also turns branches so that neighbours at their borders are alike, which takes long over many labels.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(matrix) < 3:
        return np.arange(len(matrix))
    apart = squareform(np.clip(1.0 - matrix, 0.0, None), checks=False)
    return np.asarray(leaves_list(linkage(apart, "average", optimal_ordering=optimal)), np.int64)


def spread_sample(order: NDArray[np.int64], size: int, *, run: int = RUN) -> NDArray[np.int64]:
    """At most `size` places of an order (K,): runs of `run` neighbours, spread evenly over it; all if they fit.

    Neighbours show what lies close; the spread shows every region.
    """
    if len(order) <= size:
        return order
    runs = max(size // run, 1)
    width = len(order) / runs
    starts = [int(width * (number + 0.5) - run / 2) for number in range(runs)]
    places = sorted({place for start in starts for place in range(max(start, 0), min(start + run, len(order)))})
    return order[places]


def rows_for_a_picture(matrix: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """At most `size` rows of a similarity matrix (K, K), similar ones together."""
    chosen = spread_sample(similar_together(matrix), size)
    return chosen[similar_together(matrix[np.ix_(chosen, chosen)], optimal=True)]
