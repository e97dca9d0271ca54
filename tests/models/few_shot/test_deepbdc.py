import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from map_episodes import random_episode
from table_tasks import table_episodes

from hardlook.errors import OptionError
from hardlook.models.few_shot.deepbdc import DeepBDC
from hardlook.models.roles import Episode


def triangle(image_map):
    """The paper's vector of one map: distances between channels, centred twice, upper triangle with the diagonal."""
    channels = image_map.reshape(len(image_map), -1).astype(np.float64)
    count, observations = channels.shape
    distances = np.zeros((count, count))
    for k in range(count):
        for j in range(count):
            squared = ((channels[k] - channels[j]) ** 2).sum()
            distances[k, j] = np.sqrt(squared / (2 * observations) + 1e-5)
    centred = np.zeros_like(distances)
    for k in range(count):
        for j in range(count):
            centred[k, j] = distances[k, j] - distances[k].mean() - distances[:, j].mean() + distances.mean()
    return np.array([centred[k, j] for k in range(count) for j in range(k, count)])


def slowly(episode):
    means = []
    for way in range(episode.ways):
        shown = [triangle(s) for s, label in zip(episode.support, episode.support_labels, strict=True) if label == way]
        means.append(sum(shown) / len(shown))
    single = len(episode.support) == episode.ways
    table = np.zeros((len(episode.query), episode.ways))
    for i, query in enumerate(episode.query):
        vector = triangle(query)
        for way, mean in enumerate(means):
            table[i, way] = (vector * mean).sum() if single else -((vector - mean) ** 2).sum()
    return table


@given(st.integers(0, 10**6), st.sampled_from([(1, 1), (1, 1, 1), (2, 2, 2), (1, 3, 2)]))
def test_equals_the_slow_matrices(seed, shots):
    episode = random_episode(seed, shots, queries=2)
    [scores] = DeepBDC().classify([episode])
    np.testing.assert_allclose(scores, slowly(episode), rtol=1e-3, atol=1e-4)


def test_many_channels_in_blocks(monkeypatch):
    monkeypatch.setattr("hardlook.models.few_shot.stacking.BLOCK_BYTES", 4 * 20 * 20 * 2)
    episode = random_episode(4, shots=(3, 5), queries=5, shape=(20, 3, 3))
    np.testing.assert_allclose(DeepBDC().classify([episode])[0], slowly(episode), rtol=1e-3, atol=1e-4)


@given(st.integers(0, 10**6), st.floats(-5, 5))
def test_adding_one_value_everywhere_changes_nothing(seed, shift):
    episode = random_episode(seed)
    moved = Episode(episode.support, episode.support_labels, episode.query + np.float32(shift), episode.ways)
    np.testing.assert_allclose(*DeepBDC().classify([episode, moved]), rtol=1e-3, atol=1e-3)


@given(st.integers(0, 10**6))
def test_cells_may_be_shuffled(seed):
    episode = random_episode(seed)
    order = np.random.default_rng(seed).permutation(6)
    shuffled = episode.query.reshape(4, 6, 6)[:, :, order].reshape(episode.query.shape)
    other = Episode(episode.support, episode.support_labels, shuffled, episode.ways)
    np.testing.assert_allclose(*DeepBDC().classify([episode, other]), rtol=1e-3, atol=1e-4)


def test_reduction_is_a_fixed_mix_of_channels():
    episode = random_episode(7, shots=(2, 2), shape=(30, 2, 2))
    learner = DeepBDC(dimension=8)
    mixing = learner._channels(np.eye(30, dtype=np.float32)[:, :, None, None])[:, :, 0].T
    np.testing.assert_allclose(mixing @ mixing.T, np.eye(8) * 30 / 8, atol=1e-5)
    mixed = Episode(
        np.einsum("dc,nchw->ndhw", mixing, episode.support),
        episode.support_labels,
        np.einsum("dc,nchw->ndhw", mixing, episode.query),
        episode.ways,
    )
    np.testing.assert_allclose(learner.classify([episode])[0], slowly(mixed), rtol=1e-3, atol=1e-3)
    assert np.array_equal(DeepBDC(dimension=8).classify([episode])[0], learner.classify([episode])[0])
    assert not np.array_equal(DeepBDC(dimension=8, seed=1).classify([episode])[0], learner.classify([episode])[0])


def test_two_channels_at_least():
    with pytest.raises(OptionError, match="dimension is 1"):
        DeepBDC(dimension=1)


@pytest.mark.parametrize("shots", [(1, 1), (2, 1, 3)])
@pytest.mark.parametrize("dimension", [640, 5])
def test_products_of_a_table_give_the_same_scores(shots, dimension, monkeypatch):
    episodes = table_episodes(8, shape=(6, 2, 3), shots=shots, read_only=True)
    direct = DeepBDC(dimension=dimension).classify(list(episodes))
    monkeypatch.setattr(DeepBDC, "score_features", None)  # products are looked up
    for one, other in zip(DeepBDC(dimension=dimension).classify(episodes), direct, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
        assert np.array_equal(one.argmax(1), other.argmax(1))


def test_tables_with_large_vectors_are_not_multiplied(monkeypatch):
    learner, table = DeepBDC(), np.zeros((40, 6, 1, 1), np.float32)
    assert learner.can_multiply(table)
    monkeypatch.setattr("hardlook.models.few_shot.deepbdc.MAX_VECTOR_BYTES", 40 * 21 * 4 - 1)
    assert not learner.can_multiply(table)
