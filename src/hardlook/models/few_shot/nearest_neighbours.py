"""k nearest supports vote; of classes with equal votes the one with the nearest support wins.

Fix and Hodges, "Discriminatory analysis: nonparametric discrimination", 1951; MetaCoCo lists it under IFSL (Yue, Zhang,
Sun and Hua, "Interventional few-shot learning", NeurIPS 2020).

>>> from hardlook.models.roles import Episode
>>> line = np.array([[0.0], [4.0], [5.0], [2.5]], np.float32)
>>> episode = Episode(line[:3], np.array([0, 1, 1]), line[3:], ways=2)
>>> [int(KNearest(k=k).classify([episode])[0].argmax()) for k in (1, 2, 3)]
[1, 1, 1]
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.published_settings import NEIGHBOURS
from hardlook.models.few_shot.stacking import Stack, StackedLearner, squared_distances
from hardlook.models.unit_vectors import unit_vectors


class KNearest(StackedLearner):
    """A class's score is its share of the votes, plus up to half a vote for its nearest support, which breaks ties.

    `k` neighbours (all supports, where there are fewer), by `metric` "euclidean" or "cosine". Of supports equally
    near the one that comes first counts as nearer.
    """

    flags = ("GL", "TT")

    def __init__(self, k: int = NEIGHBOURS, metric: Literal["euclidean", "cosine"] = "euclidean") -> None:
        if k < 1:
            raise OptionError(f"k {k} leaves no neighbour", remedy="k is at least 1")
        self.k, self.metric = k, metric

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32: v votes of k give a score over v / k and at most (v + .5) / k."""
        query, support = stack.query, stack.support
        if self.metric == "cosine":
            # Between vectors of length 1 the squared distance is 2 - 2 cosine: the same order.
            query, support = unit_vectors(query), unit_vectors(support)
        order = squared_distances(query, support).argsort(axis=2, kind="stable")
        supports = order.shape[2]
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.broadcast_to(np.arange(supports), order.shape), axis=2)
        k = min(self.k, supports)
        votes = np.add.reduceat((ranks < k).astype(np.float32), stack.starts, axis=2)
        nearest = np.minimum.reduceat(ranks, stack.starts, axis=2)
        return np.asarray(((votes + 0.5 * (1 - nearest / supports)) / k).astype(np.float32))
