import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.stats import holm, significant_pairs

p_lists = st.lists(st.floats(0, 1), max_size=20)


def test_four_values_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04, and the last is raised to 0.06.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_capped_at_one() -> None:
    assert holm([0.5, 0.9, 0.6]).tolist() == [1.0, 1.0, 1.0]


def test_nan_stays_and_is_not_counted() -> None:
    adjusted = holm([0.02, math.nan, 0.04])
    assert adjusted[[0, 2]] == pytest.approx([0.04, 0.04])
    assert math.isnan(adjusted[1])
    assert np.isnan(holm([math.nan])).all()


def test_keeps_the_shape() -> None:
    assert holm([]).shape == (0,)
    assert holm(np.full((2, 3), 0.01)) == pytest.approx(np.full((2, 3), 0.06))


def test_impossible_values_are_counted() -> None:
    with pytest.raises(ValueError, match=r"2 of 3 lie outside \[0, 1\]"):
        holm([-0.1, 0.5, 1.1])


@given(p_lists)
def test_between_the_raw_value_and_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    raw = np.array(p_values)
    assert (adjusted >= raw).all()
    assert (adjusted <= np.minimum(raw * len(raw), 1)).all()


@given(p_lists)
def test_keeps_the_order(p_values: list[float]) -> None:
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(holm(p_values)[order]) >= 0).all()


@given(p_lists, st.randoms(use_true_random=False))
def test_order_of_the_tests_changes_nothing(p_values: list[float], shuffle: object) -> None:
    order = list(range(len(p_values)))
    shuffle.shuffle(order)
    assert np.array_equal(holm([p_values[i] for i in order]), holm(p_values)[order])


@given(p_lists, st.floats(0.001, 0.5))
def test_rejects_what_the_step_down_procedure_rejects(p_values: list[float], alpha: float) -> None:
    # Holm 1979 as a procedure: go up from the smallest p and stop at the first that exceeds alpha / (m - i).
    rejected = set()
    for i, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] * (len(p_values) - i) > alpha:
            break
        rejected.add(index)
    assert set(np.flatnonzero(holm(p_values) <= alpha).tolist()) == rejected


def test_pairs_are_corrected_together() -> None:
    nan = math.nan
    p_values = np.array([[nan, 0.01, 0.02], [0.01, nan, 0.2], [0.02, 0.2, nan]])
    # Three pairs: 0.01 * 3 = 0.03 and 0.02 * 2 = 0.04 pass 0.05, and 0.2 does not.
    assert significant_pairs(p_values).tolist() == [
        [False, True, True],
        [True, False, False],
        [True, False, False],
    ]
    assert significant_pairs(p_values, alpha=0.03).sum() == 2


def test_an_untested_pair_is_not_told_apart() -> None:
    p_values = np.array([[1, math.nan], [math.nan, 1]])
    assert not significant_pairs(p_values).any()


def test_only_a_symmetric_square_will_do() -> None:
    with pytest.raises(ValueError, match=r"expected shape \(k, k\), got \(2,\)"):
        significant_pairs([0.1, 0.2])
    with pytest.raises(ValueError, match="symmetric"):
        significant_pairs([[1, 0.1], [0.2, 1]])
    with pytest.raises(ValueError, match="alpha: expected a number between 0 and 1, got 5"):
        significant_pairs([[1.0]], alpha=5)
