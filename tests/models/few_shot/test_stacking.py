"""Stacks hold what the episodes hold, and answers come back in their order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vector_tasks import by_class, task

from hardlook.errors import ModelError
from hardlook.models.few_shot import stacking
from hardlook.models.few_shot.stacking import StackedLearner, group_episodes, multiply_rows


class Marking(StackedLearner):
    """Scores that tell which query and class they belong to; `seen` are the stacks."""

    def __init__(self, accepts="features"):
        self.accepts, self.seen = accepts, []

    def score_stack(self, stack):
        self.seen.append(stack)
        if self.accepts == "maps":
            return np.zeros((*stack.query.shape[:2], stack.ways), np.float32)
        by_way = [stack.support[:, stack.labels[0] == way].sum(axis=(1, 2)) for way in range(stack.ways)]
        return stack.query.sum(axis=2)[..., None] + 100 * np.stack(by_way, axis=1)[:, None]


shapes = st.lists(st.sampled_from([(2, 1), (3, 2), (2, (1, 3)), (2, (3, 1)), (3, (1, 2, 3))]), max_size=12)


@given(shapes, st.integers(1, 5), st.integers(1, 20_000))
def test_answers_follow_their_episodes(drawn, most_tasks, most_bytes):
    episodes = [task(place, ways, shots, queries=2, width=4) for place, (ways, shots) in enumerate(drawn)]
    learner = Marking()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacking, "MAX_TASKS", most_tasks)
        patch.setattr(stacking, "MAX_BYTES", most_bytes)
        scores = learner.classify(episodes)
    assert len(scores) == len(episodes)
    for answer, episode in zip(scores, episodes, strict=True):
        sums = [episode.support[episode.support_labels == way].sum() for way in range(episode.ways)]
        np.testing.assert_allclose(answer, episode.query.sum(1)[:, None] + 100 * np.array(sums), rtol=1e-3, atol=1e-3)
        assert answer.dtype == np.float32
    sizes = [(len(stack.keys), stack.support.nbytes + stack.query.nbytes) for stack in learner.seen]
    assert all(count <= most_tasks and (count == 1 or size <= most_bytes) for count, size in sizes)
    assert sorted(key for stack in learner.seen for key in stack.keys) == sorted(episode.key for episode in episodes)


def test_supports_are_sorted_by_class_and_keep_their_order_within_it():
    episode = task("uneven", ways=3, shots=[2, 1, 4])
    learner = Marking()
    learner.classify([episode, episode])
    [stack] = learner.seen
    rows, labels = by_class(episode)
    assert np.array_equal(stack.support[1], rows)
    assert stack.labels.tolist() == [labels.tolist()] * 2
    assert (stack.shots.tolist(), stack.starts.tolist()) == ([2, 1, 4], [0, 2, 3])
    assert np.array_equal(stack.membership, labels[:, None] == np.arange(3))
    means = [[rows[labels == way].mean(0) for way in range(3)]] * 2
    np.testing.assert_allclose(stack.class_means(), means, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(stack.averaging @ stack.support, means, rtol=1e-5, atol=1e-6)


def test_maps_keep_their_shape():
    maps = np.arange(2 * 3 * 2 * 2, dtype=np.float32).reshape(2, 3, 2, 2)
    episode = replace(task("maps", ways=2, shots=1), support=maps, query=maps[:1])
    learner = Marking("maps")
    learner.classify([episode] * 3)
    assert [stack.support.shape for stack in learner.seen] == [(3, 2, 3, 2, 2)]


def test_answers_keep_no_stack_alive():
    [first, _] = Marking().classify([task(0), task(1)])
    assert first.base is None


def test_sorted_supports_are_not_copied():
    episode = task("sorted")
    episode = replace(episode, support_labels=np.sort(episode.support_labels))
    support, query = group_episodes([episode]).read(0)
    assert support is episode.support and query is episode.query


@pytest.mark.parametrize("shape", [(75, 25, 1280), (4, 3, 7), (0, 3, 5), (3, 900, 1300), (131, 25, 320)])
def test_products_in_blocks_are_the_products(shape):
    rows, points, width = shape
    random = np.random.default_rng(rows)
    left, right = random.standard_normal((rows, width)), random.standard_normal((points, width))
    np.testing.assert_allclose(multiply_rows(left, right, np.empty((rows, points))), left @ right.T, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"support": [np.zeros((4, 4, 3), np.uint8)] * 25}, "a list of images"),
        ({"support": np.zeros((25, 2, 2, 2), np.float32)}, r"shape \(25, 2, 2, 2\)"),
        ({"query": np.zeros((3, 9), np.float32)}, "different shapes"),
        ({"support_labels": np.zeros(25, np.int64)}, "each with a support"),
        ({"support_labels": np.arange(24) % 5}, "one label per support"),
        ({"ways": 4}, "4 classes"),
    ],
)
def test_what_does_not_fit_is_named(change, words):
    with pytest.raises(ModelError, match=words) as caught:
        Marking().classify([replace(task("odd one"), **change)])
    assert caught.value.unit == "odd one"
