import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score

from hardlook.metrics import one_shot_scores as scores


def test_worked_check_of_lca_and_hca():
    lca, hca = scores.lca_hca([0.5, 0.35, 0.38, 0.13])
    assert (lca, hca) == (pytest.approx(0.4225), pytest.approx(0.2375))


def test_names_and_order_agree():
    named = {"hard_nsal": 0.13, "hard_sal": 0.38, "easy_nsal": 0.35, "easy_sal": 0.5}
    assert scores.lca_hca(named) == scores.lca_hca([0.5, 0.35, 0.38, 0.13])


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_hca_is_lca_with_the_splits_reversed(splits):
    assert float(scores.lca_hca(splits)[1]) == pytest.approx(float(scores.lca_hca(splits[::-1])[0]))


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_both_lie_between_the_worst_and_the_best_split(splits):
    for score in scores.lca_hca(splits):
        assert min(splits) - 1e-12 <= score <= max(splits) + 1e-12


def test_leading_axes_are_scored_at_once():
    splits = np.random.default_rng(0).random((5, 3, 4))
    lca, hca = scores.lca_hca(splits)
    assert lca.shape == hca.shape == (5, 3)
    assert [lca[2, 1], hca[2, 1]] == [float(score) for score in scores.lca_hca(splits[2, 1])]
    by_name = {name: splits[..., i] for i, name in enumerate(scores.SPLITS)}
    assert np.array_equal(scores.lca_hca(by_name)[0], lca)


def test_an_absent_split_has_no_score_and_shares_no_weight():
    assert all(np.isnan(scores.lca_hca([0.5, np.nan, 0.4, 0.1])))


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_class_iou_equals_scikit_learn_on_all_pixels_of_a_class(seed, pairs):
    rng = np.random.default_rng(seed)
    truth, predicted = rng.integers(0, 2, (2, pairs, 40)).astype(bool)
    truth[0, 0] = True
    intersection, union = (truth & predicted).sum(), (truth | predicted).sum()
    assert scores.class_iou(intersection, union) == pytest.approx(jaccard_score(truth.ravel(), predicted.ravel()))


@given(st.integers(0, 2**32 - 1))
def test_fb_iou_is_the_macro_jaccard_of_the_pooled_pixels(seed):
    truth, predicted = np.random.default_rng(seed).integers(0, 2, (2, 6, 30)).astype(bool)
    ours = scores.fb_iou((truth & predicted).sum(), (truth | predicted).sum(), truth.size)
    assert ours == pytest.approx(jaccard_score(truth.ravel(), predicted.ravel(), average="macro"))


def test_fb_iou_without_background_or_foreground_is_undefined():
    assert np.isnan(scores.fb_iou([4, 0], [4, 0], [4, 9])).all()


def test_absent_classes_leave_the_mean():
    ious = scores.class_iou([[3, 0, 1], [0, 0, 0]], [[4, 0, 4], [0, 0, 0]])
    assert np.isnan(ious[:, 1]).all()
    assert scores.mean_of_defined(ious) == pytest.approx([0.5, np.nan], nan_ok=True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 6))
def test_generalization_score_is_a_mean_of_means(seed, folds, classes):
    ious = np.random.default_rng(seed).random((folds, classes))
    slow = sum(sum(row) / classes for row in ious.tolist()) / folds
    assert scores.generalization_score(ious) == pytest.approx(slow)
    many = scores.generalization_score(np.stack([ious, ious / 2]))
    assert many == pytest.approx([slow, slow / 2])


def test_a_fold_without_any_class_has_no_generalization_score():
    assert np.isnan(scores.generalization_score([[0.5, 0.6], [np.nan, np.nan]]))


def test_wrong_calls_say_what_was_expected():
    with pytest.raises(ValueError, match="missing easy_nsal, hard_nsal"):
        scores.lca_hca({"easy_sal": 1, "hard_sal": 1})
    with pytest.raises(ValueError, match=r"expected shape \(..., 4\) in the order .*, got \(3,\)"):
        scores.lca_hca([1, 2, 3])
    with pytest.raises(ValueError, match=r"one shape, got \(2,\) and \(3,\)"):
        scores.class_iou([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match=r"expected shape \(..., folds, classes\), got \(2,\)"):
        scores.generalization_score([0.5, 0.6])
