"""Ridge regression against the spec's example, its closed form and scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Reference
from vector_tasks import tasks

from hardlook.errors import OptionError
from hardlook.models.few_shot.ridge import Ridge
from hardlook.models.roles import Episode


def test_the_example_of_the_spec():
    line = np.array([[1.0], [-1.0], [2.0]], np.float32)
    [scores] = Ridge(penalty=50).classify([Episode(line[:2], np.array([0, 1]), line[2:], ways=2)])
    np.testing.assert_allclose(scores, [[0.0384615, -0.0384615]], atol=5e-8)


@pytest.mark.parametrize("penalty", [50.0, 1.0, 0.01])
@pytest.mark.parametrize("width", [6, 25, 200])  # fewer columns than supports, as many, more
def test_against_the_closed_form_and_scikit_learn(width, penalty):
    episodes = tasks(6, shots=[5, 1, 9, 4, 6], width=width)
    for episode, scores in zip(episodes, Ridge(penalty).classify(episodes), strict=True):
        x, y = episode.support.astype(float), np.eye(episode.ways)[episode.support_labels]
        weights = np.linalg.inv(x.T @ x + penalty * np.eye(width)) @ x.T @ y
        np.testing.assert_allclose(scores, episode.query @ weights, atol=1e-4)
        reference = Reference(alpha=penalty, fit_intercept=False).fit(x, y)
        np.testing.assert_allclose(scores, reference.predict(episode.query.astype(float)), atol=1e-4)


@pytest.mark.parametrize("penalty", [0.0, -1.0, float("nan")])
def test_no_penalty(penalty):
    with pytest.raises(OptionError, match="penalty"):
        Ridge(penalty)
