"""MatchingNet's attention: supports vote by the softmax of their cosines to the query.

Vinyals, Blundell, Lillicrap, Kavukcuoglu and Wierstra, "Matching networks for one shot learning", NeurIPS 2016; its
rule without the embedding in context, which has weights of its own.

>>> from hardlook.models.roles import Episode
>>> plane = np.array([[1, 0], [0, 1], [3, 4]], np.float32)
>>> Matching().classify([Episode(plane[:2], np.array([0, 1]), plane[2:], ways=2)])[0].astype(float).round(3).tolist()
[[0.45, 0.55]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.published_settings import MATCHING_SCALE
from hardlook.models.few_shot.stacking import Stack, StackedLearner, softmax
from hardlook.models.unit_vectors import unit_vectors


class Matching(StackedLearner):
    """A class's score is the attention that its supports get together; cosines are multiplied by `scale` before."""

    def __init__(self, scale: float = MATCHING_SCALE) -> None:
        self.scale = scale

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32: probabilities, each row sums to 1."""
        cosines = unit_vectors(stack.query) @ unit_vectors(stack.support).transpose(0, 2, 1)
        return np.add.reduceat(softmax(self.scale * cosines), stack.starts, axis=2)
