"""Clicking groups: ranges of a probability map's mass, from its least to its most probable pixels.

Values are sorted ascending and accumulated in float64; in float32 the last group would lose its most probable pixels
on a large map. A group is a slice of the sorted values, so a draw is one uniform number and one binary search.

`threshold` (what the published code does): all pixels from the value where the cumulative mass reaches the lower bound
to the value where it exceeds the upper one, both included. Equal values are never split, groups may overlap, and none
is empty. `exact`: a pixel's weight is the overlap of its interval of cumulative mass with the group's.

>>> ranked = rank(np.array([3.0, 1.0, 4.0, 2.0]))
>>> [np.flatnonzero(weights(ranked, g / 10, (g + 1) / 10, "threshold")).tolist() for g in (0, 4, 9)]
[[1, 3], [0], [2]]
>>> weights(ranked, 0.0, 0.2, "exact").round(3).tolist()
[0.0, 0.5, 0.0, 0.5]
>>> draw(ranked, 0.0, 0.2, "exact", 0.51)
3
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.rclicks.clicks.courses import GroupRule

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Ranked:
    """The values (n,) of a region's pixels in the given order, sorted ascending, and their cumulative sum."""

    values: Values
    ascending: Values
    mass: Values

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not len(self.mass) or not self.mass[-1] > 0


def rank(values: Values) -> Ranked:
    """Sort and accumulate values (n,), all at least 0, for draws; this is costly, so do it once for all groups."""
    ascending = np.sort(values)
    return Ranked(values, ascending, np.cumsum(ascending, dtype=np.float64))


def draw(ranked: Ranked, low: float, high: float, rule: GroupRule, uniform: float) -> int:
    """The index in `values` of the pixel drawn from the group by a uniform random number in [0, 1)."""
    total = ranked.mass[-1]
    if rule == "exact":
        last = min(int(np.searchsorted(ranked.mass, high * total, side="left")), len(ranked.mass) - 1)
        wanted = (low + uniform * (high - low)) * total
    else:
        first, last = _bounds(ranked, low, high)
        before = ranked.mass[first - 1] if first else 0.0
        wanted = before + uniform * (ranked.mass[last] - before)
    # Rounding may put the number at the very end of the group's mass, which belongs to the next group.
    place = min(int(np.searchsorted(ranked.mass, wanted, side="right")), last)
    value = ranked.ascending[place]
    # Equal values are ranked in the given order.
    turn = place - int(np.searchsorted(ranked.ascending, value, side="left"))
    return int(np.flatnonzero(ranked.values == value)[turn])


def weights(ranked: Ranked, low: float, high: float, rule: GroupRule) -> Values:
    """(n,) float64: the probability of each pixel in a draw from the group; they sum to 1."""
    if rule == "threshold":
        first, last = _bounds(ranked, low, high)
        least, most = ranked.ascending[first], ranked.ascending[last]
        chosen = np.where((ranked.values >= least) & (ranked.values <= most), ranked.values, 0.0)
    else:
        total = ranked.mass[-1]
        ends = np.minimum(ranked.mass, high * total)
        starts = np.maximum(np.concatenate([[0.0], ranked.mass[:-1]]), low * total)
        chosen = np.empty_like(ranked.values)
        chosen[np.argsort(ranked.values, kind="stable")] = np.maximum(ends - starts, 0.0)
    return np.asarray(chosen / chosen.sum())


def _bounds(ranked: Ranked, low: float, high: float) -> tuple[int, int]:
    """The first and last index of a threshold group in the sorted values, ties included."""
    total = ranked.mass[-1]
    first = int(np.searchsorted(ranked.mass, low * total, side="left"))
    last = min(int(np.searchsorted(ranked.mass, high * total, side="right")), len(ranked.mass) - 1)
    least, most = ranked.ascending[min(first, last)], ranked.ascending[last]
    return (
        int(np.searchsorted(ranked.ascending, least, side="left")),
        int(np.searchsorted(ranked.ascending, most, side="right")) - 1,
    )
