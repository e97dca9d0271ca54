"""The class whose mean support points most nearly the query's way.

Chen, Liu, Xu, Darrell and Wang, "Meta-Baseline: exploring simple meta-learning for few-shot learning", ICCV 2021.

>>> plane = np.array([[2, 0], [0, 1], [3, 4]], np.float32)
>>> [cosines] = CosineCentroid().classify([Episode(plane[:2], np.array([0, 1]), plane[2:], ways=2)])
>>> cosines.astype(float).round(3).tolist()
[[0.6, 0.8]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.stacking import Stack, in_stacks
from hardlook.models.few_shot.vector_geometry import unit
from hardlook.models.registry import register
from hardlook.models.roles import Episode


@register("cosine-centroid", role="few-shot-learner", summary="class mean of highest cosine", licence="MIT")
class CosineCentroid:
    """Scores are cosines to the class means, which are taken before any vector's length is changed."""

    accepts = "features"
    transductive = False
    flags = ("GL",)

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 an episode, in [-1, 1]; 0 for a vector of length 0."""
        return in_stacks(episodes, _scores, form=self.accepts)


def _scores(stack: Stack) -> NDArray[np.float32]:
    cosines: NDArray[np.float32] = unit(stack.query) @ unit(stack.class_means()).transpose(0, 2, 1)
    return cosines
