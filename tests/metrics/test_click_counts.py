from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import auc

from hardlook.metrics.click_counts import area_under_ious, clicks_to_reach, failures, ious

# The worked check of the specification: IoUs .5, .7, .85, .9 and sixteen times .95.
HITS = [50, 70, 85, 90] + [95] * 16
UNION = [100] * 20

counts = st.integers(0, 2000).flatmap(lambda union: st.tuples(st.integers(0, union), st.just(union)))
trajectories = st.lists(counts, min_size=1, max_size=25)


def test_worked_check():
    assert clicks_to_reach(HITS, UNION, 90) == 4
    assert clicks_to_reach(HITS, UNION, 85) == 3
    assert clicks_to_reach(HITS, UNION, 95) == 5
    assert clicks_to_reach(HITS, UNION, 96) == 20
    assert area_under_ious(ious(HITS, UNION)) == pytest.approx(0.917105, abs=5e-7)


@given(trajectories, st.integers(1, 100))
def test_equals_a_loop_over_fractions(rounds, percent):
    expected, reached = len(rounds), False
    for k, (hits, union) in enumerate(rounds, start=1):
        iou = Fraction(hits, union) if union else Fraction(1)
        if iou >= Fraction(percent, 100):
            expected, reached = k, True
            break
    hits, union = np.array(rounds).T
    assert clicks_to_reach(hits, union, percent) == expected
    assert failures(hits, union, percent) == (expected == len(rounds))
    assert failures(hits, union, percent, "ours") == (not reached)


@given(st.integers(1, 10**7), st.integers(1, 100))
def test_the_threshold_itself_is_reached_and_one_pixel_less_is_not(hundredths, percent):
    union, hits = 100 * hundredths, percent * hundredths
    assert clicks_to_reach([hits, union, union], [union] * 3, percent) == 1
    assert clicks_to_reach([hits - 1, union, union], [union] * 3, percent) == 2


def test_failures_differ_where_the_last_click_reaches_it():
    hits, union = [[1, 2, 9], [1, 9, 9], [1, 2, 3]], [[10] * 3] * 3
    assert failures(hits, union, 90).tolist() == [True, False, True]
    assert failures(hits, union, 90, "ours").tolist() == [False, False, True]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_area_equals_scikit_learn(curve):
    clicks = np.arange(1, len(curve) + 1)
    assert area_under_ious(curve) == pytest.approx(auc(clicks, curve) / (len(curve) - 1), abs=1e-12)


def test_the_area_of_one_round_is_its_iou_and_of_a_level_curve_its_height():
    assert area_under_ious([[0.3], [0.8]]).tolist() == [0.3, 0.8]
    assert area_under_ious(np.full((2, 20), 0.75)).tolist() == [0.75, 0.75]


def test_an_empty_union_is_perfect():
    assert ious([0], [0]).tolist() == [1.0]
    assert clicks_to_reach([0, 0], [0, 0], 100) == 1


def test_leading_axes_are_free_and_memory_order_changes_nothing():
    rng = np.random.default_rng(0)
    union = rng.integers(1, 500, (4, 3, 20))
    hits = rng.integers(0, union + 1)
    area, turned = area_under_ious(ious(hits, union)), area_under_ious(np.asfortranarray(ious(hits, union)))
    assert np.array_equal(area, turned)
    assert clicks_to_reach(hits, union, 90).shape == failures(hits, union, 90).shape == area.shape == (4, 3)
    one_by_one = [[float(area_under_ious(ious(hits[i, j], union[i, j]))) for j in range(3)] for i in range(4)]
    assert area.tolist() == one_by_one


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clicks_to_reach([1], [2], 0.9), "whole number in 1..100, got 0.9"),
        (lambda: clicks_to_reach([1], [2], 0), "whole number in 1..100, got 0"),
        (lambda: clicks_to_reach([1, 3], [2, 2], 90), r"got 3 and 2 at \(1,\)"),
        (lambda: clicks_to_reach([1], [2, 2], 90), r"got intersection \(1,\) and union \(2,\)"),
        (lambda: clicks_to_reach(1, 2, 90), r"\(..., rounds\)"),
        (lambda: clicks_to_reach([0.5], [1.0], 90), "expected integers, got float64"),
        (lambda: failures([1], [2], 90, "paper"), "released or ours, got 'paper'"),
        (lambda: area_under_ious([0.5, float("nan")]), r"in \[0, 1\]"),
        (lambda: area_under_ious([]), "a round at least"),
    ],
)
def test_errors_say_what_came(call, message):
    with pytest.raises(ValueError, match=message):
        call()
