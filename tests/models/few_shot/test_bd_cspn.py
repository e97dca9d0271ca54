"""BD-CSPN against easyfsl, and the paper's choice of confident queries in plain loops."""

import numpy as np
import pytest
from easyfsl_methods import classify, methods
from vector_tasks import task, tasks

from hardlook.errors import OptionError
from hardlook.models.few_shot.bd_cspn import BdCspn
from hardlook.models.few_shot.centroids import CosineCentroid


@pytest.mark.parametrize("shots", [1, 5, [1, 4, 2, 3, 1]])
def test_equals_easyfsl(shots):
    learner = BdCspn(epsilon=1.0, confident=0, compare="unshifted")
    for episode, scores in zip(tasks(3, shots=shots), learner.classify(tasks(3, shots=shots)), strict=True):
        np.testing.assert_allclose(scores, classify(methods.BDCSPN(feature_normalization=2), episode), atol=2e-6)


def slowly(episode, epsilon=10.0, confident=8):
    """Query by query, class by class, in float64."""
    support, query = (
        rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for rows in (episode.support.astype(float), episode.query.astype(float))
    )
    query = query + support.mean(0) - query.mean(0)

    def cosine(a, b):
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    means = [support[episode.support_labels == way].mean(0) for way in range(episode.ways)]
    table = np.array([[cosine(one, mean) for mean in means] for one in query])
    shares = np.exp(epsilon * table) / np.exp(epsilon * table).sum(1, keepdims=True)
    vectors = []
    for way, mean in enumerate(means):
        members = [one for one, label in zip(support, episode.support_labels, strict=True) if label == way]
        answered = [place for place in range(len(query)) if table[place].argmax() == way]
        answered.sort(key=lambda place: -shares[place, way])
        members += [query[place] for place in answered[:confident]]
        weights = [np.exp(epsilon * cosine(one, mean)) for one in members]
        vectors.append(sum(w * one for w, one in zip(weights, members, strict=True)) / sum(weights))
    return np.array([[cosine(one, vector) for vector in vectors] for one in query])


@pytest.mark.parametrize("confident", [1, 3, 8])
def test_confident_queries_join_their_class(confident):
    for key in range(3):
        episode = task(key, ways=3, shots=2, queries=12, spread=1.5)
        [scores] = BdCspn(confident=confident).classify([episode])
        np.testing.assert_allclose(scores, slowly(episode, confident=confident), atol=2e-6)


def test_published_values_are_the_default():
    assert (BdCspn().epsilon, BdCspn().confident, BdCspn().compare) == (10.0, 8, "shifted")


def test_queries_help_where_one_support_says_little():
    episodes = tasks(60, shots=1, queries=15, spread=1.6)
    truth = np.arange(75) % 5
    plain, refined = (
        np.mean([(scores.argmax(1) == truth).mean() for scores in learner.classify(episodes)])
        for learner in (CosineCentroid(), BdCspn())
    )
    assert refined > plain + 0.005


@pytest.mark.parametrize("wrong", [{"confident": -1}, {"epsilon": float("nan")}])
def test_values_that_rectify_nothing(wrong):
    with pytest.raises(OptionError, match="rectify no class"):
        BdCspn(**wrong)
