"""The outline runs along exactly those edges that part the mask from the rest."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from hardlook.collect.research.images import make_outline_path


def edges_drawn(path):
    """Unit edges of a path: (x, y, direction)."""
    found = []
    for x, y, way, length in re.findall(r"M(\d+) (\d+)([hv])(\d+)", path):
        for step in range(int(length)):
            found.append((int(x) + step, int(y), "h") if way == "h" else (int(x), int(y) + step, "v"))
    return found


def edges_of(mask):
    padded = np.pad(mask, 1)
    found = set()
    for row in range(mask.shape[0] + 1):
        for column in range(mask.shape[1] + 1):
            if column < mask.shape[1] and padded[row, column + 1] != padded[row + 1, column + 1]:
                found.add((column, row, "h"))
            if row < mask.shape[0] and padded[row + 1, column] != padded[row + 1, column + 1]:
                found.add((column, row, "v"))
    return found


@given(arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=12)))
def test_every_edge_once_and_no_other(mask):
    drawn = edges_drawn(make_outline_path(mask))
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == edges_of(mask)


@given(st.integers(0, 2**32 - 1))
def test_a_speckled_mask_is_drawn_coarser_and_around_all_of_it(seed):
    mask = np.random.default_rng(seed).random((40, 30)) < 0.3
    path = make_outline_path(mask, max_runs=40)
    assert path.count("M") <= 40
    drawn = edges_drawn(path)
    rows, columns = np.nonzero(mask)
    assert min(x for x, _, way in drawn if way == "v") <= columns.min()
    assert max(x for x, _, way in drawn if way == "v") > columns.max()
    assert min(y for _, y, way in drawn if way == "h") <= rows.min()
    assert max(y for _, y, way in drawn if way == "h") > rows.max()


def test_an_empty_mask_has_no_outline():
    assert make_outline_path(np.zeros((3, 4), bool)) == ""
