import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.metrics.support_cognizance import (
    LEVELS,
    POOLED_LEVELS,
    class_scs_paper,
    class_scs_released,
    scs_paper,
    scs_released,
)

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


def test_leading_axes_are_scored_at_once():
    levels = np.random.default_rng(0).random((4, 2, 5, 7))
    assert scs_paper(levels).shape == (4, 2)
    assert scs_paper(levels)[3, 1] == scs_paper(levels[3, 1])


def test_wrong_shapes_say_what_was_expected():
    with pytest.raises(ValueError, match=r"expected shape \(..., 7\) or \(..., 6\) with L2\+L3 pooled, got \(5,\)"):
        class_scs_paper([1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match=r"groups: expected shape \(..., 4\) for .*, got \(3,\)"):
        class_scs_released([1, 2, 3], [4, 5, 6])
