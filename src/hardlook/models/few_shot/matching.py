"""MatchingNet's attention: supports vote by the softmax of their cosines to the query.

Vinyals, Blundell, Lillicrap, Kavukcuoglu and Wierstra, "Matching networks for one shot learning", NeurIPS 2016; its
rule without the embedding in context, which has weights of its own.

>>> plane = np.array([[1, 0], [0, 1], [3, 4]], np.float32)
>>> Matching().classify([Episode(plane[:2], np.array([0, 1]), plane[2:], ways=2)])[0].astype(float).round(3).tolist()
[[0.45, 0.55]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.published_settings import MATCHING_SCALE
from hardlook.models.few_shot.stacking import Stack, in_stacks
from hardlook.models.few_shot.vector_geometry import softmax, unit
from hardlook.models.registry import register
from hardlook.models.roles import Episode


@register("matching", role="few-shot-learner", summary="MatchingNet's attention over the supports", licence="MIT")
class Matching:
    """A class's score is the attention that its supports get together; cosines are multiplied by `scale` before."""

    accepts = "features"
    transductive = False
    flags = ("GL",)

    def __init__(self, scale: float = MATCHING_SCALE) -> None:
        self.scale = scale

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 an episode: probabilities, each row sums to 1."""
        return in_stacks(episodes, self._scores, form=self.accepts)

    def _scores(self, stack: Stack) -> NDArray[np.float32]:
        cosines = unit(stack.query) @ unit(stack.support).transpose(0, 2, 1)
        attention = softmax(self.scale * cosines)
        scores: NDArray[np.float32] = np.add.reduceat(attention, stack.starts, axis=2)
        return scores
