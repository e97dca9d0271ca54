"""LaplacianShot against easyfsl; its graph and its end against the definitions."""

import numpy as np
import pytest
from easyfsl_methods import classify, methods
from hypothesis import given
from hypothesis import strategies as st
from vector_tasks import tasks

from hardlook.errors import OptionError
from hardlook.models.few_shot.laplacian_shot import LaplacianShot, connect_neighbours


@pytest.mark.parametrize("settings", [{}, {"neighbours": 4, "weight": 2.0}, {"steps": 1}, {"steps": 3, "weight": 0.1}])
@pytest.mark.parametrize("shots", [1, [1, 4, 2, 3, 1]])
def test_equals_easyfsl(shots, settings):
    learner, episodes = LaplacianShot(epsilon=1.0, **settings), tasks(3, shots=shots, queries=6, spread=1.4)
    for episode, scores in zip(episodes, learner.classify(episodes), strict=True):
        # Its k counts the query itself.
        judge = methods.LaplacianShot(
            feature_normalization=2,
            knn=learner.neighbours + 1,
            lambda_regularization=learner.weight,
            inference_steps=learner.steps,
        )
        np.testing.assert_allclose(scores, classify(judge, episode), atol=2e-6)


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5))
def test_each_query_has_its_nearest_others(seed, queries, neighbours):
    rows = np.random.default_rng(seed).standard_normal((1, queries, 4)).astype(np.float32)
    [graph] = connect_neighbours(rows, neighbours)
    for place, row in enumerate(graph):
        apart = ((rows[0].astype(float) - rows[0, place]) ** 2).sum(1)
        others = sorted((other for other in range(queries) if other != place), key=lambda other: apart[other])
        assert np.flatnonzero(row).tolist() == sorted(others[:neighbours])


def test_without_weight_it_is_the_softmax_of_distances():
    [episode] = tasks(1)
    [scores] = LaplacianShot(weight=0.0).classify([episode])
    [longer] = LaplacianShot(weight=0.0, steps=50).classify([episode])
    assert np.array_equal(scores, longer)
    np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-6)


def test_published_values_are_the_default():
    assert (LaplacianShot().neighbours, LaplacianShot().steps, LaplacianShot().weight) == (3, 20, 0.7)


@pytest.mark.parametrize("wrong", [{"neighbours": 0}, {"steps": 0}, {"weight": -1.0}])
def test_impossible_settings(wrong):
    with pytest.raises(OptionError, match="no Laplacian"):
        LaplacianShot(**wrong)
