import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import variation
from sklearn.metrics import auc

from hardlook.metrics.click_robustness import (
    area_under_ious,
    clicks_to_reach,
    failures,
    first_to_last,
    instance_difficulty,
    ious,
    lower_to_upper,
    lower_to_upper_half,
    noise_to_signal,
    rise_over_base,
    sample_and_deviation,
)

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


# The worked check of the specification.
GROUPS = np.array([[10, 8, 6, 5, 5, 4, 4, 4, 3, 2], [4, 4, 3, 3, 3, 3, 2, 2, 2, 2]])

BASE = np.array([3, 2])

nocs = st.integers(1, 6).flatmap(lambda n: arrays(np.int64, (n, 10), elements=st.integers(1, 20)))


def test_click_robustness_worked_check():
    mean, deviation = sample_and_deviation(GROUPS)
    assert mean.mean() == pytest.approx(3.95)
    assert deviation.mean() == pytest.approx(1.502217, abs=5e-7)
    assert rise_over_base(GROUPS, BASE).mean() == pytest.approx(55)
    assert first_to_last(GROUPS).mean() == pytest.approx(250)
    assert lower_to_upper(GROUPS).mean() == pytest.approx(80)


def test_halves_averaged_first_are_another_number():
    lower, upper = GROUPS[:, :5].mean(1), GROUPS[:, 5:].mean(1)
    assert lower_to_upper_half(lower, upper).mean() == pytest.approx(77.27, abs=0.005)


@given(nocs, st.data())
def test_equals_plain_loops(groups, data):
    base = data.draw(arrays(np.int64, len(groups), elements=st.integers(1, 20)))
    rows = groups.tolist()
    mean, deviation = sample_and_deviation(groups)
    assert mean == pytest.approx([statistics.mean(row) for row in rows])
    assert deviation == pytest.approx([statistics.pstdev(row) for row in rows])
    risen = [100 * (statistics.mean(row) - b) / b for row, b in zip(rows, base.tolist(), strict=True)]
    assert rise_over_base(groups, base) == pytest.approx(risen, abs=1e-9)
    assert first_to_last(groups) == pytest.approx([100 * (row[0] - row[9]) / row[9] for row in rows])
    paired = [statistics.mean(100 * (row[j] - row[j + 5]) / row[j + 5] for j in range(5)) for row in rows]
    assert lower_to_upper(groups) == pytest.approx(paired, abs=1e-9)


@given(arrays(np.bool_, (7, 10)), arrays(np.bool_, 7))
def test_failures_add_up_to_differences_of_counts(groups, base):
    totals = groups.sum(0)
    assert rise_over_base(groups, base, "difference").sum() == pytest.approx(totals.mean() - base.sum(), abs=1e-9)
    assert first_to_last(groups, "difference").sum() == totals[0] - totals[9]
    expected = (totals[:5] - totals[5:]).mean()
    assert lower_to_upper(groups, "difference").sum() == pytest.approx(expected, abs=1e-9)
    mean, deviation = sample_and_deviation(totals)
    assert (float(mean), float(deviation)) == pytest.approx((totals.mean(), statistics.pstdev(totals.tolist())))


def test_differences_of_areas_are_in_points():
    areas = 100 * np.array([[0.8, 0.9], [0.7, 0.7]])
    assert first_to_last(areas, "difference") == pytest.approx([-10, 0])
    assert rise_over_base(areas, [90, 60], "difference") == pytest.approx([-5, 10])
    assert lower_to_upper_half([80], [90], "difference") == pytest.approx([-10])


@given(arrays(np.float64, (5, 10), elements=st.floats(0.01, 1)))
def test_noise_to_signal_equals_scipy(values):
    assert noise_to_signal(values) == pytest.approx(100 * variation(values, axis=1), abs=1e-9)


def test_an_instance_that_is_never_hit_has_no_ratio():
    found = noise_to_signal(np.array([[0.5, 0.5], [0.0, 0.0], [0.2, 0.6]]))
    assert found == pytest.approx([0, np.nan, 50], nan_ok=True)
    assert np.isnan(noise_to_signal(np.zeros((2, 3)))).all()


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=60), min_size=1, max_size=5))
def test_rows_of_different_lengths_give_what_each_row_gives(rows):
    mean, deviation = sample_and_deviation(rows)
    alone = [sample_and_deviation(np.array(row)) for row in rows]
    assert mean.tolist() == [float(one) for one, _ in alone]
    assert deviation.tolist() == [float(one) for _, one in alone]
    assert noise_to_signal(rows).shape == (len(rows),)


@given(nocs, st.integers(2, 5))
def test_a_ratio_does_not_depend_on_the_unit(groups, factor):
    assert noise_to_signal(groups * factor) == pytest.approx(noise_to_signal(groups), abs=1e-9)
    assert first_to_last(groups * factor) == pytest.approx(first_to_last(groups))
    assert lower_to_upper(groups * factor) == pytest.approx(lower_to_upper(groups), abs=1e-9)


def test_difficulty_divides_the_means_over_methods():
    mean, deviation = np.array([[0.9, 0.5, 0.0], [0.3, 0.5, 0.0]]), np.array([[0.1, 0.2, 0.0], [0.2, 0.1, 0.0]])
    difficulty = instance_difficulty(mean, deviation)
    assert difficulty[:2] == pytest.approx([0.15 / 0.6, 0.15 / 0.5])
    assert np.isnan(difficulty[2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rise_over_base([[1, 2]], [0]), "base: expected values above 0 to divide by, got 0.0"),
        (lambda: rise_over_base([[1, 2]], [1, 2]), r"base: expected shape \(1,\), got \(2,\)"),
        (lambda: lower_to_upper([[1, 2, 3]]), "even number of groups, got 3"),
        (lambda: first_to_last([[1, 2]], "ratio"), "percent or difference, got 'ratio'"),
        (lambda: first_to_last([[1, 2]], "absolute"), "percent or difference, got 'absolute'"),
        (lambda: first_to_last([[1, 2]], "other"), "percent or difference, got 'other'"),
        (lambda: sample_and_deviation([[1.0], []]), "row 1: expected at least one value"),
        (lambda: instance_difficulty([1.0], [1.0]), r"\(methods, N\), got \(1,\)"),
    ],
)
def test_click_robustness_errors_say_what_came(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("wrong", [-1, 5])
def test_of_several_impossible_counts_the_first_is_named(wrong):
    hits, union = np.full((3, 2), 2), np.full((3, 2), 4)
    hits[1, 0], hits[2, 1] = wrong, 9
    with pytest.raises(ValueError, match=rf"0 <= intersection <= union, got {wrong} and 4 at \(1, 0\)"):
        clicks_to_reach(hits, union, 90)
    hits[1, 0], hits[2, 1] = 0, 4
    assert clicks_to_reach(hits, union, 50).shape == (3,)
