import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_tables import full_table, tables
from scipy.stats import chisquare, kstest

from hardlook.data.concept_context import ImageTable
from hardlook.metacoco.tasks.images import (
    ABSENT,
    build_image_pools,
    draw_distinct_positions,
    draw_random_numbers,
    make_key,
    reduce_below,
    scale_to_unit_interval,
)


def pool_rows(pools, pool):
    return pools.rows[pools.starts[pool] : pools.starts[pool] + pools.sizes[pool]].tolist()


@given(tables())
def test_pools_hold_each_content_once_as_sets_say(table):
    pools = build_image_pools(table)
    for k in range(len(table.concepts)):
        of_concept = {int(c) for c, own in zip(table.content, table.concept == k, strict=True) if own}
        assert sorted(table.content[pool_rows(pools, pools.concept_pools(k))].tolist()) == sorted(of_concept)
        for x in range(len(table.contexts)):
            inside = set(table.content[(table.concept == k) & (table.context == x)].tolist())
            rows = pool_rows(pools, pools.cell_pools(k, x))
            assert sorted(table.content[rows].tolist()) == sorted(inside)
            assert all(table.concept[row] == k and table.context[row] == x for row in rows)
            if inside:  # an empty cell is never a support context
                outside = pool_rows(pools, pools.outside_pools(k, x))
                assert sorted(table.content[outside].tolist()) == sorted(of_concept - inside)
                assert all(table.concept[row] == k and table.context[row] != x for row in outside)


@given(tables())
def test_twins_are_contents_of_several_cells(table):
    cells = {}
    for k, x, content in zip(table.concept, table.context, table.content, strict=True):
        cells.setdefault(int(content), set()).add((int(k), int(x)))
    assert build_image_pools(table).in_several_cells.tolist() == [
        len(cells[int(content)]) > 1 for content in table.content
    ]


@given(tables(), st.integers(0, 2**32 - 1))
def test_positions_are_found_again(table, seed):
    pools, rng = build_image_pools(table), np.random.default_rng(seed)
    asked, content = rng.integers(0, len(pools.sizes), 50), rng.choice(pools.content, 50)
    for pool, wanted, found in zip(asked, content, pools.find_positions(asked, content), strict=True):
        held = pools.content[pool_rows(pools, pool)].tolist()
        assert held[found] == wanted if found != ABSENT else wanted not in held


def test_the_numbers_of_contents_leave_no_trace():
    table = full_table(2, 2, 3)
    other = ImageTable(table.concepts, table.contexts, table.concept, table.context, (table.content * 7919) % 1000)
    assert (build_image_pools(table).rows == build_image_pools(other).rows).all()


def test_no_images_no_pools():
    empty = np.empty(0, np.int64)
    pools = build_image_pools(ImageTable((), (), empty, empty, empty))
    assert len(pools.rows) == len(pools.sizes) == 0


@pytest.mark.parametrize(
    ("key", "published"),
    [
        (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]),
        (1234567, [6457827717110365317, 3203168211198807973, 9817491932198370423]),
    ],
)
def test_one_counter_gives_the_known_stream_of_splitmix64(key, published):
    assert draw_random_numbers(key, np.arange(3)).tolist() == published


def test_a_number_depends_on_its_counters_alone():
    key = make_key(3, "x")
    grid = draw_random_numbers(key, np.arange(6)[:, None], np.arange(4))
    assert all(grid[i, j] == draw_random_numbers(key, i, j)[0] for i, j in itertools.product(range(6), range(4)))
    assert len(np.unique(grid)) == grid.size


def test_other_seeds_and_words_are_other_keys():
    keys = {
        make_key(0, "a"),
        make_key(1, "a"),
        make_key(0, "b"),
        make_key(0, "a", 1),
        make_key(0, "a", "1"),
        make_key(0, 1, "a"),
    }
    assert len(keys) == 6


def test_numbers_in_the_unit_interval_are_uniform():
    randoms = draw_random_numbers(make_key(0, "shares"), np.arange(200)[:, None], np.arange(50))
    drawn = scale_to_unit_interval(randoms).ravel()
    assert kstest(drawn, "uniform").pvalue > 0.001
    assert reduce_below(draw_random_numbers(1, np.arange(1000)), 1).max() == 0


def test_every_set_of_allowed_positions_is_equally_likely():
    count = 20_000
    randoms = draw_random_numbers(make_key(5, "sets"), np.arange(count)[:, None], np.arange(3))
    drawn = draw_distinct_positions(randoms, np.full(count, 7), np.tile([5, ABSENT, 1], (count, 1)))
    sets = [tuple(sorted(row)) for row in drawn.tolist()]
    possible = list(itertools.combinations([0, 2, 3, 4, 6], 3))
    assert set(sets) == set(possible)
    assert chisquare([sets.count(one) for one in possible]).pvalue > 0.001


@given(st.data())
def test_drawn_positions_are_distinct_allowed_and_equal_the_slow_way(data):
    size = data.draw(st.integers(1, 12))
    excluded = data.draw(st.lists(st.integers(0, size - 1), unique=True, max_size=size - 1))
    count = data.draw(st.integers(1, size - len(excluded)))
    randoms = draw_random_numbers(data.draw(st.integers(0, 2**64 - 1)), np.arange(count))
    free, expected = [position for position in range(size) if position not in excluded], []
    for number in randoms.tolist():
        expected.append(free.pop(number % len(free)))
    filler = [ABSENT] * data.draw(st.integers(0, 2))
    barred = np.array([[*excluded, *filler]], dtype=np.int64)
    assert draw_distinct_positions(randoms[None], np.array([size]), barred).tolist() == [expected]


def test_a_pool_that_is_too_small_is_named():
    with pytest.raises(ValueError, match="expected 2 free positions in each pool, pool 1 has 1"):
        draw_distinct_positions(
            draw_random_numbers(0, np.arange(2)[:, None], np.arange(2)), np.array([5, 2]), np.array([[0], [1]])
        )


def test_a_concept_without_images_has_empty_pools():
    table = ImageTable(("cat", "dog"), ("fog", "snow"), np.array([0, 0, 0]), np.array([0, 1, 1]), np.arange(3))
    pools = build_image_pools(table)
    assert pools.cell_sizes().tolist() == [[1, 2], [0, 0]]
    assert pools.concept_sizes().tolist() == [3, 0]
    assert pools.outside_sizes()[0].tolist() == [2, 1]
    assert len(pools.sizes) == len(pools.starts) == 2 * 4 + 2


def test_nothing_is_found_in_no_pools():
    empty = np.empty(0, np.int64)
    pools = build_image_pools(ImageTable(("cat",), ("snow",), empty, empty, empty))
    assert pools.find_positions(np.array([[0], [1]]), np.array([0, 1])).tolist() == [[ABSENT] * 2] * 2
    assert pools.concept_sizes().tolist() == [0] and pools.outside_sizes().tolist() == [[0]]
