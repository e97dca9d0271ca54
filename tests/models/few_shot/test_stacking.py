"""Stacks hold what the episodes hold, and answers come back in their order."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from vector_tasks import by_class, task

from hardlook.errors import ModelError
from hardlook.models.few_shot.stacking import classify_in_stacks


def marked(stack):
    """Scores that tell which query and class they belong to."""
    sums = np.stack([stack.support[:, stack.labels[0] == way].sum(axis=(1, 2)) for way in range(stack.ways)], axis=1)
    return stack.query.sum(axis=2)[..., None] + 100 * sums[:, None]


shapes = st.lists(st.sampled_from([(2, 1), (3, 2), (2, (1, 3)), (2, (3, 1)), (3, (1, 2, 3))]), max_size=12)


@given(shapes, st.integers(1, 5), st.integers(1, 20_000))
def test_answers_follow_their_episodes(drawn, most_tasks, most_bytes):
    episodes = [task(place, ways, shots, queries=2, width=4) for place, (ways, shots) in enumerate(drawn)]
    sizes = []

    def classify(stack):
        sizes.append((len(stack.keys), stack.support.nbytes + stack.query.nbytes))
        return marked(stack)

    scores = classify_in_stacks(episodes, classify, form="features", most_tasks=most_tasks, most_bytes=most_bytes)
    assert len(scores) == len(episodes)
    for answer, episode in zip(scores, episodes, strict=True):
        sums = [episode.support[episode.support_labels == way].sum() for way in range(episode.ways)]
        np.testing.assert_allclose(answer, episode.query.sum(1)[:, None] + 100 * np.array(sums), rtol=1e-3, atol=1e-3)
        assert answer.dtype == np.float32
    assert all(count <= most_tasks and (count == 1 or size <= most_bytes) for count, size in sizes)


def test_supports_are_sorted_by_class_and_keep_their_order_within_it():
    episode = task("uneven", ways=3, shots=[2, 1, 4])
    seen = []
    classify_in_stacks([episode, episode], lambda stack: [seen.append(stack), np.zeros((2, 9, 3))][1])
    [stack] = seen
    rows, labels = by_class(episode)
    assert np.array_equal(stack.support[1], rows)
    assert stack.labels.tolist() == [labels.tolist()] * 2
    assert (stack.shots.tolist(), stack.starts.tolist()) == ([2, 1, 4], [0, 2, 3])
    assert np.array_equal(stack.membership, labels[:, None] == np.arange(3))
    means = [[rows[labels == way].mean(0) for way in range(3)]] * 2
    np.testing.assert_allclose(stack.class_means(), means, rtol=1e-6, atol=1e-6)


def test_maps_keep_their_shape():
    maps = np.arange(2 * 3 * 2 * 2, dtype=np.float32).reshape(2, 3, 2, 2)
    episode = task("maps", ways=2, shots=1)
    episode = replace(episode, support=maps, query=maps[:1])
    shapes = []
    classify_in_stacks(
        [episode] * 3, lambda stack: [shapes.append(stack.support.shape), np.zeros((3, 1, 2))][1], form="maps"
    )
    assert shapes == [(3, 2, 3, 2, 2)]


def test_answers_keep_no_stack_alive():
    [first, _] = classify_in_stacks([task(0), task(1)], marked)
    assert first.base is None


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
        classify_in_stacks([replace(task("odd one"), **change)], marked, form="features")
    assert caught.value.unit == "odd one"
