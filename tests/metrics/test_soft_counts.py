import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.metrics.mean_iou import class_counts, class_iou, mean_iou
from hardlook.metrics.soft_counts import soft_counts, soft_counts_by_image


def random_similarity(rng, classes):
    matrix = rng.choice([0.0, 0.2, 0.5, 1.0], (classes, classes))
    matrix = np.maximum(matrix, matrix.T)
    np.fill_diagonal(matrix, 1)
    return matrix


def random_confusions(rng, classes, images):
    return rng.integers(0, 30, (images, classes, classes + 1)) * (rng.random((images, classes, classes + 1)) < 0.4)


def literal(confusion, similarity):
    """TP, FP and FN as the specification writes them, a class and a pair at a time."""
    classes = len(confusion)
    tp, fp, fn = np.zeros(classes), np.zeros(classes), np.zeros(classes)
    for i in range(classes):
        for j in range(classes):
            tp[i] += similarity[i, j] * confusion[i, j]
            fn[i] += (1 - similarity[i, j]) * confusion[i, j]
            fp[i] += (1 - similarity[j, i]) * confusion[j, i]
        fn[i] += confusion[i, classes]
    return tp, fp, fn


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_equals_the_text_of_the_specification(seed, classes):
    rng = np.random.default_rng(seed)
    confusion, similarity = random_confusions(rng, classes, 1)[0], random_similarity(rng, classes)
    tp, fp, fn = literal(confusion, similarity)
    found, true, claimed = soft_counts(confusion, similarity)
    assert found == pytest.approx(tp)
    assert true == pytest.approx(tp + fn)
    assert claimed == pytest.approx(tp + fp)
    expected = np.divide(tp, tp + fp + fn, out=np.full(classes, np.nan), where=tp + fp + fn > 0)
    assert class_iou(soft_counts(confusion, similarity)) == pytest.approx(expected, nan_ok=True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 5))
def test_images_from_their_cells_equal_images_from_their_matrices(seed, classes, images):
    rng = np.random.default_rng(seed)
    confusions, similarity = random_confusions(rng, classes, images), random_similarity(rng, classes)
    flat = confusions.reshape(images, -1)
    image, cell = np.nonzero(flat)
    order = rng.permutation(len(image))
    records = image[order], cell[order], flat[image, cell][order]
    by_image = soft_counts_by_image(*records, similarity, images=images)
    assert by_image == pytest.approx(soft_counts(confusions, similarity))
    assert by_image.sum(0) == pytest.approx(soft_counts(confusions.sum(0), similarity))


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_identity_gives_the_closed_counts_exactly(seed, classes):
    confusions = random_confusions(np.random.default_rng(seed), classes, 3)
    assert (soft_counts(confusions, np.eye(classes)) == class_counts(confusions)).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_raising_a_similarity_lowers_no_true_positives(seed, classes):
    rng = np.random.default_rng(seed)
    confusion, similarity = random_confusions(rng, classes, 1)[0], random_similarity(rng, classes)
    raised = similarity.copy()
    i, j = rng.choice(classes, 2, replace=False)
    raised[i, j] += (1 - raised[i, j]) * rng.random()
    assert (soft_counts(confusion, raised)[0] >= soft_counts(confusion, similarity)[0]).all()


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_similarity_of_classes_that_never_meet_changes_nothing(seed, classes):
    rng = np.random.default_rng(seed)
    confusion, similarity = random_confusions(rng, classes, 1)[0], random_similarity(rng, classes)
    apart = (confusion[:, :classes] == 0) & ~np.eye(classes, dtype=bool)
    changed = np.where(apart, rng.random((classes, classes)), similarity)
    assert (soft_counts(confusion, changed) == soft_counts(confusion, similarity)).all()


def test_a_class_claimed_only_where_the_truth_is_its_equal_leaves_the_mean():
    confusion = np.array([[4, 0, 0], [0, 0, 0]])
    confusion[0, 1] = 2
    assert mean_iou(soft_counts(confusion, np.ones((2, 2)))) == 1
    almost = np.array([[1, 0.5], [0.5, 1]])
    assert mean_iou(soft_counts(confusion, almost)) == pytest.approx((5 / 6) / 2)
    assert mean_iou(soft_counts(confusion, almost), "gt-only") == pytest.approx(5 / 6)


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (([2], [0], [1]), "image: expected numbers from 0 to 1, got 2..2"),
        (([0], [6], [1]), "cell: expected numbers from 0 to 5, got 6..6"),
        (([0], [0], [0.5]), "pixels: expected integers, got float64"),
    ],
)
def test_records_out_of_range_are_named(records, words):
    with pytest.raises(ValueError, match=words):
        soft_counts_by_image(*records, np.eye(2), images=2)


def test_no_records_are_no_pixels():
    assert soft_counts_by_image([], [], [], np.eye(2), images=3).tolist() == np.zeros((3, 3, 2)).tolist()


def test_a_matrix_of_another_shape_is_named():
    with pytest.raises(ValueError, match=r"confusion: expected shape .* got \(2, 4\)"):
        soft_counts(np.zeros((2, 4), int), np.eye(2))
