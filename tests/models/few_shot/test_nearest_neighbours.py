"""k nearest neighbours against scikit-learn's."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from vector_tasks import tasks

from hardlook.errors import OptionError
from hardlook.models.few_shot.nearest_neighbours import KNearest
from hardlook.models.roles import Episode


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("k", [1, 3, 5, 25])
def test_votes_are_those_of_scikit_learn(k, metric):
    episodes = tasks(10, spread=2.0)
    for episode, scores in zip(episodes, KNearest(k, metric).classify(episodes), strict=True):
        reference = KNeighborsClassifier(k, metric=metric, algorithm="brute")
        votes = reference.fit(episode.support, episode.support_labels).predict_proba(episode.query) * k
        assert np.array_equal(np.floor(scores * k + 1e-4), votes.round())


def test_of_equal_votes_the_class_with_the_nearest_support_wins():
    line = np.array([[5.0], [4.0], [0.0], [1.0], [9.0]], np.float32)
    episode = Episode(line, np.array([0, 1, 1, 0, 2]), np.array([[4.2]], np.float32), ways=3)
    [scores] = KNearest(k=4).classify([episode])  # 4 and 0 of one class, 5 and 1 of the other
    assert scores[0].argsort()[::-1].tolist() == [1, 0, 2]


def test_more_neighbours_than_there_are():
    [episode] = tasks(1, ways=3, shots=2)
    assert np.array_equal(KNearest(99).classify([episode])[0], KNearest(6).classify([episode])[0])


def test_no_neighbours():
    with pytest.raises(OptionError, match="k 0"):
        KNearest(k=0)
