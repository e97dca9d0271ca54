"""Episodes of a table are the episodes that its rows make, for learners of every kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_tasks import table_episodes

from hardlook.errors import ModelError
from hardlook.models.registry import build

VECTOR_LEARNERS = ["nearest-centroid", "cosine-centroid", "matching", "ridge", "k-nn", "soft-k-means", "logistic"]
MAP_LEARNERS = ["dn4", "covamnet", "frn", "deepbdc"]


@given(st.integers(0, 10**6))
def test_an_episode_holds_the_features_of_its_rows(seed):
    episodes = table_episodes(seed)
    assert len(episodes) == len(list(episodes)) == 6
    for place, episode in enumerate(episodes):
        assert np.array_equal(episode.support, episodes.table[episodes.support[place]])
        assert np.array_equal(episode.query, episodes.table[episodes.query[place]])
        assert (episode.ways, episode.key) == (3, f"task {place}")
    part = episodes[2:5]
    assert [episode.key for episode in part] == ["task 2", "task 3", "task 4"]
    assert np.array_equal(part[0].query, episodes[2].query)


@pytest.mark.parametrize("name", VECTOR_LEARNERS + MAP_LEARNERS)
def test_learners_answer_as_for_a_list_of_episodes(name):
    learner = build(name, "few-shot-learner")
    episodes = table_episodes(3, shape=(24,) if learner.accepts == "features" else (6, 2, 3))
    for one, other in zip(learner.classify(episodes), learner.classify(list(episodes)), strict=True):
        assert np.array_equal(one, other)


def test_features_of_another_form_are_refused():
    with pytest.raises(ModelError, match="4 axes was expected"):
        build("dn4", "few-shot-learner").classify(table_episodes(0))


def test_no_episodes_no_answers():
    assert build("ridge", "few-shot-learner").classify(table_episodes(0)[:0]) == []
