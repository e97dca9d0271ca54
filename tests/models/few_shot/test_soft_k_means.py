"""Soft k-means, written out, and its limits."""

import numpy as np
import pytest
from scipy.special import softmax
from vector_tasks import tasks

from hardlook.errors import OptionError
from hardlook.models.few_shot.centroids import NearestCentroid
from hardlook.models.few_shot.soft_k_means import SoftKMeans


def literal(episode, steps, temperature):
    support, query = episode.support.astype(float), episode.query.astype(float)
    own = [support[episode.support_labels == way] for way in range(episode.ways)]
    means = [rows.mean(0) for rows in own]

    def distances():
        return np.array([[((one - mean) ** 2).sum() for mean in means] for one in query])

    for _ in range(steps):
        votes = softmax(-distances() / temperature, axis=1)
        means = [
            (rows.sum(0) + sum(vote * one for vote, one in zip(votes[:, way], query, strict=True)))
            / (len(rows) + votes[:, way].sum())
            for way, rows in enumerate(own)
        ]
    return -distances()


@pytest.mark.parametrize(("steps", "temperature"), [(0, 1.0), (1, 1.0), (1, 20.0), (5, 20.0)])
@pytest.mark.parametrize("shots", [1, [1, 3, 2, 2, 5]])
def test_against_the_loop(shots, steps, temperature):
    episodes = tasks(3, shots=shots, width=12)
    for episode, scores in zip(episodes, SoftKMeans(steps, temperature).classify(episodes), strict=True):
        np.testing.assert_allclose(scores, literal(episode, steps, temperature), rtol=1e-3, atol=1e-3)


def test_without_a_step_it_is_the_nearest_centroid():
    episodes = tasks(3)
    for one, other in zip(SoftKMeans(0).classify(episodes), NearestCentroid().classify(episodes), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_queries_help_where_one_support_says_little():
    episodes = tasks(60, shots=1, queries=15, spread=1.6)
    truth = np.arange(75) % 5
    plain, refined = (
        np.mean([(scores.argmax(1) == truth).mean() for scores in learner.classify(episodes)])
        for learner in (NearestCentroid(), SoftKMeans(steps=3, temperature=20.0))
    )
    assert refined > plain + 0.03


@pytest.mark.parametrize("args", [{"steps": -1}, {"temperature": 0.0}])
def test_values_that_refine_nothing(args):
    with pytest.raises(OptionError, match="are not valid"):
        SoftKMeans(**args)
