"""BD-CSPN: class means rectified with confident queries, after queries are shifted towards the supports (transductive).

Liu, Song and Qin, "Prototype rectification for few-shot learning", ECCV 2020. On vectors of length 1: the difference of
the mean support and the mean query is added to every query; queries are given to the class of highest cosine; of each
class the `confident` ones of highest probability join its supports; the new class vector is their mean, weighed by
exp(epsilon x cosine with the old one). Scores are cosines to the new vectors.

>>> from hardlook.models.roles import Episode
>>> plane = np.array([[1, 0], [0, 1], [4, 3], [3, 4]], np.float32)
>>> [scores] = BdCspn().classify([Episode(plane[:2], np.array([0, 1]), plane[2:], ways=2)])
>>> scores.argmax(axis=1).tolist()
[0, 1]
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.published_settings import BD_CSPN_CONFIDENT, BD_CSPN_EPSILON
from hardlook.models.few_shot.stacking import ClassLayout, Stack, StackedLearner, cosines, softmax
from hardlook.models.unit_vectors import unit_vectors


class BdCspn(StackedLearner):
    """Cosines to rectified class vectors; `confident` queries of each class are used, 0 for all.

    `compare`: whether the last cosines are those of "shifted" queries or of the queries as they are ("unshifted").
    """

    transductive = True
    flags = ("GL", "TT")

    def __init__(
        self,
        epsilon: float = BD_CSPN_EPSILON,
        confident: int = BD_CSPN_CONFIDENT,
        compare: Literal["shifted", "unshifted"] = "shifted",
    ) -> None:
        if confident < 0 or not np.isfinite(epsilon):
            what = f"epsilon {epsilon} and confident {confident} rectify no class"
            raise OptionError(what, remedy="epsilon is finite, confident at least 0")
        self.epsilon, self.confident, self.compare = epsilon, confident, compare

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32, in [-1, 1]; a query's scores depend on the other queries."""
        support, query = unit_vectors(stack.support), unit_vectors(stack.query)
        shifted = shift_queries(support, query)
        vectors = rectify_means(support, shifted, stack, self.epsilon, self.confident)
        return cosines(shifted if self.compare == "shifted" else query, vectors)


def shift_queries(support: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Queries (T, q, D), moved so that their mean is that of the supports (T, n, D)."""
    return np.asarray(query + (support.mean(axis=1, keepdims=True) - query.mean(axis=1, keepdims=True)))


def rectify_means(
    support: NDArray[np.float32], query: NDArray[np.float32], layout: ClassLayout, epsilon: float, confident: int
) -> NDArray[np.float32]:
    """(T, ways, D) weighed means of supports (T, n, D) and `confident` queries (T, q, D) of each class, 0 for all."""
    means = layout.averaging @ support
    likeness = cosines(query, means)
    chosen = likeness.argmax(axis=2)[:, :, None] == np.arange(layout.ways)
    if confident:
        probability = np.where(chosen, softmax(np.float32(epsilon) * likeness), -1)
        order = np.argsort(-probability, axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(order.shape[1])[None, :, None], axis=1)
        chosen &= ranks < confident
    shown = layout.membership * np.exp(np.float32(epsilon) * cosines(support, means))
    asked = chosen * np.exp(np.float32(epsilon) * likeness)
    total = shown.sum(axis=1) + asked.sum(axis=1)
    return np.asarray((shown.transpose(0, 2, 1) @ support + asked.transpose(0, 2, 1) @ query) / total[:, :, None])
