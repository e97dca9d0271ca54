"""Distinct pairs drawn from all pairs of two lists, none of them a token with itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def draw_pairs(
    queries: Sequence[str], supports: Sequence[str], count: int, rng: np.random.Generator
) -> list[tuple[str, str]]:
    """`count` distinct (query, support) pairs in random order, or all there are when they are fewer.

    The two lists are the same, and then no token is paired with itself, or have nothing in common.

    >>> sorted(draw_pairs(["a", "b"], ["a", "b"], 9, np.random.default_rng(0)))
    [('a', 'b'), ('b', 'a')]
    """
    same = list(queries) == list(supports)
    if not same and set(queries) & set(supports):
        raise ValueError("expected equal or disjoint lists of queries and supports, they overlap in part")
    width = len(supports) - same  # a query's row in the table of all pairs
    available = len(queries) * max(width, 0)
    places = rng.choice(available, size=min(count, available), replace=False) if available else np.zeros(0, np.int64)
    drawn = []
    for place in places.tolist():
        row, column = divmod(place, width)
        drawn.append((queries[row], supports[column + (same and column >= row)]))
    return drawn
