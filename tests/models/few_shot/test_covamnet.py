import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from map_episodes import cells, pool, random_episode, scored

from hardlook.models.few_shot.covamnet import CovaMNet
from hardlook.models.roles import Episode


def prepared(query, form):
    """(h * w, C) descriptors of a query, entry by entry."""
    table = np.array(cells(query))
    count, channels = table.shape
    if form == "centred":
        return table - sum(table) / count
    if form == "descriptors":
        lengths = [np.sqrt(sum(value**2 for value in row)) for row in table]
        return np.array([row / length if length else row for row, length in zip(table, lengths, strict=True)])
    for c in range(channels):
        length = np.sqrt(sum(table[i, c] ** 2 for i in range(count)))
        table[:, c] = table[:, c] / length if length else table[:, c]
    return table


def slowly(episode, form):
    """The mean of x' S x over the query's descriptors, with NumPy's own covariance."""

    def score(query, way):
        shown = np.array(pool(episode, way))
        covariance = np.cov(shown, rowvar=False) if len(shown) > 1 else np.zeros((shown.shape[1],) * 2)
        rows = prepared(query, form)
        return sum(float(x @ covariance @ x) for x in rows) / len(rows)

    return scored(episode, score)


@pytest.mark.parametrize("form", ["channels", "descriptors", "centred"])
@given(seed=st.integers(0, 10**6), shots=st.lists(st.integers(1, 3), min_size=2, max_size=4))
def test_equals_the_slow_metric(form, seed, shots):
    episode = random_episode(seed, shots, queries=3)
    [scores] = CovaMNet(query=form).classify([episode])
    np.testing.assert_allclose(scores, slowly(episode, form), rtol=1e-4, atol=1e-6)


def test_the_authors_form_is_the_default():
    episode = random_episode(3)
    np.testing.assert_allclose(CovaMNet().classify([episode])[0], slowly(episode, "channels"), rtol=1e-4)


@given(st.integers(0, 10**6), st.floats(-3, 3))
def test_moving_all_supports_changes_nothing(seed, shift):
    episode = random_episode(seed)
    moved = Episode(episode.support + np.float32(shift), episode.support_labels, episode.query, episode.ways)
    np.testing.assert_allclose(*CovaMNet().classify([episode, moved]), rtol=1e-3, atol=1e-5)


@given(st.integers(0, 10**6), st.floats(0.1, 10))
def test_scores_grow_with_the_square_of_the_supports(seed, factor):
    episode = random_episode(seed)
    grown = Episode(episode.support * np.float32(factor), episode.support_labels, episode.query, episode.ways)
    small, large = CovaMNet().classify([episode, grown])
    np.testing.assert_allclose(large, small * np.float32(factor) ** 2, rtol=1e-3)


def test_one_descriptor_varies_nowhere():
    support = np.ones((2, 3, 1, 1), np.float32)
    [scores] = CovaMNet().classify([Episode(support, np.array([0, 1]), support, 2)])
    assert (scores == 0).all()
