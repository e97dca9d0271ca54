"""Tier 1, query complexity: pairs for every combination of the query's and the support's partition.

The rule is recovered from the published files and gives the size of all their 320 cells: a cell is one class, one
partition of queries and one of supports. Below 2,000 pairs a cell is listed whole, query by query, self pairs among
them; from 2,000 on, 1,000 are drawn without self pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hardlook.randomness import generator
from hardlook.tiers.drawn_pairs import draw_pairs
from hardlook.tiers.partitions import PARTITIONS, Members

WHOLE_BELOW = 2000
DRAWN = 1000


@dataclass(frozen=True)
class Cell:
    """The pairs of one class between a partition of queries and one of supports, with the sizes they come from."""

    class_name: str
    query_partition: str
    support_partition: str
    queries: int
    supports: int
    pairs: tuple[tuple[str, str], ...]


def cell_size(queries: int, supports: int) -> int:
    """How many pairs a cell has.

    >>> cell_size(40, 49), cell_size(40, 50), cell_size(0, 50)
    (1960, 1000, 0)
    """
    whole = queries * supports
    return whole if whole < WHOLE_BELOW else DRAWN


def cell_pairs(
    queries: Sequence[str], supports: Sequence[str], *, seed: int, key: Sequence[str]
) -> list[tuple[str, str]]:
    """The pairs of a cell; `key` names it, so that its draw hangs on nothing else.

    >>> cell_pairs(["1_a", "1_b"], ["1_a", "1_b"], seed=0, key=("cat", "easy_sal", "easy_sal"))
    [('1_a', '1_a'), ('1_a', '1_b'), ('1_b', '1_a'), ('1_b', '1_b')]
    """
    if len(queries) * len(supports) < WHOLE_BELOW:
        return [(query, support) for query in queries for support in supports]
    return draw_pairs(queries, supports, DRAWN, generator(seed, "tier 1", *key))


def query_complexity(
    members: Members, classes: Sequence[str], query_partition: str, *, seed: int = 0
) -> tuple[Cell, ...]:
    """The cells of one file, `splitK_q_<query_partition>`, in its order: support partition outer, class inner.

    `members` are tokens by class and partition, `classes` those of the fold. A class without members has empty cells.

    >>> members = {"cat": {"easy_sal": ["1_a"], "hard_sal": ["1_b", "1_c"]}}
    >>> [len(cell.pairs) for cell in query_complexity(members, ["cat"], "hard_sal")]
    [0, 2, 0, 4]
    """
    cells = []
    for support_partition in PARTITIONS:
        for name in classes:
            queries = members.get(name, {}).get(query_partition, ())
            supports = members.get(name, {}).get(support_partition, ())
            key = (name, query_partition, support_partition)
            pairs = cell_pairs(queries, supports, seed=seed, key=key)
            cells.append(Cell(*key, len(queries), len(supports), tuple(pairs)))
    return tuple(cells)
