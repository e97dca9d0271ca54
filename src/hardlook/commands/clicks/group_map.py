"""Which clicking group a pixel belongs to: that of the middle of its stretch of the mass, from the least probable up.

Groups may share pixels, so this is a picture of them and not the groups themselves.

>>> group_numbers(np.array([3.0, 1.0, 4.0, 2.0]), 10, "threshold").tolist()
[4, 0, 8, 2]
>>> [group_numbers(np.array([1.0, 1.0]), 2, rule).tolist() for rule in ("threshold", "exact")]
[[1, 1], [0, 1]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.courses import clicking_groups
from hardlook.clicks.groups import rank, weights
from hardlook.clicks.rules import GroupRule


@dataclass(frozen=True)
class GroupPart:
    """What a group may click: how many pixels, and their share of the region's area in [0, 1]."""

    name: str
    pixels: int
    share: float


def group_numbers(values: NDArray[np.float64], count: int, rule: GroupRule) -> NDArray[np.int64]:
    """(n,) the group of each value (n,), from 0; -1 where the value is 0 and no group ever clicks.

    By `threshold` equal values share a fate, so their stretches are taken together.
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    mass = np.cumsum(ascending)
    if not len(mass) or not mass[-1] > 0:
        return np.full(len(values), -1)
    if rule == "threshold":
        first = np.searchsorted(ascending, ascending, side="left")
        last = np.searchsorted(ascending, ascending, side="right") - 1
    else:
        first = last = np.arange(len(values))
    middle = (mass[first] - ascending[first] + mass[last]) / 2
    numbers = np.empty(len(values), np.int64)
    numbers[order] = np.minimum((middle / mass[-1] * count).astype(np.int64), count - 1)
    return np.where(values > 0, numbers, -1)


def group_parts(values: NDArray[np.float64], count: int, rule: GroupRule) -> tuple[GroupPart, ...]:
    """Every group's pixels of a region with these values (n,).

    >>> [part.pixels for part in group_parts(np.array([1.0, 2.0, 3.0, 4.0]), 10, "threshold")]
    [2, 2, 2, 2, 1, 2, 2, 1, 1, 1]
    """
    ranked = rank(values)
    parts = []
    for group in clicking_groups(count):
        assert group.low is not None and group.high is not None
        pixels = int(np.count_nonzero(weights(ranked, group.low, group.high, rule)))
        parts.append(GroupPart(group.name, pixels, pixels / len(values)))
    return tuple(parts)
