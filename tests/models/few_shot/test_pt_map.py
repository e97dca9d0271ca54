"""PT-MAP against easyfsl, its transport plan against the conditions that define it."""

from dataclasses import replace

import numpy as np
import pytest
from easyfsl_methods import classify, methods
from hypothesis import given
from hypothesis import strategies as st
from vector_tasks import tasks

from hardlook.errors import OptionError
from hardlook.models.few_shot.pt_map import PtMap, transport


def rectified(count, scale, **how):
    return [
        replace(episode, support=scale * np.maximum(episode.support, 0), query=scale * np.maximum(episode.query, 0))
        for episode in tasks(count, **how)
    ]


@pytest.mark.parametrize("shots", [1, [1, 4, 2, 3, 1]])
def test_equals_easyfsl(shots):
    learner, episodes = PtMap(steps=10, features="power"), rectified(3, np.float32(0.02), shots=shots, spread=1.3)
    for episode, scores in zip(episodes, learner.classify(episodes), strict=True):
        np.testing.assert_allclose(scores, classify(methods.PTMAP(), episode), atol=2e-6)


@pytest.mark.parametrize("features", ["unit", "centred"])
def test_lengths_and_means_are_those_of_the_features(features):
    """The same transport on features that were prepared by hand."""
    [episode] = rectified(1, np.float32(1.0), shots=2)

    def prepare(rows):
        raised = np.sqrt(rows.astype(float) + 1e-6)
        unit = raised / np.linalg.norm(raised, axis=1, keepdims=True)
        return unit - unit.mean(0) if features == "centred" else unit

    support, query = prepare(episode.support), prepare(episode.query)
    vectors = np.stack([support[episode.support_labels == way].mean(0) for way in range(5)])
    members = np.eye(5)[episode.support_labels]

    def assign():
        plan = np.exp(-10 * ((query[:, None] - vectors[None]) ** 2).sum(2))
        for _ in range(500):
            plan /= plan.sum(1, keepdims=True)
            plan *= 3 / plan.sum(0)
        return plan

    for _ in range(4):
        shares = np.concatenate([members, assign()])
        means = shares.T @ np.concatenate([support, query]) / shares.sum(0)[:, None]
        vectors = vectors + 0.2 * (means - vectors)
    [scores] = PtMap(steps=4, features=features).classify([episode])
    np.testing.assert_allclose(scores, assign(), atol=2e-4)  # rounds end when sums change by 1e-6


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(2, 5))
def test_a_plan_has_its_sums_and_is_scaled_by_rows_and_columns(seed, queries, ways):
    cost = 3 * np.random.default_rng(seed).random((2, queries, ways))
    plan = transport(cost, queries / ways)
    np.testing.assert_allclose(plan.sum(axis=2), 1, atol=1e-4)
    np.testing.assert_allclose(plan.sum(axis=1), queries / ways, rtol=1e-9)
    scaling = np.log(plan) + cost  # a sum of one number per row and one per column
    np.testing.assert_allclose(scaling - scaling[:, :1] - scaling[:, :, :1] + scaling[:, :1, :1], 0, atol=1e-8)


def test_distant_queries_stay_finite():
    [episode] = rectified(1, np.float32(1e4))
    [scores] = PtMap(features="power").classify([episode])
    assert np.isfinite(scores).all() and (scores.sum(1) > 0).all()


def test_published_values_are_the_default():
    learner = PtMap()
    assert (learner.power, learner.penalty, learner.rate, learner.steps) == (0.5, 10.0, 0.2, 20)


@pytest.mark.parametrize("wrong", [{"power": 0.0}, {"penalty": -1.0}, {"rate": 1.5}, {"steps": -1}])
def test_impossible_settings(wrong):
    with pytest.raises(OptionError, match="make no transport"):
        PtMap(**wrong)
