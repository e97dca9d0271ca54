import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.study.spread_draws import spread_draw


def rng(seed=0):
    return np.random.default_rng(seed)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 60), st.integers(0, 70))
def test_draws_are_different_candidates_in_order(seed, measures, n, count):
    values = rng(seed).random((measures, n)).round(1)
    drawn = spread_draw(values, count, rng(seed))
    assert len(drawn) == min(count, n)
    assert (np.diff(drawn) > 0).all()
    assert not len(drawn) or (drawn[0] >= 0 and drawn[-1] < n)
    assert np.array_equal(drawn, spread_draw(values, count, rng(seed)))


@given(st.integers(0, 2**32 - 1), st.integers(10, 200), st.integers(1, 40))
def test_strata_of_one_measure_differ_by_one_at_most_unless_they_are_used_up(seed, n, count):
    values = rng(seed).permutation(n) / n
    drawn = spread_draw(values[None], count, rng(seed))
    strata = max(1, min(10, count))
    # The literal rule: with n distinct values the k-th smallest lies in stratum floor(k * strata / n).
    of = {rank: rank * strata // n for rank in range(n)}
    ranks = np.argsort(np.argsort(values))
    held = np.bincount([of[int(rank)] for rank in ranks[drawn]], minlength=strata)
    size = np.bincount(list(of.values()), minlength=strata)
    open_strata = held[held < size]
    assert not len(open_strata) or held.max() - open_strata.min() <= 1


def test_rare_values_are_drawn_before_common_ones_repeat():
    values = np.concatenate([np.full(980, 0.1), np.linspace(0.5, 0.9, 20)])
    drawn = values[spread_draw(values[None], 20, rng())]
    assert (drawn > 0.1).sum() >= 17


def test_every_measure_is_spread_by_the_same_draw():
    one = rng(1).beta(1, 8, 4000)
    other = rng(2).beta(8, 1, 4000)
    drawn = spread_draw([one, other], 40, rng())
    for values in (one, other):
        held = np.histogram(values[drawn], np.quantile(values, np.linspace(0, 1, 11)))[0]
        # Ten strata of four each, where chance alone gives one of 40 draws a spread of about two.
        assert held.min() >= 3
        assert held.max() <= 5


def test_the_seed_decides_among_equals():
    values = np.zeros((1, 500))
    draws = {tuple(spread_draw(values, 5, rng(seed)).tolist()) for seed in range(10)}
    assert len(draws) == 10


@pytest.mark.parametrize(
    ("values", "count"), [([1, 2], 1), ([[1, float("nan")]], 1), ([[1, 2]], -1), (np.zeros((0, 3)), 1)]
)
def test_refusals(values, count):
    with pytest.raises(ValueError, match="values: expected finite numbers"):
        spread_draw(values, count, rng())
