import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from hardlook.tasks.keyed_draws import NOWHERE, below, distinct_positions, key_of, random_numbers, shares


@pytest.mark.parametrize(
    ("key", "published"),
    [
        (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]),
        (1234567, [6457827717110365317, 3203168211198807973, 9817491932198370423]),
    ],
)
def test_one_counter_gives_the_known_stream_of_splitmix64(key, published):
    assert random_numbers(key, np.arange(3)).tolist() == published


def test_a_number_depends_on_its_counters_alone():
    key = key_of(3, "x")
    grid = random_numbers(key, np.arange(6)[:, None], np.arange(4))
    assert all(grid[i, j] == random_numbers(key, i, j)[0] for i, j in itertools.product(range(6), range(4)))
    assert len(np.unique(grid)) == grid.size


def test_other_seeds_and_words_are_other_keys():
    keys = {key_of(0, "a"), key_of(1, "a"), key_of(0, "b"), key_of(0, "a", 1), key_of(0, "a", "1"), key_of(0, 1, "a")}
    assert len(keys) == 6


def test_shares_are_uniform():
    drawn = shares(random_numbers(key_of(0, "shares"), np.arange(200)[:, None], np.arange(50))).ravel()
    assert kstest(drawn, "uniform").pvalue > 0.001
    assert below(random_numbers(1, np.arange(1000)), 1).max() == 0


def test_every_set_of_allowed_positions_is_equally_likely():
    count = 20_000
    randoms = random_numbers(key_of(5, "sets"), np.arange(count)[:, None], np.arange(3))
    drawn = distinct_positions(randoms, np.full(count, 7), np.tile([5, NOWHERE, 1], (count, 1)))
    sets = [tuple(sorted(row)) for row in drawn.tolist()]
    possible = list(itertools.combinations([0, 2, 3, 4, 6], 3))
    assert set(sets) == set(possible)
    assert chisquare([sets.count(one) for one in possible]).pvalue > 0.001


@given(st.data())
def test_drawn_positions_are_distinct_allowed_and_equal_the_slow_way(data):
    size = data.draw(st.integers(1, 12))
    excluded = data.draw(st.lists(st.integers(0, size - 1), unique=True, max_size=size - 1))
    count = data.draw(st.integers(1, size - len(excluded)))
    randoms = random_numbers(data.draw(st.integers(0, 2**64 - 1)), np.arange(count))
    free, expected = [position for position in range(size) if position not in excluded], []
    for number in randoms.tolist():
        expected.append(free.pop(number % len(free)))
    filler = [NOWHERE] * data.draw(st.integers(0, 2))
    barred = np.array([[*excluded, *filler]], dtype=np.int64)
    assert distinct_positions(randoms[None], np.array([size]), barred).tolist() == [expected]


def test_a_pool_that_is_too_small_is_named():
    with pytest.raises(ValueError, match="expected 2 free positions in each pool, pool 1 has 1"):
        distinct_positions(
            random_numbers(0, np.arange(2)[:, None], np.arange(2)), np.array([5, 2]), np.array([[0], [1]])
        )
