"""The nearest class mean, by Euclidean distance (ProtoNet's rule) or by cosine (Meta-Baseline's).

Snell, Swersky and Zemel, "Prototypical networks for few-shot learning", NeurIPS 2017. Chen, Liu, Xu, Darrell and Wang,
"Meta-Baseline: exploring simple meta-learning for few-shot learning", ICCV 2021.

>>> from hardlook.models.roles import Episode
>>> line = np.array([[0.0], [4.0], [1.0]], np.float32)
>>> NearestCentroid().classify([Episode(line[:2], np.array([0, 1]), line[2:], ways=2)])[0].tolist()
[[-1.0, -9.0]]
>>> plane = np.array([[2, 0], [0, 1], [3, 4]], np.float32)
>>> [cosines] = CosineCentroid().classify([Episode(plane[:2], np.array([0, 1]), plane[2:], ways=2)])
>>> cosines.astype(float).round(3).tolist()
[[0.6, 0.8]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.models.few_shot.stacking import Stack, StackedLearner, squared_distances
from hardlook.models.unit_vectors import unit_vectors


class NearestCentroid(StackedLearner):
    """Scores are minus the squared Euclidean distances to the class means; their softmax is ProtoNet's probability."""

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32, at most 0."""
        return -squared_distances(stack.query, stack.class_means())


class CosineCentroid(StackedLearner):
    """Scores are cosines to the class means, which are taken before any vector's length is changed."""

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32, in [-1, 1]; 0 for a vector of length 0."""
        return unit_vectors(stack.query) @ unit_vectors(stack.class_means()).transpose(0, 2, 1)
