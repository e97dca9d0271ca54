"""The ridge probe against scikit-learn's, and its leave-one-out errors against leaving one out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardlook.contexts.linear_probe import PENALTIES, fit_and_predict, out_of_fold


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
    assert (out_of_fold(vectors, labels, folds) == out_of_fold(scale * vectors + shift, labels, folds)).all()


def test_out_of_fold_is_a_probe_of_the_others():
    vectors, labels = blobs(1, 60, 8, 3)
    folds = np.random.default_rng(0).integers(-1, 4, 60)
    read = out_of_fold(vectors, labels, folds)
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
