"""MatchingNet against its formula in plain loops."""

import math

import numpy as np
import pytest
from vector_tasks import tasks

from hardlook.models.few_shot.matching import Matching


def classify_by_loops(episode, scale):
    scores = np.zeros((len(episode.query), episode.ways))
    for row, query in enumerate(episode.query.astype(float)):
        weights = []
        for support in episode.support.astype(float):
            cosine = float(query @ support) / math.sqrt(float(query @ query) * float(support @ support))
            weights.append(math.exp(scale * cosine))
        for weight, label in zip(weights, episode.support_labels, strict=True):
            scores[row, label] += weight / sum(weights)
    return scores


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("shots", [1, 5, [1, 2, 4, 1, 3]])
def test_equals_plain_loops(shots, scale):
    episodes = tasks(4, shots=shots)
    for episode, scores in zip(episodes, Matching(scale).classify(episodes), strict=True):
        np.testing.assert_allclose(scores, classify_by_loops(episode, scale), atol=1e-5 * max(1, scale / 10))
        np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-5)
