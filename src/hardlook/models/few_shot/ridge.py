"""R2D2's rule: ridge regression on the one-hot labels, in closed form.

Bertinetto, Henriques, Torr and Vedaldi, "Meta-learning with differentiable closed-form solvers", ICLR 2019; without the
learnt scale and shift of the scores, which change no order.

>>> from hardlook.models.roles import Episode
>>> line = np.array([[1.0], [-1.0], [2.0]], np.float32)
>>> Ridge().classify([Episode(line[:2], np.array([0, 1]), line[2:], ways=2)])[0].astype(float).round(7).tolist()
[[0.0384615, -0.0384615]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.published_settings import R2D2_LAMBDA
from hardlook.models.few_shot.stacking import Stack, StackedLearner


class Ridge(StackedLearner):
    """Scores are X_q W with W = argmin |X W - Y|^2 + penalty |W|^2, Y one-hot; no intercept. `penalty` above 0."""

    flags = ("GL", "TT")

    def __init__(self, penalty: float = R2D2_LAMBDA) -> None:
        if not penalty > 0:
            raise OptionError(f"a penalty of {penalty} leaves the weights undetermined", remedy="penalty is above 0")
        self.penalty = penalty

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32: about 1 for the class, about 0 for others, nearer 0 by the penalty."""
        return stack.query @ ridge_weights(stack.support, stack.membership, self.penalty)


def ridge_weights(support: NDArray[np.float32], targets: NDArray[np.float32], penalty: float) -> NDArray[np.float32]:
    """W (T, D, N) of supports (T, n, D) and targets (n, N).

    >>> ridge_weights(np.ones((1, 2, 1), np.float32), np.array([[2.0], [4.0]], np.float32), penalty=1).tolist()
    [[[2.0]]]
    """
    # (X'X + p I)^-1 X' = X' (XX' + p I)^-1: the smaller of the two systems is solved. In float64, since a small
    # penalty beside large features leaves float32 no digits.
    wide = support.astype(np.float64)
    turned = wide.transpose(0, 2, 1)
    rows, columns = support.shape[1:]
    if rows <= columns:
        right = np.broadcast_to(targets, (len(support), *targets.shape))
        weights = turned @ np.linalg.solve(wide @ turned + penalty * np.eye(rows), right)
    else:
        weights = np.linalg.solve(turned @ wide + penalty * np.eye(columns), turned @ targets)
    return weights.astype(np.float32)
