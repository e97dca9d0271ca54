"""Centroids against the spec's example, scikit-learn and scipy."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.neighbors import NearestCentroid as Reference
from vector_tasks import by_class, tasks

from hardlook.models.few_shot.centroids import CosineCentroid, NearestCentroid
from hardlook.models.roles import Episode


def means(episode):
    rows, labels = by_class(episode)
    return np.stack([rows[labels == way].astype(float).mean(0) for way in range(episode.ways)])


def test_the_example_of_the_spec():
    line = np.array([[0.0], [4.0], [1.0]], np.float32)
    [scores] = NearestCentroid().classify([Episode(line[:2], np.array([0, 1]), line[2:], ways=2)])
    assert scores.tolist() == [[-1.0, -9.0]]
    assert softmax(scores[0].astype(float))[0] == pytest.approx(0.999665, abs=5e-7)


@pytest.mark.parametrize("shots", [1, 5, [1, 4, 2]])
def test_nearest_against_scikit_learn_and_scipy(shots):
    episodes = tasks(12, ways=3, shots=shots, spread=1.5)
    for episode, scores in zip(episodes, NearestCentroid().classify(episodes), strict=True):
        with np.errstate(invalid="ignore"):  # it also wants the spread within classes, which one shot has not
            reference = Reference().fit(episode.support, episode.support_labels)
        assert scores.argmax(1).tolist() == reference.predict(episode.query).tolist()
        np.testing.assert_allclose(scores, -cdist(episode.query, means(episode), "sqeuclidean"), rtol=1e-5)


def test_far_from_the_origin_distances_keep_their_digits():
    episodes = tasks(4, ways=3)
    moved = [Episode(e.support + 1024, e.support_labels, e.query + 1024, e.ways) for e in episodes]
    for episode, scores in zip(moved, NearestCentroid().classify(moved), strict=True):
        np.testing.assert_allclose(scores, -cdist(episode.query, means(episode), "sqeuclidean"), rtol=1e-3)


@pytest.mark.parametrize("shots", [1, 5, [1, 4, 2]])
def test_cosines_against_scipy(shots):
    episodes = tasks(12, ways=3, shots=shots)
    for episode, scores in zip(episodes, CosineCentroid().classify(episodes), strict=True):
        np.testing.assert_allclose(scores, 1 - cdist(episode.query, means(episode), "cosine"), atol=1e-6)


def test_a_vector_of_length_0_is_like_none():
    nothing = np.zeros((1, 3), np.float32)
    [scores] = CosineCentroid().classify([Episode(np.eye(3, dtype=np.float32), np.arange(3), nothing, ways=3)])
    assert scores.tolist() == [[0.0, 0.0, 0.0]]
