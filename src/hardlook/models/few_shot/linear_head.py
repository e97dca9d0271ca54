"""Baseline: a linear head trained on the supports of each task.

Chen, Liu, Kira, Wang and Huang, "A closer look at few-shot classification", ICLR 2019.

>>> corners = np.eye(2, dtype=np.float32)
>>> LinearHead().classify([Episode(corners, np.array([0, 1]), corners, ways=2, key="a task")])[0].argmax(1).tolist()
[0, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.head_training import trained_heads
from hardlook.models.few_shot.published_settings import BASELINE, checked_descent
from hardlook.models.few_shot.stacking import Stack, in_stacks
from hardlook.models.registry import register
from hardlook.models.roles import Episode


@register("linear-head", role="few-shot-learner", summary="Baseline: a linear head trained by SGD", licence="MIT")
class LinearHead:
    """Scores are the logits of a head with bias; the arguments are those of `published_settings.Descent`.

    First weights and the order of the supports are drawn from `seed` and the episode's key.
    """

    accepts = "features"
    transductive = False
    flags = ("GL", "TT")

    def __init__(
        self,
        epochs: int = BASELINE.epochs,
        batch: int = BASELINE.batch,
        steps: int = BASELINE.steps,
        rate: float = BASELINE.rate,
        dampening: float = BASELINE.dampening,
        seed: int = 0,
    ) -> None:
        self.descent = checked_descent(epochs, batch, steps, rate, dampening)
        self.seed = seed

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 logits an episode."""
        return in_stacks(episodes, self._scores, form=self.accepts)

    def _scores(self, stack: Stack) -> NDArray[np.float32]:
        heads = trained_heads(stack, self.descent, self.seed)
        logits: NDArray[np.float32] = stack.query @ heads.weight.transpose(0, 2, 1) + heads.bias[:, None]
        return logits
