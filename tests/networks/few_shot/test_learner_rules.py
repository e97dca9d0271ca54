"""The rules of learners on tensors: the same scores as the learners themselves, and as scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from hardlook.models.few_shot.logistic import Logistic
from hardlook.models.few_shot.nearest_neighbours import KNearest
from hardlook.models.roles import Episode
from hardlook.networks.few_shot.deepbdc import DeepBDCSTL
from hardlook.networks.few_shot.learner_rules import (
    score_by_learner,
    score_by_means,
    score_by_neighbours,
    score_by_regression,
)
from hardlook.networks.few_shot.method import Episodes
from hardlook.networks.few_shot.rfs import Rfs

TASKS, WAYS, QUERIES = 6, 4, 9


def make_features(shots, width, seed=0):
    """Positive features, as after a ReLU, of tasks that are not easy."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((TASKS, WAYS, 1, width))
    images = np.abs(centres + 2 * rng.standard_normal((TASKS, WAYS, shots + QUERIES, width))).astype(np.float32)
    query = images[:, :, shots:].reshape(TASKS, -1, width)
    return Episodes(torch.from_numpy(images[:, :, :shots].copy()), torch.from_numpy(query))


def ask(learner, features):
    labels = features.support_labels().numpy()
    supports = features.support.flatten(1, 2).numpy()
    episodes = [
        Episode(shown, labels, asked, WAYS) for shown, asked in zip(supports, features.query.numpy(), strict=True)
    ]
    return np.stack(learner.classify(episodes))


def centred(scores):
    return scores - scores.mean(-1, keepdims=True)


@pytest.mark.parametrize(("shots", "width", "c"), [(1, 30, 1.0), (5, 8, 1.0), (5, 100, 2.0), (2, 30, 0.1)])
def test_regression_is_that_of_the_learner(shots, width, c):
    features = make_features(shots, width)
    found = centred(score_by_regression(features, c).numpy())
    np.testing.assert_allclose(found, centred(ask(Logistic(c), features)), atol=1e-5)


def test_regression_is_that_of_scikit_learn():
    features = make_features(3, 20)
    found = centred(score_by_regression(features).numpy())
    for task in range(TASKS):
        units = torch.nn.functional.normalize(features.support[task].flatten(0, 1).double(), dim=-1).numpy()
        asked = torch.nn.functional.normalize(features.query[task].double(), dim=-1).numpy()
        model = LogisticRegression(C=1.0, tol=1e-9, max_iter=5000).fit(units, features.support_labels().numpy())
        np.testing.assert_allclose(found[task], centred(model.decision_function(asked)), atol=1e-4)


def test_equal_and_empty_supports_do_no_harm():
    features = make_features(2, 12)
    features.support[0] = features.support[0, :1, :1]
    features.support[1] = 0
    assert score_by_regression(features).isfinite().all()


@pytest.mark.parametrize("k", [1, 3])
def test_neighbours_are_those_of_the_learner(k):
    features = make_features(3, 20)
    found = score_by_neighbours(features, k).numpy()
    np.testing.assert_allclose(found / min(k, 12), ask(KNearest(k), features), atol=1e-6)


def test_a_method_is_judged_by_its_learner_and_penalty():
    features = make_features(5, 20)
    assert torch.equal(score_by_learner(Rfs(), features), score_by_regression(features))
    assert torch.equal(score_by_learner(DeepBDCSTL(), features), score_by_regression(features, 2.0))

    class Other(Rfs):
        learner = "one that is not here"

    assert torch.equal(score_by_learner(Other(), features), score_by_means(features))
