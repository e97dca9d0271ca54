"""What holds for every learner on feature maps, and for label propagation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from map_episodes import random_episode

from hardlook.errors import ModelError
from hardlook.models.conformance import check_model
from hardlook.models.few_shot.covamnet import CovaMNet
from hardlook.models.few_shot.deepbdc import DeepBDC
from hardlook.models.few_shot.dn4 import DN4
from hardlook.models.few_shot.frn import FRN
from hardlook.models.few_shot.label_propagation import LabelPropagation
from hardlook.models.few_shot.stacking import descriptors
from hardlook.models.unit_vectors import unit_vectors

LEARNERS = [DN4, CovaMNet, FRN, DeepBDC, LabelPropagation]

learners = pytest.mark.parametrize("learner", LEARNERS)


def suited(learner, episode):
    """The episode in the form that the learner accepts: of maps their means over the cells serve as vectors."""
    if learner.accepts == "maps":
        return episode
    return replace(episode, support=episode.support.mean(axis=(2, 3)), query=episode.query.mean(axis=(2, 3)))


def asked(learner, *episodes):
    return learner().classify([suited(learner, episode) for episode in episodes])


@learners
def test_conforms(learner):
    assert [finding.line() for finding in check_model(learner, "few-shot-learner") if not finding.passed] == []


@learners
def test_batched_equals_one_by_one(learner):
    episodes = [random_episode(seed, shots) for seed in range(3) for shots in ((1, 1, 1), (2, 2, 2), (1, 3))]
    together = asked(learner, *episodes)
    for episode, scores in zip(episodes, together, strict=True):
        np.testing.assert_allclose(scores, asked(learner, episode)[0], rtol=1e-5, atol=1e-6)
    assert all(np.array_equal(a, b) for a, b in zip(together, asked(learner, *episodes), strict=True))


@learners
@given(seed=st.integers(0, 10**6))
def test_classes_in_another_order(learner, seed):
    episode = random_episode(seed, shots=(1, 3, 2))
    order = np.random.default_rng(seed).permutation(3)
    renamed = replace(episode, support_labels=order[episode.support_labels])
    straight, other = asked(learner, episode, renamed)
    np.testing.assert_allclose(straight, other[:, order], rtol=1e-3, atol=1e-4)


@learners
@given(seed=st.integers(0, 10**6))
def test_supports_in_another_order(learner, seed):
    episode = random_episode(seed, shots=(2, 3))
    order = np.random.default_rng(seed).permutation(5)
    turned = replace(episode, support=episode.support[order], support_labels=episode.support_labels[order])
    np.testing.assert_allclose(*asked(learner, episode, turned), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("learner", [DN4, CovaMNet, FRN, DeepBDC])
def test_small_blocks_change_nothing(learner, monkeypatch):
    episode = random_episode(11, queries=7)
    [whole] = asked(learner, episode)
    monkeypatch.setattr("hardlook.models.few_shot.stacking.BLOCK_BYTES", 1)
    np.testing.assert_allclose(asked(learner, episode)[0], whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("learner", [DN4, CovaMNet, FRN, DeepBDC])
def test_vectors_are_refused_with_a_remedy(learner):
    episode = replace(suited(LabelPropagation, random_episode(0)), key="task 7")
    with pytest.raises(ModelError) as caught:
        learner().classify([episode])
    assert caught.value.unit == "task 7" and "encode the images" in caught.value.remedy


@learners
def test_beats_chance_where_classes_differ(learner):
    episodes = [random_episode(seed, shots=(3, 3, 3), queries=9, shape=(24, 3, 3)) for seed in range(12)]
    right = [(s.argmax(axis=1) == np.arange(9) % 3).mean() for s in asked(learner, *episodes)]
    assert np.mean(right) > 0.6


def test_descriptors_are_the_columns_of_cells():
    maps = np.random.default_rng(0).standard_normal((2, 5, 3, 4)).astype(np.float32)
    rows = descriptors(maps)
    assert rows.shape == (2, 12, 5)
    for y in range(3):
        for x in range(4):
            assert np.array_equal(rows[:, y * 4 + x], maps[:, :, y, x])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_unit_length_along_any_axis(axis):
    rows = np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32)
    np.testing.assert_allclose(
        unit_vectors(rows, axis), rows / np.linalg.norm(rows, axis=axis, keepdims=True), rtol=1e-5
    )
    assert (unit_vectors(np.zeros((2, 3, 4), np.float32), axis) == 0).all()
