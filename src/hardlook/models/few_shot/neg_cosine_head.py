"""Neg-Cosine: a head of cosines trained with a margin below 0, which makes training easier and the classes looser.

Liu, Cao, Lin, Li, Zhang, Long and Hu, "Negative margin matters: understanding margin in few-shot classification",
ECCV 2020.

>>> corners = np.eye(2, dtype=np.float32)
>>> NegCosineHead().classify([Episode(corners, np.array([0, 1]), corners, ways=2, key="task")])[0].argmax(1).tolist()
[0, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.cosine_head import cosine_scores
from hardlook.models.few_shot.head_training import Margin
from hardlook.models.few_shot.published_settings import (
    BASELINE,
    NEG_COSINE_MARGIN,
    NEG_COSINE_SCALE,
    checked_descent,
)
from hardlook.models.few_shot.stacking import in_stacks
from hardlook.models.registry import register
from hardlook.models.roles import Episode


@register(
    "neg-cosine-head", role="few-shot-learner", summary="Neg-Cosine: a cosine head with a margin below 0", licence="MIT"
)
class NegCosineHead:
    """Scores are `scale` times the cosines; in training the true class's cosine is lessened by `margin`.

    The other arguments as for the linear head.
    """

    accepts = "features"
    transductive = False
    flags = ("GL", "TT")

    def __init__(
        self,
        margin: float = NEG_COSINE_MARGIN,
        scale: float = NEG_COSINE_SCALE,
        epochs: int = BASELINE.epochs,
        batch: int = BASELINE.batch,
        steps: int = BASELINE.steps,
        rate: float = BASELINE.rate,
        dampening: float = BASELINE.dampening,
        seed: int = 0,
    ) -> None:
        self.descent = checked_descent(epochs, batch, steps, rate, dampening)
        self.cosine = Margin(scale, margin)
        self.seed = seed

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 an episode, in [-scale, scale]."""
        return in_stacks(
            episodes, lambda stack: cosine_scores(stack, self.descent, self.seed, self.cosine), form=self.accepts
        )
