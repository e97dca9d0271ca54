"""LaplacianShot: nearest class vectors, where queries that are neighbours should get the same class (transductive).

Ziko, Dolz, Granger and Ben Ayed, "Laplacian regularized few-shot learning", ICML 2020. On vectors of length 1, with
class vectors rectified as by BD-CSPN: a_qk is the squared distance of query q to class k, W_qp = 1 where p is among
the k nearest other queries of q, and the assignments y are updated `steps` times at most,
y_q = softmax over k of -a_qk + weight x sum over p of W_qp y_pk, until the bound of equation 7 stands still.

>>> from hardlook.models.roles import Episode
>>> plane = np.array([[1, 0], [0, 1], [4, 3], [3, 4], [5, 1]], np.float32)
>>> [scores] = LaplacianShot(neighbours=1).classify([Episode(plane[:2], np.array([0, 1]), plane[2:], ways=2)])
>>> scores.argmax(axis=1).tolist()
[0, 1, 0]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.bd_cspn import rectify_means, shift_queries
from hardlook.models.few_shot.published_settings import (
    BD_CSPN_EPSILON,
    LAPLACIAN_NEIGHBOURS,
    LAPLACIAN_STEPS,
    LAPLACIAN_WEIGHT,
)
from hardlook.models.few_shot.stacking import Stack, StackedLearner, softmax, squared_distances
from hardlook.models.unit_vectors import unit_vectors

STANDSTILL = 1e-6
"""The updates of a task end when its bound changes by no more than this share."""


class LaplacianShot(StackedLearner):
    """Scores are the assignments; `neighbours` of each query, `weight` of the Laplacian term, at most `steps` updates.

    `epsilon` is that of BD-CSPN's rectification; all queries take part in it.
    """

    transductive = True
    flags = ("GL", "TT")

    def __init__(
        self,
        neighbours: int = LAPLACIAN_NEIGHBOURS,
        weight: float = LAPLACIAN_WEIGHT,
        steps: int = LAPLACIAN_STEPS,
        epsilon: float = BD_CSPN_EPSILON,
    ) -> None:
        if neighbours < 1 or steps < 1 or not weight >= 0:
            what = f"neighbours {neighbours}, weight {weight} and steps {steps} are no Laplacian regularization"
            raise OptionError(what, remedy="neighbours and steps are at least 1, weight at least 0")
        self.neighbours, self.weight, self.steps, self.epsilon = neighbours, weight, steps, epsilon

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32: assignments, each row sums to 1; a query's scores depend on the other queries."""
        support, query = unit_vectors(stack.support), unit_vectors(stack.query)
        vectors = rectify_means(support, shift_queries(support, query), stack, self.epsilon, confident=0)
        apart = squared_distances(query, vectors).astype(np.float64)
        return self._assign(apart, connect_neighbours(query, self.neighbours)).astype(np.float32)

    def _assign(self, apart: NDArray[np.float64], graph: NDArray[np.float64]) -> NDArray[np.float64]:
        """(T, q, ways) assignments for squared distances (T, q, ways) and the graph (T, q, q)."""
        assigned = softmax(-apart)
        bound = np.full(len(apart), np.inf)
        active = np.arange(len(apart))  # a task that stands still no longer changes, whatever the others do
        for step in range(self.steps):
            pulled = softmax(self.weight * (graph[active] @ assigned[active]) - apart[active])
            assigned[active] = pulled
            energy = pulled * (np.log(pulled + 1e-12) + apart[active] - self.weight * (graph[active] @ pulled))
            before, now = bound[active], energy.sum(axis=(1, 2))
            bound[active] = now
            if step > 1:
                active = active[np.abs(now - before) > STANDSTILL * np.abs(before)]
            if not len(active):
                break
        return assigned


def connect_neighbours(query: NDArray[np.float32], neighbours: int) -> NDArray[np.float64]:
    """(T, q, q): 1 where the column is among the nearest other queries of the row, else 0.

    >>> connect_neighbours(np.array([[[0.0], [1.0], [3.0]]], np.float32), neighbours=1)[0].tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    apart = squared_distances(query, query)
    np.einsum("tii->ti", apart)[...] = np.inf
    nearest = np.argsort(apart, axis=2, kind="stable")[:, :, : min(neighbours, query.shape[1] - 1)]
    graph = np.zeros(apart.shape)
    np.put_along_axis(graph, nearest, 1.0, axis=2)
    return graph
