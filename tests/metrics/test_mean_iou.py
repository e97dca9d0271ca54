import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, jaccard_score

from hardlook.metrics import mean_iou as metric
from hardlook.metrics.confusion import confusion_counts

# The worked check A of the open metrics' specification, with similarity = identity.
TRUTH = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 255])

PREDICTION = np.array([0, 0, 0, 1, 1, 1, 0, 2, 1, 0])


def counts_of(truth, prediction, classes, ignore=255):
    return metric.class_counts(confusion_counts(truth, prediction, classes=classes, ignore=ignore))


def test_worked_check():
    counts = counts_of(TRUTH, PREDICTION, 3)
    assert metric.class_iou(counts) == pytest.approx([0.6, 0.4, 0.5])
    assert metric.mean_iou(counts) == pytest.approx(0.5)


@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(4, 300))
def test_equals_scikit_learn(seed, classes, pixels):
    rng = np.random.default_rng(seed)
    truth, prediction = rng.integers(0, classes, (2, pixels))
    counts = counts_of(truth, prediction, classes)
    present = np.union1d(truth, prediction)
    theirs = jaccard_score(truth, prediction, labels=present, average=None, zero_division=0)
    assert metric.class_iou(counts)[present] == pytest.approx(theirs)
    assert np.isnan(np.delete(metric.class_iou(counts), present)).all()
    # Detectron2's mean: classes that are only predicted add nothing above and one below.
    assert metric.mean_iou(counts) == pytest.approx(theirs.mean())
    assert metric.pixel_accuracy(counts) == pytest.approx(accuracy_score(truth, prediction))
    weights = np.bincount(truth, minlength=classes)[present]
    assert metric.frequency_weighted_iou(counts) == pytest.approx(np.average(theirs, weights=weights))


@pytest.mark.filterwarnings("ignore:y_pred contains classes", "ignore:A single label was found")
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(5, 200))
def test_mean_accuracy_is_balanced_accuracy(seed, classes, pixels):
    rng = np.random.default_rng(seed)
    truth, prediction = rng.integers(0, classes, (2, pixels))
    ours = metric.mean_class_accuracy(counts_of(truth, prediction, classes))
    assert ours == pytest.approx(balanced_accuracy_score(truth, prediction))


def test_gt_only_leaves_out_classes_that_are_only_predicted():
    counts = counts_of(np.array([0, 0]), np.array([0, 1]), 2)
    assert metric.mean_iou(counts, "detectron2") == pytest.approx(0.25)
    assert metric.mean_iou(counts, "gt-only") == pytest.approx(0.5)


def test_nothing_at_all_is_undefined_and_not_zero():
    assert np.isnan(metric.mean_iou(np.zeros((3, 4), int)))


def test_batches_of_totals_are_scored_at_once():
    rng = np.random.default_rng(0)
    many = rng.integers(0, 50, (5, 4, 5))
    counts = metric.class_counts(many)
    one_by_one = [float(metric.mean_iou(metric.class_counts(single))) for single in many]
    assert metric.mean_iou(counts).tolist() == one_by_one


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_merging_parts_equals_one_pass_in_any_order(seed, parts):
    rng = np.random.default_rng(seed)
    truth, prediction = rng.integers(0, 4, (2, 120))
    whole = metric.MeanIoU(4)
    whole.update(truth, prediction)
    pieces = []
    for piece in np.array_split(rng.permutation(120), parts):
        pieces.append(metric.MeanIoU(4))
        pieces[-1].update(truth[piece], prediction[piece])
    for other in pieces[1:]:
        pieces[0].merge(other)
    assert pieces[0].compute() == whole.compute()


def test_reset_forgets():
    accumulated = metric.MeanIoU(2)
    accumulated.update(np.array([0]), np.array([1]))
    accumulated.reset()
    accumulated.update(np.array([0]), np.array([0]))
    assert accumulated.compute() == 1.0


@pytest.mark.parametrize("other", [metric.MeanIoU(4), metric.MeanIoU(3, ignore=254)])
def test_counts_of_other_classes_or_ignored_labels_do_not_merge(other):
    with pytest.raises(ValueError, match="other: expected 3 classes and ignore 255, got "):
        metric.MeanIoU(3).merge(other)


def test_reset_leaves_a_copy_of_the_metric_as_it_was():
    whole = metric.MeanIoU(3)
    whole.update(TRUTH, PREDICTION)
    other = copy.copy(whole)
    other.reset()
    assert whole.compute() == pytest.approx(0.5)
    assert np.isnan(other.compute())
    assert pickle.loads(pickle.dumps(whole)).compute() == whole.compute()


@pytest.mark.parametrize(
    "score",
    [
        metric.class_iou,
        metric.mean_iou,
        lambda counts: metric.mean_iou(counts, "gt-only"),
        metric.pixel_accuracy,
        metric.mean_class_accuracy,
        metric.frequency_weighted_iou,
    ],
)
def test_every_score_of_stacked_counts_is_that_of_each(score):
    confusions = np.random.default_rng(1).integers(0, 9, (2, 3, 4, 5))
    confusions[0, 1, 2] = 0  # a class that is not there
    found = score(metric.class_counts(confusions))
    for place in np.ndindex(2, 3):
        np.testing.assert_array_equal(found[place], score(metric.class_counts(confusions[place])))
    assert found.shape[:2] == (2, 3)
