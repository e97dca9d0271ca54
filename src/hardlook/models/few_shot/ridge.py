"""R2D2's rule: ridge regression on the one-hot labels, in closed form.

Bertinetto, Henriques, Torr and Vedaldi, "Meta-learning with differentiable closed-form solvers", ICLR 2019; without the
learnt scale and shift of the scores, which change no order.

>>> from hardlook.models.roles import Episode
>>> line = np.array([[1.0], [-1.0], [2.0]], np.float32)
>>> Ridge().classify([Episode(line[:2], np.array([0, 1]), line[2:], ways=2)])[0].astype(float).round(7).tolist()
[[0.0384615, -0.0384615]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.on_device import TensorTasks, check_device_name
from hardlook.models.few_shot.published_settings import R2D2_LAMBDA
from hardlook.models.few_shot.stacking import TaskGroup, multiply_rows
from hardlook.models.few_shot.table_products import ProductLearner, Products, TaskProducts

if TYPE_CHECKING:
    from torch import Tensor


class Ridge(ProductLearner):
    """Scores are X_q W with W = argmin |X W - Y|^2 + penalty |W|^2, Y one-hot; no intercept. `penalty` above 0."""

    flags = ("GL", "TT")
    dtype = np.float64

    def __init__(self, penalty: float = R2D2_LAMBDA, device: str = "") -> None:
        if not penalty > 0:
            raise OptionError(f"a penalty of {penalty} leaves the weights undetermined", remedy="penalty is above 0")
        self.penalty, self.device = penalty, check_device_name(device)

    def score_products(self, tasks: TaskProducts) -> Products:
        """(T, q, ways) float64: about 1 for the class, about 0 for others, nearer 0 by the penalty."""
        system = tasks.within + self.penalty * np.eye(tasks.within.shape[1])
        targets = np.broadcast_to(tasks.membership, (len(system), *tasks.membership.shape))
        return np.asarray(tasks.crosswise @ np.linalg.solve(system, targets))

    def score_features(self, group: TaskGroup) -> NDArray[np.float32]:
        """(T, q, ways) float32: about 1 for the class, about 0 for others, nearer 0 by the penalty."""
        scores, targets = group.empty_scores(), group.membership.astype(np.float64)
        for place, (support, query) in enumerate(group):
            np.matmul(query, ridge_weights(support, targets, self.penalty).T, out=scores[place])
        return scores

    def score_tensors(self, tasks: TensorTasks) -> Tensor:
        """(T, q, ways) float32: about 1 for the class, about 0 for others, nearer 0 by the penalty."""
        import torch

        support = tasks.support.double()
        system = support @ support.mT
        system.diagonal(dim1=1, dim2=2).add_(self.penalty)
        targets = tasks.membership.double().expand(len(system), -1, -1)
        weights: Tensor = support.mT @ torch.linalg.solve(system, targets)
        return tasks.query @ weights.float()


def ridge_weights(support: NDArray[np.float32], targets: NDArray[np.float64], penalty: float) -> NDArray[np.float32]:
    """W' (N, D) of supports (n, D) and targets (n, N).

    >>> ridge_weights(np.ones((2, 1), np.float32), np.array([[2.0], [4.0]]), penalty=1).tolist()
    [[2.0]]
    """
    # (X'X + p I)^-1 X' = X' (XX' + p I)^-1: the smaller of the two systems is solved. In float64, since a small
    # penalty beside large features leaves float32 no digits.
    wide = support.astype(np.float64)
    rows, columns = wide.shape
    if rows <= columns:
        gram = multiply_rows(wide, wide, np.empty((rows, rows)))
        gram.flat[:: rows + 1] += penalty
        return np.asarray(np.ascontiguousarray(np.linalg.solve(gram, targets).T) @ wide, np.float32)
    return np.asarray(np.linalg.solve(wide.T @ wide + penalty * np.eye(columns), wide.T @ targets).T, np.float32)
