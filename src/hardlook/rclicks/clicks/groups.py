"""Clicking groups: ranges of a probability map's mass, from its least to its most probable pixels.

Values are sorted ascending and accumulated in float64; in float32 the last group would lose its most probable pixels
on a large map. A group is a slice of the sorted values, so a draw is one uniform number and one binary search.

`threshold` (what the published code does): all pixels from the value where the cumulative mass reaches the lower bound
to the value where it exceeds the upper one, both included. Equal values are never split, groups may overlap, and none
is empty. `exact`: a pixel's probability is proportional to the overlap of its interval of cumulative mass with the
group's.

>>> ordered = sort_values(np.array([3.0, 1.0, 4.0, 2.0]))
>>> groups = [compute_pixel_probabilities(ordered, low, low + 0.1, "threshold") for low in (0.0, 0.4, 0.9)]
>>> [np.flatnonzero(group).tolist() for group in groups]
[[1, 3], [0], [2]]
>>> compute_pixel_probabilities(ordered, 0.0, 0.2, "exact").round(3).tolist()
[0.0, 0.5, 0.0, 0.5]
>>> draw_pixel(ordered, 0.0, 0.2, "exact", 0.51)
3
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.rclicks.clicks.courses import GroupRule

Values = NDArray[np.float64]


@dataclass(frozen=True)
class SortedValues:
    """A region's pixel values (n,): in the given order, sorted ascending, and the cumulative sum of the sorted ones."""

    values: Values
    ascending: Values
    cumulative: Values

    @property
    def is_empty(self) -> bool:
        """Whether no pixel can be drawn: there is none, or all values are 0."""
        return not len(self.cumulative) or not self.cumulative[-1] > 0


def sort_values(values: Values) -> SortedValues:
    """Sort and accumulate values (n,), all at least 0, to draw pixels; this is costly, so do it once for all groups."""
    ascending = np.sort(values)
    return SortedValues(values, ascending, np.cumsum(ascending, dtype=np.float64))


def draw_pixel(ordered: SortedValues, low: float, high: float, rule: GroupRule, uniform: float) -> int:
    """The index in `values` of the pixel drawn from the group by a uniform random number in [0, 1)."""
    total = ordered.cumulative[-1]
    if rule == "exact":
        last = min(int(np.searchsorted(ordered.cumulative, high * total, side="left")), len(ordered.cumulative) - 1)
        wanted = (low + uniform * (high - low)) * total
    else:
        first, last = _find_bounds(ordered, low, high)
        before = ordered.cumulative[first - 1] if first else 0.0
        wanted = before + uniform * (ordered.cumulative[last] - before)
    # Rounding may put the number at the very end of the group's mass, which belongs to the next group.
    index = min(int(np.searchsorted(ordered.cumulative, wanted, side="right")), last)
    value = ordered.ascending[index]
    # Pixels of equal value are sorted in the given order.
    tie = index - int(np.searchsorted(ordered.ascending, value, side="left"))
    return int(np.flatnonzero(ordered.values == value)[tie])


def compute_pixel_probabilities(ordered: SortedValues, low: float, high: float, rule: GroupRule) -> Values:
    """(n,) float64: the probability of each pixel in a draw from the group; they sum to 1."""
    if rule == "threshold":
        first, last = _find_bounds(ordered, low, high)
        least, most = ordered.ascending[first], ordered.ascending[last]
        chosen = np.where((ordered.values >= least) & (ordered.values <= most), ordered.values, 0.0)
    else:
        total = ordered.cumulative[-1]
        ends = np.minimum(ordered.cumulative, high * total)
        starts = np.maximum(np.concatenate([[0.0], ordered.cumulative[:-1]]), low * total)
        chosen = np.empty_like(ordered.values)
        chosen[np.argsort(ordered.values, kind="stable")] = np.maximum(ends - starts, 0.0)
    return np.asarray(chosen / chosen.sum())


def _find_bounds(ordered: SortedValues, low: float, high: float) -> tuple[int, int]:
    """The first and last index of a threshold group in the sorted values, ties included."""
    total = ordered.cumulative[-1]
    first = int(np.searchsorted(ordered.cumulative, low * total, side="left"))
    last = min(int(np.searchsorted(ordered.cumulative, high * total, side="right")), len(ordered.cumulative) - 1)
    least, most = ordered.ascending[min(first, last)], ordered.ascending[last]
    return (
        int(np.searchsorted(ordered.ascending, least, side="left")),
        int(np.searchsorted(ordered.ascending, most, side="right")) - 1,
    )
