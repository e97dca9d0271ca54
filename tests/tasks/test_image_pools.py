import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hardlook.tasks.image_pools import image_pools
from hardlook.tasks.image_table import ImageTable
from hardlook.tasks.keyed_draws import NOWHERE

from .tables import full_table, tables


def pool_rows(pools, pool):
    return pools.rows[pools.starts[pool] : pools.starts[pool] + pools.sizes[pool]].tolist()


@given(tables())
def test_pools_hold_each_content_once_as_sets_say(table):
    pools = image_pools(table)
    for k in range(len(table.concepts)):
        of_concept = {int(c) for c, own in zip(table.content, table.concept == k, strict=True) if own}
        assert sorted(table.content[pool_rows(pools, pools.whole(k))].tolist()) == sorted(of_concept)
        for x in range(len(table.contexts)):
            inside = set(table.content[(table.concept == k) & (table.context == x)].tolist())
            rows = pool_rows(pools, pools.cell(k, x))
            assert sorted(table.content[rows].tolist()) == sorted(inside)
            assert all(table.concept[row] == k and table.context[row] == x for row in rows)
            if inside:  # an empty cell is nobody's support context
                outside = pool_rows(pools, pools.outside(k, x))
                assert sorted(table.content[outside].tolist()) == sorted(of_concept - inside)
                assert all(table.concept[row] == k and table.context[row] != x for row in outside)


@given(tables())
def test_twins_are_contents_of_several_cells(table):
    cells = {}
    for k, x, content in zip(table.concept, table.context, table.content, strict=True):
        cells.setdefault(int(content), set()).add((int(k), int(x)))
    assert image_pools(table).twinned.tolist() == [len(cells[int(content)]) > 1 for content in table.content]


@given(tables(), st.integers(0, 2**32 - 1))
def test_positions_are_found_again(table, seed):
    pools, rng = image_pools(table), np.random.default_rng(seed)
    asked, content = rng.integers(0, len(pools.sizes), 50), rng.choice(pools.content, 50)
    for pool, wanted, found in zip(asked, content, pools.positions(asked, content), strict=True):
        held = pools.content[pool_rows(pools, pool)].tolist()
        assert held[found] == wanted if found != NOWHERE else wanted not in held


def test_the_numbers_of_contents_leave_no_trace():
    table = full_table(2, 2, 3)
    other = ImageTable(table.concepts, table.contexts, table.concept, table.context, (table.content * 7919) % 1000)
    assert (image_pools(table).rows == image_pools(other).rows).all()


def test_no_images_no_pools():
    empty = np.empty(0, np.int64)
    pools = image_pools(ImageTable((), (), empty, empty, empty))
    assert len(pools.rows) == len(pools.sizes) == 0
