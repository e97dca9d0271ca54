"""Label propagation: labels flow from supports to queries over the graph of nearest neighbours (transductive).

Liu, Lee, Park, Kim, Yang, Hwang and Yang, "Learning to propagate labels: transductive propagation network for
few-shot learning", ICLR 2019 (TPN), after Zhou et al., "Learning with local and global consistency", NIPS 2003.
Supports and queries are the nodes. W_ij = exp(-d_ij^2 / (2 sigma^2)) where i is among the k nearest of j or j of i
(k = 20), else 0; S = D^-1/2 W D^-1/2 with D the row sums; the scores are the queries' rows of (I - alpha S)^-1 Y,
alpha = .99, Y the one-hot labels. TPN learns a sigma for every example; on a frozen encoder there is one for the task,
in units of its root mean squared distance along the edges, so that the scale of the features does not matter. No node
is its own neighbour, as in Zhou et al.; the authors' code lets each be one.

>>> from hardlook.models.roles import Episode
>>> line = np.array([[0.0], [9.0], [2.0], [4.0], [7.0]], np.float32)
>>> episode = Episode(line[:2], np.array([0, 1]), line[2:], ways=2)
>>> LabelPropagation(neighbours=1).classify([episode])[0].argmax(axis=1).tolist()
[0, 0, 1]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.published_settings import PROPAGATION_ALPHA, PROPAGATION_NEIGHBOURS, PROPAGATION_SIGMA
from hardlook.models.few_shot.stacking import Stack, StackedLearner, squared_distances


class LabelPropagation(StackedLearner):
    """TPN's rule in closed form; works on vectors (n, D), and uses all queries of a task together.

    `neighbours` k of each node; `sigma` the width of the weights; `alpha` below 1, how far labels flow. A query that
    no path joins to a support scores 0 for every class.
    """

    transductive = True
    flags = ("GL", "TT")

    def __init__(
        self,
        neighbours: int = PROPAGATION_NEIGHBOURS,
        sigma: float = PROPAGATION_SIGMA,
        alpha: float = PROPAGATION_ALPHA,
    ) -> None:
        if neighbours < 1 or sigma <= 0 or not 0 <= alpha < 1:
            what = f"neighbours {neighbours}, sigma {sigma} and alpha {alpha} make no graph to propagate on"
            raise OptionError(what, remedy="neighbours is at least 1, sigma above 0, alpha from 0 to below 1")
        self.neighbours, self.sigma, self.alpha = neighbours, sigma, alpha

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32, at least 0."""
        shown = stack.support.shape[1]
        weights = neighbour_graph(np.concatenate([stack.support, stack.query], axis=1), self.neighbours, self.sigma)
        degrees = weights.sum(axis=2)
        roots = np.where(degrees > 0, 1 / np.sqrt(np.where(degrees > 0, degrees, 1)), 0.0)
        system = -self.alpha * roots[:, :, None] * weights * roots[:, None, :]
        np.einsum("tii->ti", system)[...] += 1
        labels = np.zeros((*weights.shape[:2], stack.ways))
        labels[:, :shown] = stack.membership
        # Rounding may leave tiny negative values where nothing arrives.
        return np.asarray(np.maximum(np.linalg.solve(system, labels)[:, shown:], 0).astype(np.float32))


def neighbour_graph(vectors: NDArray[np.float32], neighbours: int, sigma: float) -> NDArray[np.float64]:
    """(T, n, n) symmetric weights in [0, 1] between the vectors (T, n, D) of each task, 0 on the diagonal.

    >>> neighbour_graph(np.array([[[0.0], [1.0], [3.0]]], np.float32), neighbours=1, sigma=1.0)[0].round(3).tolist()
    [[0.0, 0.819, 0.0], [0.819, 0.0, 0.449], [0.0, 0.449, 0.0]]
    """
    squared = squared_distances(vectors, vectors).astype(np.float64)
    kept = min(neighbours, squared.shape[1] - 1)
    apart = squared.copy()
    np.einsum("tii->ti", apart)[...] = np.inf
    # Ranks and not a threshold: a stable order keeps exactly k of nodes that are equally far.
    nearest = np.argsort(apart, axis=2, kind="stable")[:, :, :kept]
    edges = np.zeros(squared.shape, bool)
    np.put_along_axis(edges, nearest, True, axis=2)
    edges |= edges.transpose(0, 2, 1)
    scale = np.where(edges, squared, 0).sum(axis=(1, 2)) / np.maximum(edges.sum(axis=(1, 2)), 1)
    width = 2 * sigma**2 * np.where(scale > 0, scale, 1)
    return np.where(edges, np.exp(-squared / width[:, None, None]), 0.0)
