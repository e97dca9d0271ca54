import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from hardlook.stats import average_ranks, pearson, spearman

small = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=25)


def columns(pairs: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    x, y = [a for a, _ in pairs], [b for _, b in pairs]
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    return x, y


@given(small)
def test_both_agree_with_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = columns(pairs)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@given(st.lists(st.integers(-5, 5), max_size=25))
def test_ranks_agree_with_scipy(values: list[int]) -> None:
    assert average_ranks(values).tolist() == stats.rankdata(values, method="average").tolist()


@given(small)
def test_laws(pairs: list[tuple[int, int]]) -> None:
    x, y = columns(pairs)
    for correlation in (pearson, spearman):
        r = correlation(x, y)
        assert -1 <= r <= 1
        assert correlation(y, x) == pytest.approx(r, abs=1e-12)
        assert correlation(x, np.negative(y)) == pytest.approx(-r, abs=1e-12)
    assert spearman(np.exp(x), y) == spearman(x, y)


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=20, unique=True))
def test_same_and_opposite_order_are_exactly_one(values: list[float]) -> None:
    place = np.argsort(np.argsort(values))
    assert spearman(values, place) == 1.0
    assert spearman(values, -place) == -1.0


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_undefined_is_nan(correlation: object) -> None:
    assert math.isnan(correlation([0.1, 0.1, 0.1], [1, 2, 3]))
    assert math.isnan(correlation([1, 2, 3], [0.7, 0.7, 0.7]))
    assert math.isnan(correlation([1], [2]))
    assert math.isnan(correlation([], []))


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_wrong_input_is_refused(correlation: object) -> None:
    with pytest.raises(ValueError, match="x has 2 values and y 3; expected pairs"):
        correlation([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="y: 1 of 2 values are NaN"):
        correlation([1, 2], [1, math.nan])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_very_small_and_large_numbers(scale: float) -> None:
    x, y = np.array([1.0, 2, 3, 5]), np.array([2.0, 1, 4, 5])
    assert pearson(x * scale, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)


def test_a_large_offset_does_not_matter() -> None:
    x, y = np.array([1.0, 2, 3, 5]), np.array([2.0, 1, 4, 5])
    assert pearson(x + 2.0**40, y) == pytest.approx(pearson(x, y), abs=1e-12)
