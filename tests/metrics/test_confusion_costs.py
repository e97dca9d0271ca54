import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.metrics.confusion_costs import confusion_costs
from hardlook.metrics.mean_iou import class_counts
from hardlook.metrics.soft_counts import soft_counts

SIMILARITY = np.array([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
CONFUSION = np.array([[50, 20, 3, 0], [0, 40, 0, 4], [0, 0, 30, 0]])


def test_by_either_cost():
    soft, hard = confusion_costs(CONFUSION, SIMILARITY), confusion_costs(CONFUSION, SIMILARITY, by="hard")
    assert list(zip(soft.true, soft.called, strict=True)) == [(1, 3), (0, 2), (0, 1)]
    assert soft.soft == pytest.approx([4, 2.7, 2])
    assert list(zip(hard.true, hard.called, hard.hard, strict=True)) == [(0, 1, 20), (1, 3, 4), (0, 2, 3)]


def test_only_the_dearest():
    assert confusion_costs(CONFUSION, SIMILARITY, by="hard", most=1).hard.tolist() == [20]


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_costs_add_up_to_what_the_scores_miss(seed, classes):
    rng = np.random.default_rng(seed)
    confusion = rng.integers(0, 5, (classes, classes + 1))
    similarity = np.maximum(rng.random((classes, classes)), np.eye(classes))
    costs = confusion_costs(confusion, similarity)
    for spent, counts in ((costs.hard, class_counts(confusion)), (costs.soft, soft_counts(confusion, similarity))):
        assert spent.sum() == pytest.approx((counts[1] - counts[0]).sum())


def test_a_square_matrix_has_no_nameless_label():
    assert 3 not in confusion_costs(CONFUSION[:, :3], SIMILARITY).called


def test_another_shape_is_named():
    with pytest.raises(ValueError, match=r"got \(2, 5\)"):
        confusion_costs(np.zeros((2, 5), int), np.eye(2))
