import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from map_episodes import cells, pool, random_episode, scored
from sklearn.linear_model import Ridge

from hardlook.models.few_shot.frn import FRN
from hardlook.models.roles import Episode


def slowly(episode, alpha=0.0, beta=0.0, factor=None):
    """The paper's reconstruction in the order of its equations, the ridge by scikit-learn."""
    channels = episode.query.shape[1]
    factor = 1 / np.sqrt(channels) if factor is None else factor

    def score(query, way):
        shown, asked = np.array(pool(episode, way)) * factor, np.array(cells(query)) * factor
        weight = len(shown) / channels * np.exp(alpha) + 1e-6
        fitted = Ridge(alpha=weight, fit_intercept=False, solver="cholesky").fit(shown.T, asked.T)
        total = 0.0
        for row, weights in zip(asked, fitted.coef_, strict=True):
            rebuilt = np.exp(beta) * sum(w * s for w, s in zip(weights, shown, strict=True))
            total += ((row - rebuilt) ** 2).sum()
        return -total / len(asked)

    return scored(episode, score)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 3), min_size=2, max_size=3))
def test_equals_the_slow_reconstruction(seed, shots):
    episode = random_episode(seed, shots, queries=2)
    [scores] = FRN().classify([episode])
    np.testing.assert_allclose(scores, slowly(episode), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("alpha", "beta"), [(1.5, 0.0), (-2.0, 0.3), (0.5, -0.4)])
def test_learnt_values_can_be_given(alpha, beta):
    episode = random_episode(8, shots=(2, 1, 3), shape=(40, 2, 2))
    [scores] = FRN(alpha=alpha, beta=beta).classify([episode])
    np.testing.assert_allclose(scores, slowly(episode, alpha, beta), rtol=1e-4, atol=1e-5)


def test_maps_as_they_are():
    episode = random_episode(2)
    [scores] = FRN(downscale=False).classify([episode])
    np.testing.assert_allclose(scores, slowly(episode, factor=1.0), rtol=1e-4, atol=1e-5)


@given(st.integers(0, 10**6))
def test_errors_lie_between_nothing_and_the_whole_query(seed):
    episode = random_episode(seed)
    [scores] = FRN().classify([episode])
    whole = (episode.query.astype(float) ** 2).sum(axis=1).mean(axis=(1, 2)) / episode.query.shape[1]
    assert (scores <= 1e-6).all() and (-scores <= whole[:, None] + 1e-6).all()


def test_a_weak_ridge_rebuilds_what_the_support_spans_and_only_that():
    rng = np.random.default_rng(0)
    support = np.zeros((2, 8, 2, 2), np.float32)
    support[0, :4], support[1, 4:] = rng.standard_normal((2, 4, 2, 2))
    mixed = (support[:1, :, ::-1, ::-1] * 2).astype(np.float32)
    [scores] = FRN(alpha=-12.0).classify([Episode(support, np.array([0, 1]), mixed, 2)])
    assert scores[0, 0] == pytest.approx(0, abs=1e-3)
    assert scores[0, 1] == pytest.approx(-(mixed**2).sum() / 4 / 8, rel=1e-3)
