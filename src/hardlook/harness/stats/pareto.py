"""The Pareto front of two costs: what no other point beats in both.

>>> find_front([1, 2, 3, 4], [5, 6, 2, 2])
[0, 2]
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def find_front(first: Sequence[float], second: Sequence[float]) -> list[int]:
    """Positions, sorted by `first`, of points that no other beats: lower in one and no higher in the other.

    Points that are equal in both are on the front together. Those that are not finite are on none.
    """
    points = list(zip(first, second, strict=True))
    known = [place for place, point in enumerate(points) if all(map(math.isfinite, point))]
    front: list[int] = []
    for place in sorted(known, key=lambda place: (*points[place], place)):
        if not front or points[place][1] < points[front[-1]][1] or points[place] == points[front[-1]]:
            front.append(place)
    return front
