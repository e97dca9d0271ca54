"""Baseline++: a head of cosines trained on the supports of each task.

Chen, Liu, Kira, Wang and Huang, "A closer look at few-shot classification", ICLR 2019. Cosines as the paper says; its
code lets each class also learn a length.

>>> corners = np.eye(2, dtype=np.float32)
>>> CosineHead().classify([Episode(corners, np.array([0, 1]), corners, ways=2, key="a task")])[0].argmax(1).tolist()
[0, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.head_training import Margin, trained_heads
from hardlook.models.few_shot.published_settings import BASELINE, BASELINE_PP_SCALE, Descent, checked_descent
from hardlook.models.few_shot.stacking import Stack, in_stacks
from hardlook.models.few_shot.vector_geometry import unit
from hardlook.models.registry import register
from hardlook.models.roles import Episode


@register("cosine-head", role="few-shot-learner", summary="Baseline++: a cosine head trained by SGD", licence="MIT")
class CosineHead:
    """Scores are `scale` times the cosines to one trained vector a class; other arguments as for the linear head."""

    accepts = "features"
    transductive = False
    flags = ("GL", "TT")

    def __init__(
        self,
        scale: float = BASELINE_PP_SCALE,
        epochs: int = BASELINE.epochs,
        batch: int = BASELINE.batch,
        steps: int = BASELINE.steps,
        rate: float = BASELINE.rate,
        dampening: float = BASELINE.dampening,
        seed: int = 0,
    ) -> None:
        self.descent = checked_descent(epochs, batch, steps, rate, dampening)
        self.scale = scale
        self.seed = seed

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 an episode, in [-scale, scale]."""
        return in_stacks(
            episodes, lambda stack: cosine_scores(stack, self.descent, self.seed, Margin(self.scale)), form=self.accepts
        )


def cosine_scores(stack: Stack, descent: Descent, seed: int, cosine: Margin) -> NDArray[np.float32]:
    """Scaled cosines (T, q, ways) of the queries to heads trained with the margin; queries have no margin."""
    heads = trained_heads(stack, descent, seed, cosine)
    cosines = unit(stack.query) @ unit(heads.weight).transpose(0, 2, 1)
    scores: NDArray[np.float32] = np.float32(cosine.scale) * cosines
    return scores
