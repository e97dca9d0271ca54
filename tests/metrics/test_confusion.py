import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from hardlook.metrics.confusion import confusion_counts


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(1, 400))
def test_equals_scikit_learn(seed, classes, pixels):
    rng = np.random.default_rng(seed)
    truth, prediction = rng.integers(0, classes, (2, pixels))
    ours = confusion_counts(truth, prediction, classes=classes)
    assert (ours[:, :classes] == confusion_matrix(truth, prediction, labels=range(classes))).all()
    assert ours[:, classes].sum() == 0


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int32, np.int64])
def test_any_integer_type_and_shape(dtype):
    truth = np.array([[0, 1], [1, 2]], dtype)
    assert np.diag(confusion_counts(truth, truth, classes=3)).tolist() == [1, 2, 1]


def test_ignored_pixels_count_nowhere_and_unknown_predictions_have_their_own_column():
    counts = confusion_counts(np.array([255, 0, 1]), np.array([0, 7, -1]), classes=2)
    assert counts.tolist() == [[0, 0, 1], [0, 0, 1]]


def test_a_true_label_without_a_name_is_an_error():
    with pytest.raises(ValueError, match=r"label 2, outside 0\.\.1"):
        confusion_counts(np.array([0, 2]), np.array([0, 0]), classes=2)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"\(2,\), prediction \(3,\)"):
        confusion_counts(np.zeros(2, int), np.zeros(3, int), classes=2)
