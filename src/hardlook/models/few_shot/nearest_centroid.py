"""ProtoNet's rule: the class whose mean support is nearest.

Snell, Swersky and Zemel, "Prototypical networks for few-shot learning", NeurIPS 2017.

>>> line = np.array([[0.0], [4.0], [1.0]], np.float32)
>>> NearestCentroid().classify([Episode(line[:2], np.array([0, 1]), line[2:], ways=2)])[0].tolist()
[[-1.0, -9.0]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.stacking import Stack, in_stacks
from hardlook.models.few_shot.vector_geometry import squared_distances
from hardlook.models.registry import register
from hardlook.models.roles import Episode


@register("nearest-centroid", role="few-shot-learner", summary="ProtoNet's rule: nearest class mean", licence="MIT")
class NearestCentroid:
    """Scores are minus the squared Euclidean distances to the class means; their softmax is ProtoNet's probability."""

    accepts = "features"
    transductive = False
    flags = ("GL",)

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 an episode, at most 0."""
        return in_stacks(episodes, _scores, form=self.accepts)


def _scores(stack: Stack) -> NDArray[np.float32]:
    return -squared_distances(stack.query, stack.class_means())
