"""The ridge probe against scikit-learn's and against leaving one out; probes and folds on vectors of known truth."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardlook.metacoco.contexts.linear_probes import (
    FOLDS,
    PENALTIES,
    assign_cell_folds,
    assign_image_folds,
    cross_val_predict,
    fit_and_predict,
    probe_labels,
)
from hardlook.randomness import generator


def blobs(seed, rows, columns, kinds, noise=1.5):
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % kinds
    return rng.standard_normal((kinds, columns))[labels] + noise * rng.standard_normal((rows, columns)), labels


@pytest.mark.parametrize(("rows", "columns", "kinds"), [(120, 10, 3), (40, 90, 4), (60, 60, 2), (200, 5, 6)])
@pytest.mark.parametrize("seed", range(3))
def test_equals_scikit_learn(rows, columns, kinds, seed):
    vectors, labels = blobs(seed, 2 * rows, columns, kinds)
    theirs = make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=PENALTIES)).fit(vectors[:rows], labels[:rows])
    ours = fit_and_predict(vectors[:rows], labels[:rows], vectors[rows:])
    assert (ours == theirs.predict(vectors[rows:])).all()


def test_the_penalty_is_the_best_by_leaving_one_out():
    vectors, labels = blobs(5, 40, 30, 2)
    # Standardised once, as leave-one-out in closed form has it.
    scaled = StandardScaler().fit_transform(vectors)
    errors = []
    for penalty in PENALTIES:
        told = []
        for i in range(40):
            others = np.arange(40) != i
            model = RidgeClassifier(alpha=penalty).fit(scaled[others], labels[others])
            told.append(float(model.decision_function(scaled[i : i + 1])[0]))
        errors.append(np.mean((np.where(labels == 1, 1, -1) - told) ** 2))
    best = (PENALTIES[int(np.argmin(errors))],)
    new, _ = blobs(6, 200, 30, 2)
    assert (fit_and_predict(vectors, labels, new) == fit_and_predict(vectors, labels, new, best)).all()


@settings(max_examples=20)
@given(st.integers(0, 1000), st.floats(0.01, 100), st.floats(-50, 50))
def test_scale_and_shift_do_not_count(seed, scale, shift):
    vectors, labels = blobs(seed, 40, 6, 3)
    folds = np.arange(40) // 10
    assert (
        cross_val_predict(vectors, labels, folds) == cross_val_predict(scale * vectors + shift, labels, folds)
    ).all()


def test_out_of_fold_is_a_probe_of_the_others():
    vectors, labels = blobs(1, 60, 8, 3)
    folds = np.random.default_rng(0).integers(-1, 4, 60)
    read = cross_val_predict(vectors, labels, folds)
    for fold in range(4):
        asked = folds == fold
        assert (read[asked] == fit_and_predict(vectors[~asked], labels[~asked], vectors[asked])).all()
    assert (read[folds == -1] == labels[folds == -1]).all()


def test_constant_columns_and_names():
    vectors, labels = blobs(2, 60, 4, 2, noise=0.3)
    flat = np.concatenate([vectors, np.full((60, 2), 0.1)], axis=1)
    names = np.array(["cat", "dog"])[labels]
    assert (fit_and_predict(flat, names, flat) == names).mean() > 0.9


def test_one_kind_is_refused():
    with pytest.raises(ValueError, match="two or more kinds"):
        fit_and_predict(np.zeros((3, 2)), [1, 1, 1], np.zeros((1, 2)))


labels = st.lists(st.integers(0, 5), min_size=1, max_size=60)


@given(labels, st.integers(2, 6), st.integers(0, 99))
def test_each_label_is_dealt_evenly(rows, folds, seed):
    numbers = assign_image_folds(rows, folds, np.random.default_rng(seed))
    for kind in set(rows):
        own = numbers[np.array(rows) == kind]
        if len(own) == 1:
            assert own.tolist() == [-1]
        else:
            counts = np.bincount(own, minlength=folds)
            assert own.min() >= 0 and len(counts) == folds and counts.max() - counts.min() <= 1


def test_labels_of_few_images_are_in_all_folds_together():
    counts = np.bincount(assign_image_folds(np.repeat(np.arange(60), 2), 5, np.random.default_rng(0)), minlength=5)
    assert counts.min() >= 12 and counts.max() <= 36


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=60), st.integers(0, 99))
def test_a_concept_is_asked_about_in_contexts_it_was_not_trained_in(rows, seed):
    concept, context = (np.array(part) for part in zip(*rows, strict=True))
    numbers = assign_cell_folds(concept, context, 3, np.random.default_rng(seed))
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
    found = probe_labels(vectors, concept, context, seed=4)
    folds = assign_image_folds(concept, FOLDS, generator(4, "probe", "concept"))
    assert found[1].accuracy.value == pytest.approx(
        balanced_accuracy_score(concept, cross_val_predict(vectors, concept, folds))
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
        read = {one.what: one for one in probe_labels(vectors_of(concept, context, follow), concept, context, seed=0)}
        falls.append(read["concept"].accuracy.value - read["concept in unseen contexts"].accuracy.value)
    assert falls[0] < falls[1] < falls[2] and falls[2] > 0.3


def test_nothing_to_ask():
    concept = np.arange(20) % 2
    context, concepts, unseen = probe_labels(vectors_of(concept, concept, 0.5), concept, concept, seed=0)
    assert context.images == concepts.images == 20 and context.chance == concepts.chance == 0.5
    assert math.isnan(unseen.accuracy.value) and unseen.images == 0 and unseen.left_out == 20
