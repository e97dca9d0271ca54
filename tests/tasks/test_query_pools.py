import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.tasks.image_pools import image_pools
from hardlook.tasks.query_pools import Supports, enough_queries, no_content_twice, swapped_partners, swaps_allowed

from .tables import counted_table, full_table


def most_exchanges(allowed):
    """The largest number of classes that can exchange contexts one to one, by trying all permutations."""
    ways = len(allowed)
    return max(sum(allowed[i][order[i]] for i in range(ways)) for order in itertools.permutations(range(ways)))


@given(st.integers(2, 5), st.integers(0, 2**32 - 1), st.floats(0.2, 0.9))
def test_as_many_classes_exchange_contexts_as_can(ways, seed, density):
    rng = np.random.default_rng(seed)
    allowed = (rng.random((8, ways, ways)) < density) & ~np.eye(ways, dtype=bool)
    allowed[np.arange(8), 0, 1] = True
    allowed[:, np.arange(ways), (np.arange(ways) + 1) % ways] |= ~allowed.any(2)
    partners = swapped_partners(allowed, rng.random((8, ways, ways)))
    for one, chosen in zip(allowed, partners, strict=True):
        assert all(one[i][chosen[i]] for i in range(ways))
        # Classes beyond the exchange may double up; the different partners cannot be fewer than the exchange.
        assert len(set(chosen.tolist())) == most_exchanges(one.tolist())


def test_all_derangements_of_a_full_task_occur():
    rng = np.random.default_rng(0)
    allowed = np.tile(~np.eye(4, dtype=bool), (600, 1, 1))
    seen = {tuple(row) for row in swapped_partners(allowed, rng.random((600, 4, 4))).tolist()}
    derangements = {p for p in itertools.permutations(range(4)) if all(i != j for i, j in enumerate(p))}
    assert seen == derangements


def test_a_swap_needs_another_context_and_enough_images_in_it():
    table = counted_table({"a": {"x": 5, "y": 5}, "b": {"x": 2, "y": 5}, "c": {"x": 5, "z": 5}})
    pools = image_pools(table)
    classes, contexts = np.array([[0, 1, 2]]), np.array([[0, 1, 2]])
    rows = np.array([[[np.flatnonzero((table.concept == k) & (table.context == k))[0]] for k in range(3)]])
    drawn = Supports(classes, contexts, rows)
    allowed = swaps_allowed(pools, drawn, 3)
    assert allowed.tolist() == [[[False, True, False], [False, False, False], [True, False, False]]]
    assert enough_queries(pools, "swapped", drawn, 3).tolist() == [False]
    assert enough_queries(pools, "swapped", drawn, 2).tolist() == [True]


@pytest.mark.parametrize(("mode", "most"), [("iid", 2), ("ood", 3), ("blind", 5)])
def test_a_support_of_another_class_takes_its_double_away(mode, most):
    # Two concepts of two contexts and three images; class 1's support doubles an image of class 0.
    table = full_table(2, 2, 3)
    first = {
        cell: np.flatnonzero((table.concept == cell[0]) & (table.context == cell[1]))
        for cell in ((0, 0), (0, 1), (1, 0))
    }
    drawn = Supports(np.array([[0, 1]]), np.array([[0, 0]]), np.array([[[first[0, 0][0]], [first[1, 0][0]]]]))
    assert enough_queries(image_pools(table), mode, drawn, most).tolist() == [True]
    cell = (0, 1) if mode == "ood" else (0, 0)
    table.content[first[1, 0][0]] = table.content[first[cell][-1]]
    assert enough_queries(image_pools(table), mode, drawn, most).tolist() == [False]
    assert enough_queries(image_pools(table), mode, drawn, most - 1).tolist() == [True]


def test_supports_of_one_content_are_seen():
    table = full_table(2, 1, 2)
    drawn = Supports(np.array([[0, 1]]), np.array([[0, 0]]), np.array([[[0], [2]]]))
    assert no_content_twice(image_pools(table), drawn).tolist() == [True]
    table.content[2] = table.content[0]
    assert no_content_twice(image_pools(table), drawn).tolist() == [False]
