"""Logistic regression against scikit-learn's, in coefficients and in answers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize
from vector_tasks import by_class, tasks

from hardlook.errors import OptionError
from hardlook.models.few_shot.logistic import Logistic, fit_regressions
from hardlook.models.few_shot.stacking import stack_episodes


def reference(rows, labels, c, tol=1e-10):
    return LogisticRegression(C=c, tol=tol, max_iter=20_000).fit(rows.astype(float), labels)


@pytest.mark.parametrize("c", [1.0, 0.01, 100.0])
@pytest.mark.parametrize(("shots", "width"), [(5, 640), (1, 64), ([1, 7, 3], 64), (6, 5)])
def test_coefficients_are_scikit_learns(shots, width, c):
    episodes = tasks(3, ways=3, shots=shots, width=width)
    rows = np.stack([normalize(by_class(episode)[0]) for episode in episodes])
    labels = np.stack([by_class(episode)[1] for episode in episodes])
    weights, intercepts = fit_regressions(rows, labels, ways=3, c=c)
    for place in range(3):
        model = reference(rows[place], labels[place], c)
        np.testing.assert_allclose(weights[place], model.coef_, atol=1e-4)
        np.testing.assert_allclose(intercepts[place], model.intercept_, atol=1e-4)


def test_answers_are_scikit_learns_with_its_own_tolerance():
    episodes = tasks(20, ways=5, shots=5, queries=15, width=640, spread=6.0)
    truth, ours, theirs = np.arange(75) % 5, [], []
    for episode, scores in zip(episodes, Logistic().classify(episodes), strict=True):
        model = reference(normalize(episode.support), episode.support_labels, c=1.0, tol=1e-4)
        ours.append((scores.argmax(1) == truth).mean())
        theirs.append((model.predict(normalize(episode.query)) == truth).mean())
        np.testing.assert_allclose(scores, model.decision_function(normalize(episode.query)), atol=5e-3)
    assert 0.4 < np.mean(theirs) < 0.99
    assert np.mean(ours) == pytest.approx(np.mean(theirs), abs=1e-4)


def test_two_classes_have_two_rows_and_so_half_the_penalty():
    [episode] = tasks(1, ways=2, shots=4, width=30)
    stack = stack_episodes([episode])
    weights, intercepts = fit_regressions(stack.support, stack.labels, ways=2, c=0.5)
    model = reference(*by_class(episode), c=1.0)
    np.testing.assert_allclose(weights[0, 1] - weights[0, 0], model.coef_[0], atol=1e-4)
    assert intercepts[0, 1] - intercepts[0, 0] == pytest.approx(model.intercept_[0], abs=1e-4)


def test_large_features_and_a_small_penalty_still_converge():
    episodes = tasks(3, ways=3, shots=4, width=50, scale=30.0)
    stack = stack_episodes(episodes)
    weights, intercepts = fit_regressions(stack.support, stack.labels, ways=3, c=1e4)
    logits = stack.support @ weights.transpose(0, 2, 1) + intercepts[:, None]
    shares = np.exp(logits - logits.max(2, keepdims=True))
    shares /= shares.sum(2, keepdims=True)
    gradient = (shares - np.eye(3)[stack.labels]).transpose(0, 2, 1) @ stack.support + weights / 1e4
    assert np.abs(gradient).max() < 1e-5


@pytest.mark.parametrize("c", [0.0, -1.0])
def test_no_room_for_weights(c):
    with pytest.raises(OptionError, match="c is above 0"):
        Logistic(c)
