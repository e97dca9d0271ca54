"""Probes on made vectors whose truth is known, and the folds they are judged on."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from hardlook.contexts.linear_probe import out_of_fold
from hardlook.contexts.readability import FOLDS, cell_folds, image_folds, readabilities
from hardlook.randomness import generator

labels = st.lists(st.integers(0, 5), min_size=1, max_size=60)


@given(labels, st.integers(2, 6), st.integers(0, 99))
def test_each_label_is_dealt_evenly(rows, folds, seed):
    numbers = image_folds(rows, folds, np.random.default_rng(seed))
    for kind in set(rows):
        own = numbers[np.array(rows) == kind]
        if len(own) == 1:
            assert own.tolist() == [-1]
        else:
            counts = np.bincount(own, minlength=folds)
            assert own.min() >= 0 and len(counts) == folds and counts.max() - counts.min() <= 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=60), st.integers(0, 99))
def test_a_concept_is_asked_about_in_contexts_it_was_not_trained_in(rows, seed):
    concept, context = (np.array(part) for part in zip(*rows, strict=True))
    numbers = cell_folds(concept, context, 3, np.random.default_rng(seed))
    for fold in range(3):
        asked = {pair for pair, number in zip(rows, numbers, strict=True) if number == fold}
        trained = {pair for pair, number in zip(rows, numbers, strict=True) if number != fold}
        assert not asked & trained
        assert {kind for kind, _ in asked} <= {kind for kind, _ in trained}
    single = [kind for kind in set(concept) if len(set(context[concept == kind])) == 1]
    assert set(concept[numbers == -1]) == set(single)


def vectors_of(concept, context, follow, seed=0):
    """Concept and context side by side, `follow` the weight of the context."""
    noise = 0.35 * np.random.default_rng(seed).standard_normal((len(concept), 14))
    return np.concatenate([(1 - follow) * np.eye(6)[concept], follow * np.eye(8)[context]], axis=1) + noise


def test_accuracy_is_the_mean_over_labels():
    concept, context = np.repeat(np.arange(6), [10, 20, 30, 40, 50, 60]), np.arange(210) % 8
    vectors = vectors_of(concept, context, 0.5)
    found = readabilities(vectors, concept, context, seed=4)
    folds = image_folds(concept, FOLDS, generator(4, "probe", "concept"))
    assert found[1].accuracy.value == pytest.approx(
        balanced_accuracy_score(concept, out_of_fold(vectors, concept, folds))
    )
    assert found[1].accuracy.value in found[1].accuracy.interval and found[1].accuracy.interval.n == 210
    assert found[1].above_chance == pytest.approx((found[1].accuracy.value - 1 / 6) / (5 / 6))


def test_context_where_it_is_followed():
    """Concepts mostly in a context of their own: a probe reads them by it, and fails where they are without it."""
    rng = np.random.default_rng(0)
    concept = np.arange(360) % 6
    context = np.where(rng.random(360) < 0.8, concept, rng.integers(0, 8, 360))
    falls = []
    for follow in (0.1, 0.5, 0.9):
        read = {one.what: one for one in readabilities(vectors_of(concept, context, follow), concept, context, seed=0)}
        falls.append(read["concept"].accuracy.value - read["concept in unseen contexts"].accuracy.value)
    assert falls[0] < falls[1] < falls[2] and falls[2] > 0.3


def test_nothing_to_ask():
    concept = np.arange(20) % 2
    context, concepts, unseen = readabilities(vectors_of(concept, concept, 0.5), concept, concept, seed=0)
    assert context.images == concepts.images == 20 and context.chance == concepts.chance == 0.5
    assert math.isnan(unseen.accuracy.value) and unseen.images == 0 and unseen.left_out == 20
