import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from map_episodes import cells, pool, random_episode, scored

from hardlook.errors import OptionError
from hardlook.models.few_shot.dn4 import DN4
from hardlook.models.roles import Episode


def cosine(a, b):
    lengths = np.sqrt((a * a).sum()) * np.sqrt((b * b).sum())
    return float((a * b).sum() / lengths) if lengths > 0 else 0.0


def slowly(episode, neighbours=3):
    """The paper's image-to-class measure, a cosine at a time."""

    def score(query, way):
        total = 0.0
        for x in cells(query):
            total += sum(sorted((cosine(x, y) for y in pool(episode, way)), reverse=True)[:neighbours])
        return total

    return scored(episode, score)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 3), min_size=2, max_size=4), st.integers(1, 4))
def test_equals_the_slow_measure(seed, shots, neighbours):
    episode = random_episode(seed, shots, queries=3)
    [scores] = DN4(neighbours=neighbours).classify([episode])
    np.testing.assert_allclose(scores, slowly(episode, neighbours), rtol=1e-5, atol=1e-5)


def test_three_neighbours_as_published():
    episode = random_episode(5)
    np.testing.assert_allclose(DN4().classify([episode])[0], slowly(episode, 3), rtol=1e-5)


@given(st.integers(0, 10**6), st.floats(0.01, 100), st.floats(0.01, 100))
def test_the_scale_of_maps_does_not_matter(seed, first, second):
    episode = random_episode(seed)
    scaled = Episode(
        episode.support * np.float32(first), episode.support_labels, episode.query * np.float32(second), episode.ways
    )
    one, two = DN4().classify([episode, scaled])
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


@given(st.integers(0, 10**6))
def test_where_a_descriptor_lies_does_not_matter(seed):
    episode = random_episode(seed)
    moved = Episode(episode.support[..., ::-1, :], episode.support_labels, episode.query[..., ::-1], episode.ways)
    np.testing.assert_allclose(*DN4().classify([episode, moved]), rtol=1e-5, atol=1e-5)


def test_an_image_finds_itself():
    episode = random_episode(1, shots=(1, 1, 1))
    same = Episode(episode.support, episode.support_labels, episode.support, episode.ways)
    [scores] = DN4(neighbours=1).classify([same])
    lively = (episode.support**2).sum(axis=1).reshape(3, -1) > 0
    np.testing.assert_allclose(scores[np.arange(3), episode.support_labels], lively.sum(axis=1), rtol=1e-5)


def test_a_pool_smaller_than_k_is_at_no_disadvantage():
    support = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0], np.float32).reshape(3, 2, 1, 1)
    episode = Episode(support, np.array([0, 1, 1]), np.array([1.0, 1.0], np.float32).reshape(1, 2, 1, 1), 2)
    [[first, second]] = DN4(neighbours=3).classify([episode])[0].tolist()
    assert first == pytest.approx(second) == pytest.approx(3 * np.sqrt(0.5))


def test_empty_maps_give_finite_scores():
    silent = np.zeros((3, 4, 2, 2), np.float32)
    [scores] = DN4().classify([Episode(silent[:2], np.array([0, 1]), silent, 2)])
    assert (scores == 0).all()


def test_at_least_one_neighbour():
    with pytest.raises(OptionError, match="neighbours is 0"):
        DN4(neighbours=0)
