"""Class means refined with the queries, which vote for their classes softly (transductive).

Ren, Triantafillou, Ravi, Snell, Swersky, Tenenbaum, Larochelle and Zemel, "Meta-learning for semi-supervised few-shot
classification", ICLR 2018; the task's queries are its unlabelled images. Class means c_k of the supports to begin with;
then `steps` times:
z_jk = softmax over k of -|q_j - c_k|^2 / temperature, and
c_k = (sum of the class's supports + sum over j of z_jk q_j) / (number of its supports + sum over j of z_jk).
A query's score is minus its squared distance to the last means.

>>> from hardlook.models.roles import Episode
>>> line = np.array([[0.0], [4.0], [1.0], [1.0]], np.float32)
>>> episode = Episode(line[:2], np.array([0, 1]), line[2:], ways=2)
>>> SoftKMeans().classify([episode])[0][0].astype(float).round(2).tolist()
[-0.11, -8.99]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.few_shot.published_settings import SOFT_K_MEANS_STEPS
from hardlook.models.few_shot.stacking import Stack, StackedLearner, softmax, squared_distances


class SoftKMeans(StackedLearner):
    """Nearest class mean after `steps` refinements; `temperature` above 0, in squared units of the features."""

    transductive = True
    flags = ("GL", "TT")

    def __init__(self, steps: int = SOFT_K_MEANS_STEPS, temperature: float = 1.0) -> None:
        if steps < 0 or not temperature > 0:
            remedy = "steps is at least 0, temperature above 0"
            raise OptionError(f"steps {steps} and temperature {temperature} are not valid", remedy=remedy)
        self.steps, self.temperature = steps, temperature

    def score_stack(self, stack: Stack) -> NDArray[np.float32]:
        """(T, q, ways) float32, at most 0; a query's scores depend on the other queries."""
        shots = stack.shots.astype(np.float32)[:, None]
        means = stack.class_means()
        sums = means * shots
        for _ in range(self.steps):
            votes = softmax(-squared_distances(stack.query, means) / np.float32(self.temperature)).transpose(0, 2, 1)
            means = (sums + votes @ stack.query) / (shots + votes.sum(axis=2, keepdims=True))
        return -squared_distances(stack.query, means)
