"""FRN: how well a class's support maps can rebuild the query's map, by ridge regression in closed form.

Wertheimer, Tang and Hariharan, "Few-shot classification with feature map reconstruction networks", CVPR 2021. With a
class's descriptors S (n, C) and the query's Q (r, C), the weights W that least |Q - W S|^2 + lambda |W|^2 are
Q S' (S S' + lambda)^-1, and the class scores minus the mean over the r cells of |Q - rho W S|^2. Published:
lambda = (n / C) exp(alpha), rho = exp(beta), both learnt from alpha = beta = 0. On a frozen encoder nothing is learnt
and they stay there. Maps are divided by sqrt(C) first, as published for residual networks.

>>> from hardlook.models.roles import Episode
>>> support = np.array([[[[2.0]], [[0.0]]], [[[0.0]], [[2.0]]]], np.float32)
>>> episode = Episode(support, np.array([0, 1]), support[:1], ways=2)
>>> [round(score, 6) for score in FRN().classify([episode])[0][0].tolist()]
[-0.08, -2.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.on_device import DeviceLearner, TensorTasks, as_descriptors, check_device_name
from hardlook.models.few_shot.published_settings import FRN_ALPHA, FRN_BETA, FRN_LEAST_LAMBDA
from hardlook.models.few_shot.stacking import TaskGroup, class_cells, descriptors, query_blocks

if TYPE_CHECKING:
    from torch import Tensor


class FRN(DeviceLearner):
    """Reconstruction of query maps; works on maps (n, C, h, w).

    `alpha`, `beta`: the logarithms of what multiplies n / C in lambda, and of rho. `downscale`: divide maps by
    sqrt(C) (published for residual networks; not for the network of four convolutions).
    """

    accepts = "maps"
    flags = ("GL", "TT")

    def __init__(
        self, alpha: float = FRN_ALPHA, beta: float = FRN_BETA, downscale: bool = True, device: str = ""
    ) -> None:
        self.alpha, self.beta, self.downscale = alpha, beta, downscale
        self.device = check_device_name(device)

    def score_group(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32 minus mean squared errors, at most 0 up to rounding."""
        scores = group.empty_scores()
        for task, (shown, asked) in enumerate(group):
            channels = asked.shape[1]
            factor = np.float32(1 / np.sqrt(channels) if self.downscale else 1)
            query = descriptors(asked) * factor
            cells = query.shape[1]
            support, classes = descriptors(shown).reshape(-1, channels) * factor, class_cells(group, cells)
            ridges = [self._ridge(support[pool]) for pool in classes]
            for block in query_blocks(group.queries, cells * len(support)):
                rows = query[block].reshape(-1, channels)
                products = rows @ support.T
                whole = np.einsum("ij,ij->i", rows, rows)
                for way, (pool, ridge) in enumerate(zip(classes, ridges, strict=True)):
                    error = whole - self._rebuilt(products[:, pool], *ridge)
                    scores[task, block, way] = -error.reshape(-1, cells).mean(axis=1)
        return scores

    def score_tensors(self, tasks: TensorTasks) -> Tensor:
        """(T, q, ways) float32 minus mean squared errors, at most 0 up to rounding."""
        import torch

        queries, channels = tasks.query.shape[1:3]
        cells = tasks.query[0, 0, 0].numel()
        factor, rho = 1 / channels**0.5 if self.downscale else 1.0, float(np.exp(self.beta))
        support, query = (as_descriptors(maps) * factor for maps in (tasks.support, tasks.query))
        whole = query.square().sum(2)
        scores = []
        for pool in tasks.split_classes(support, cells):
            weight = self._lambda(pool.shape[1], channels)
            wide = pool.double()
            gram = wide @ wide.mT
            gram.diagonal(dim1=1, dim2=2).add_(weight)
            products = query @ pool.mT
            weights = products @ torch.linalg.inv(gram).float()
            fitted = (products * weights).sum(2)
            length = fitted - weight * weights.square().sum(2)
            error = whole - 2 * rho * fitted + rho * rho * length
            scores.append(-error.reshape(-1, queries, cells).mean(2))
        return torch.stack(scores, dim=2)

    def _lambda(self, count: int, channels: int) -> float:
        """The weight of the ridge for a class with that number of descriptors."""
        return count / channels * float(np.exp(self.alpha)) + FRN_LEAST_LAMBDA

    def _ridge(self, support: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
        """(n, n) inverse of S S' + lambda, and lambda."""
        count, channels = support.shape
        weight = self._lambda(count, channels)
        gram = support.astype(np.float64) @ support.T.astype(np.float64)
        gram.flat[:: count + 1] += weight
        return np.linalg.inv(gram).astype(np.float32), weight

    def _rebuilt(
        self, products: NDArray[np.float32], inverse: NDArray[np.float32], weight: float
    ) -> NDArray[np.float32]:
        """(rows,) what |Q|^2 loses to the reconstruction: 2 rho Q.Q^ - rho^2 |Q^|^2 for Q^ = W S.

        With A = Q S' the weights are W = A (S S' + lambda)^-1, Q.Q^ = A.W, and since W S S' = A - lambda W also
        |Q^|^2 = W.(A - lambda W): no reconstruction (rows, C) is made.
        """
        weights = products @ inverse
        fitted = np.einsum("ij,ij->i", products, weights)
        length = fitted - np.float32(weight) * np.einsum("ij,ij->i", weights, weights)
        rho = np.float32(np.exp(self.beta))
        return np.asarray(2 * rho * fitted - rho * rho * length)
