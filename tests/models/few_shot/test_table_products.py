"""Scores from looked-up products equal those from features, and a task's bits do not depend on the other tasks."""

import numpy as np
import pytest
from table_tasks import table_episodes

from hardlook.models.few_shot import table_products
from hardlook.models.few_shot.table_products import TableProducts
from hardlook.models.registry import build

LEARNERS = ["nearest-centroid", "cosine-centroid", "matching", "ridge"]

every_learner = pytest.mark.parametrize("name", LEARNERS)


@every_learner
@pytest.mark.parametrize("shots", [(1, 1), (2, 1, 3), (5, 5, 5, 5, 5)])
def test_looked_up_scores_are_those_of_features(name, shots, monkeypatch):
    episodes = table_episodes(5, shape=(64,), images=60, count=9, shots=shots, read_only=True)
    looked_up = build(name, "few-shot-learner").classify(episodes)
    monkeypatch.setattr(table_products, "TableProducts", None)  # what is not looked up needs none
    from_features = build(name, "few-shot-learner").classify(list(episodes))
    for one, other in zip(looked_up, from_features, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=2e-5)
        assert np.array_equal(one.argmax(1), other.argmax(1))


@every_learner
def test_the_other_tasks_of_a_call_change_no_bit(name, monkeypatch):
    episodes = table_episodes(6, shape=(320,), images=90, count=11, shots=(5, 5, 5), queries=15, read_only=True)
    learner = build(name, "few-shot-learner")
    together = learner.classify(episodes)
    alone = [learner.classify(episodes[place : place + 1])[0] for place in range(11)]
    assert all(np.array_equal(one, other) for one, other in zip(together, alone, strict=True))
    monkeypatch.setattr(table_products, "TASKS_AT_ONCE", 4)
    assert all(np.array_equal(one, other) for one, other in zip(together, learner.classify(episodes), strict=True))


@every_learner
def test_each_table_has_its_own_products(name):
    learner, first, second = build(name, "few-shot-learner"), *(table_episodes(s, read_only=True) for s in (1, 2))
    before = learner.classify(first)
    between = learner.classify(second)
    assert np.array_equal(between[0], build(name, "few-shot-learner").classify(second)[0])
    assert np.array_equal(learner.classify(first)[0], before[0])


@pytest.mark.parametrize(("images", "read_only"), [(table_products.MAX_IMAGES + 1, True), (40, False)])
def test_large_tables_and_those_that_may_change_are_not_multiplied(images, read_only, monkeypatch):
    monkeypatch.setattr(table_products, "TableProducts", None)
    episodes = table_episodes(0, shape=(4,), images=images, read_only=read_only)
    assert len(build("ridge", "few-shot-learner").classify(episodes)) == 6


def test_far_from_the_origin_distances_keep_their_digits():
    episodes = table_episodes(2, read_only=True)
    far = episodes.table + np.float32(1024)
    far.flags.writeable = False
    moved = type(episodes)(far, episodes.support, episodes.labels, episodes.query, episodes.ways, episodes.keys)
    one, other = (build("nearest-centroid", "few-shot-learner").classify(each) for each in (episodes, moved))
    np.testing.assert_allclose(other, one, rtol=1e-2, atol=1e-2)


def test_products_in_float64():
    rows = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    assert np.array_equal(TableProducts(rows, dtype=np.float64).products, rows.astype(float) @ rows.T.astype(float))
