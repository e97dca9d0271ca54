import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.semi_supervised import LabelSpreading

from hardlook.errors import OptionError
from hardlook.models.few_shot.label_propagation import LabelPropagation
from hardlook.models.roles import Episode


def vectors(seed, shots=(2, 2, 2), queries=9, dimension=5):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(shots)), shots))
    means = 2 * rng.standard_normal((len(shots), dimension))
    support = means[labels] + rng.standard_normal((len(labels), dimension))
    query = means[np.arange(queries) % len(shots)] + rng.standard_normal((queries, dimension))
    return Episode(support.astype(np.float32), labels, query.astype(np.float32), len(shots))


def weights(episode, neighbours, sigma):
    """The graph of neighbours, node by node."""
    nodes = [*episode.support.astype(float), *episode.query.astype(float)]
    count = len(nodes)
    squared = np.array([[((a - b) ** 2).sum() for b in nodes] for a in nodes])
    edges = set()
    for i in range(count):
        others = sorted((j for j in range(count) if j != i), key=lambda j: squared[i, j])
        for j in others[:neighbours]:
            edges |= {(i, j), (j, i)}
    scale = np.mean([squared[edge] for edge in edges])
    table = np.zeros((count, count))
    for edge in edges:
        table[edge] = np.exp(-squared[edge] / (2 * sigma**2 * scale))
    return table


def slowly(episode, neighbours=20, sigma=0.1, alpha=0.99):
    """Labels sent along the edges until nothing changes, as Zhou et al. iterate."""
    table = weights(episode, neighbours, sigma)
    degrees = table.sum(axis=1)
    spread = table / np.sqrt(degrees[:, None] * degrees[None, :])
    start = np.zeros((len(table), episode.ways))
    start[np.arange(len(episode.support)), episode.support_labels] = 1
    flow = start
    for _ in range(5000):
        flow = alpha * spread @ flow + start
    return flow[len(episode.support) :]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([(1, 1), (2, 2, 2), (1, 3, 2)]), st.integers(2, 20))
def test_equals_the_iteration(seed, shots, neighbours):
    episode = vectors(seed, shots)
    [scores] = LabelPropagation(neighbours=neighbours, sigma=0.5).classify([episode])
    np.testing.assert_allclose(scores, slowly(episode, neighbours, 0.5), rtol=1e-3, atol=1e-4)


def test_published_values_are_the_default():
    episode = vectors(3, queries=30)
    learner = LabelPropagation()
    assert (learner.neighbours, learner.alpha) == (20, 0.99)
    np.testing.assert_allclose(learner.classify([episode])[0], slowly(episode), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_shares_equal_scikit_learn(seed):
    episode = vectors(seed)
    table = weights(episode, 6, 0.5)
    labels = np.concatenate([episode.support_labels, np.full(len(episode.query), -1)])
    theirs = LabelSpreading(kernel=lambda x, y: table, alpha=0.9, max_iter=3000, tol=1e-12).fit(
        np.arange(len(labels))[:, None], labels
    )
    [scores] = LabelPropagation(neighbours=6, sigma=0.5, alpha=0.9).classify([episode])
    shares = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, theirs.label_distributions_[len(episode.support) :], rtol=1e-3, atol=1e-5)


@given(st.integers(0, 10**6), st.floats(0.01, 100), st.floats(-5, 5))
def test_neither_scale_nor_place_of_the_features_matters(seed, factor, shift):
    episode = vectors(seed)
    support, query = (np.float32(factor) * (x + np.float32(shift)) for x in (episode.support, episode.query))
    moved = Episode(support, episode.support_labels, query, episode.ways)
    np.testing.assert_allclose(*LabelPropagation(sigma=0.5).classify([episode, moved]), rtol=0.02, atol=1e-3)


@given(st.integers(0, 10**6))
def test_queries_follow_their_rows(seed):
    episode = vectors(seed)
    order = np.random.default_rng(seed).permutation(len(episode.query))
    turned = Episode(episode.support, episode.support_labels, episode.query[order], episode.ways)
    straight, other = LabelPropagation().classify([episode, turned])
    np.testing.assert_allclose(straight[order], other, rtol=1e-3, atol=1e-5)


def test_queries_help_each_other():
    line = np.array([[0.0], [10.0], [1.0], [2.2], [3.6], [5.2]], np.float32)
    together = Episode(line[:2], np.array([0, 1]), line[2:], 2)
    [[alone]] = LabelPropagation(neighbours=1).classify([Episode(line[:2], np.array([0, 1]), line[5:], 2)])
    assert LabelPropagation.transductive
    assert alone.argmax() == 1  # 5.2 is nearer to 10 than to 0
    assert LabelPropagation(neighbours=1).classify([together])[0][3].argmax() == 0  # but a chain leads to 0


def test_a_query_that_nothing_reaches_scores_nothing():
    far = np.array([[0.0], [1.0], [0.2], [1000.0], [1000.1]], np.float32)
    [scores] = LabelPropagation(neighbours=1).classify([Episode(far[:2], np.array([0, 1]), far[2:], 2)])
    assert scores[0].argmax() == 0
    assert (scores[1:] == 0).all()


def test_equal_vectors_are_no_trouble():
    same = np.ones((6, 3), np.float32)
    [scores] = LabelPropagation().classify([Episode(same[:2], np.array([0, 1]), same[2:], 2)])
    np.testing.assert_allclose(scores[:, 0], scores[:, 1], rtol=1e-5)


@pytest.mark.parametrize("wrong", [{"neighbours": 0}, {"sigma": 0.0}, {"alpha": 1.0}])
def test_impossible_settings(wrong):
    with pytest.raises(OptionError, match="make no graph"):
        LabelPropagation(**wrong)
