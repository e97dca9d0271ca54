"""Scores from pairs of images equal those from maps, and a task's bits do not depend on the other tasks."""

import numpy as np
import pytest
from table_tasks import table_episodes

from hardlook.models.few_shot import covamnet, dn4, image_pairs
from hardlook.models.few_shot.covamnet import CovaMNet
from hardlook.models.few_shot.dn4 import DN4

LEARNERS = {
    "dn4": DN4,
    "dn4 of one neighbour": lambda: DN4(neighbours=1),
    "dn4 of more neighbours than cells": lambda: DN4(neighbours=9),
    "covamnet": CovaMNet,
    "covamnet of descriptors": lambda: CovaMNet(query="descriptors"),
    "covamnet centred": lambda: CovaMNet(query="centred"),
}

every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def no_pairs(monkeypatch):
    """What looks at maps needs no pairs."""
    for module in (dn4, covamnet):
        monkeypatch.setattr(module, "ImagePairs", None)


@every_learner
@pytest.mark.parametrize("shots", [(1, 1), (2, 1, 3), (5, 5, 5, 5, 5)])
def test_scores_of_pairs_are_those_of_maps(make, shots, monkeypatch):
    episodes = table_episodes(5, shape=(16, 2, 3), images=40, count=7, shots=shots, read_only=True)
    of_pairs = make().classify(episodes)
    no_pairs(monkeypatch)
    for one, other in zip(of_pairs, make().classify(list(episodes)), strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6 * abs(other).max())
        assert np.array_equal(one.argmax(1), other.argmax(1))


@every_learner
def test_the_other_tasks_and_the_calls_before_change_no_bit(make):
    episodes = table_episodes(6, shape=(33, 3, 3), images=30, count=9, shots=(3, 3, 3), queries=7, read_only=True)
    learner = make()
    together = learner.classify(episodes)
    backwards = [learner.classify(episodes[place : place + 1])[0] for place in reversed(range(9))][::-1]
    alone = [make().classify(episodes[place : place + 1])[0] for place in range(9)]
    for one, other, third in zip(together, backwards, alone, strict=True):
        assert np.array_equal(one, other) and np.array_equal(one, third)


@every_learner
def test_each_table_has_its_own_pairs(make):
    learner = make()
    first, second = (table_episodes(seed, shape=(8, 2, 2), read_only=True) for seed in (1, 2))
    before, between = learner.classify(first), learner.classify(second)
    assert np.array_equal(between[0], make().classify(second)[0])
    assert np.array_equal(learner.classify(first)[0], before[0])


def test_each_pair_is_computed_once(monkeypatch):
    episodes = table_episodes(3, shape=(8, 2, 2), images=12, count=20, shots=(2, 2), queries=4, read_only=True)
    computed = []
    multiply = np.matmul
    monkeypatch.setattr(image_pairs.np, "matmul", lambda *given, out: computed.append(1) or multiply(*given, out=out))
    learner = DN4()
    for _ in range(3):
        learner.classify(episodes)
    asked = {(q, s) for task in range(20) for q in episodes.query[task] for s in episodes.support[task]}
    assert len(computed) == len(asked)


@pytest.mark.parametrize(("most", "read_only"), [(1000, True), (image_pairs.MAX_PAIR_BYTES, False)])
def test_large_tables_and_those_that_may_change_have_no_pairs(most, read_only, monkeypatch):
    monkeypatch.setattr(image_pairs, "MAX_PAIR_BYTES", most)
    no_pairs(monkeypatch)
    episodes = table_episodes(0, shape=(4, 2, 2), images=20, read_only=read_only)
    assert len(DN4().classify(episodes)) == len(CovaMNet().classify(episodes)) == len(episodes)


def test_far_from_the_origin_a_covariance_keeps_its_digits():
    episodes = table_episodes(2, shape=(16, 2, 3), shots=(2, 2, 2), read_only=True)
    far = episodes.table + np.float32(1024)
    far.flags.writeable = False
    moved = type(episodes)(far, episodes.support, episodes.labels, episodes.query, episodes.ways, episodes.keys)
    for one, other in zip(CovaMNet().classify(moved), CovaMNet().classify(list(moved)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_class_of_one_descriptor_varies_nowhere():
    episodes = table_episodes(1, shape=(8, 1, 1), images=20, shots=(1, 1), read_only=True)
    assert all((scores == 0).all() for scores in CovaMNet().classify(episodes))
