import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score

from hardlook.metrics import one_shot as scores
from hardlook.metrics.one_shot import (
    LEVELS,
    POOLED_LEVELS,
    class_scs_paper,
    class_scs_released,
    scs_paper,
    scs_released,
)


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


# The specification's worked check of the released reading: two classes, four groups each.
INTERSECTIONS = [[80, 70, 110, 90], [90, 60, 100, 60]]

UNIONS = [[100, 100, 200, 300], [100, 100, 200, 300]]

ious = st.lists(st.floats(0, 1), min_size=7, max_size=7)


def test_worked_check_of_the_paper():
    assert scs_paper([[0.8, 0.7, 0.6, 0.5, 0.4, 0.2, 0.3]]) == pytest.approx(0.7)


def test_worked_check_as_released():
    assert scs_released(INTERSECTIONS, UNIONS) == pytest.approx(0.736111, abs=5e-7)


def test_worked_check_as_released_by_hand():
    # Class by class: (4 * .8 + 3 * .7 + .55 + 1 - .3) / 9 and (4 * .9 + 3 * .6 + .5 + 1 - .2) / 9.
    assert class_scs_released(INTERSECTIONS, UNIONS) == pytest.approx([6.55 / 9, 6.7 / 9])
    assert (6.55 + 6.7) / 18 == pytest.approx(0.736111, abs=5e-7)
    # With equal unions, pooling the classes first gives the same: the check cannot tell the two apart.
    pooled = class_scs_released(np.sum(INTERSECTIONS, axis=0), np.sum(UNIONS, axis=0))
    assert pooled == pytest.approx(0.736111, abs=5e-7)


def test_released_scores_classes_before_their_mean():
    # A large class that is right in every group must not drown a small one that is wrong in every group.
    perfect, wrong = ([100, 100, 100, 0], [100, 100, 100, 1000]), ([0, 0, 0, 10], [10, 10, 10, 10])
    assert scs_released([perfect[0], wrong[0]], [perfect[1], wrong[1]]) == 0.5


@given(ious)
def test_the_literal_formula(levels):
    l0, l1, l2, l3, l4, l5, l6 = levels
    literal = (4 * l0 + 2 * l1 + 2 * l2 + 1 * l3 + (1 - l4) + (1 - l5) + (1 - l6)) / 12
    assert class_scs_paper(levels) == pytest.approx(literal)
    assert 0 <= class_scs_paper(levels) <= 1


@given(ious)
def test_equal_similar_and_dissimilar_levels_are_one_pooled_level(levels):
    pooled = [*levels[:2], levels[2], *levels[4:]]
    apart = [*levels[:2], levels[2], levels[2], *levels[4:]]
    assert class_scs_paper(pooled) == pytest.approx(float(class_scs_paper(apart)))
    assert (len(pooled), len(apart)) == (len(POOLED_LEVELS), len(LEVELS))


def test_empty_predictions_earn_the_inverted_levels_alone():
    assert class_scs_paper(np.zeros(7)) == pytest.approx(3 / 12)
    assert class_scs_released([0, 0, 0, 0], [9, 9, 9, 9]) == pytest.approx(1 / 9)


def test_a_class_without_a_level_has_no_score_and_leaves_the_mean():
    levels = np.full((2, 3, 7), 0.5)
    levels[0, 1, 4] = np.nan
    levels[1, :, 0] = np.nan
    assert np.isnan(class_scs_paper(levels)).sum(axis=-1).tolist() == [1, 3]
    assert scs_paper(levels) == pytest.approx([0.5, np.nan], nan_ok=True)
    unions = [[100, 100, 200, 300], [100, 0, 200, 300]]
    assert scs_released(INTERSECTIONS, unions) == pytest.approx(6.55 / 9)


def test_support_cognizance_leading_axes_are_scored_at_once():
    levels = np.random.default_rng(0).random((4, 2, 5, 7))
    assert scs_paper(levels).shape == (4, 2)
    assert scs_paper(levels)[3, 1] == scs_paper(levels[3, 1])


def test_wrong_shapes_say_what_was_expected():
    with pytest.raises(ValueError, match=r"expected shape \(..., 7\) or \(..., 6\) with L2\+L3 pooled, got \(5,\)"):
        class_scs_paper([1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match=r"groups: expected shape \(..., 4\) for .*, got \(3,\)"):
        class_scs_released([1, 2, 3], [4, 5, 6])
