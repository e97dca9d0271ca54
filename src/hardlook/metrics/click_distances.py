"""How far apart two sets of clicks are, in units of the object: PL1 and the 1-Wasserstein distance.

From "RClicks: Realistic Click Simulation for Benchmarking Interactive Segmentation" (2024). Both are 0 or more, and
lower is more alike; `box` is the width and height in pixels of the target object's box.

>>> a, b = [(0, 0), (10, 0), (10, 20)], [(0, 10), (20, 20)]
>>> round(pairwise_l1(a, b, (20, 40)), 7), round(wasserstein(a, b, (20, 40)), 7)
(0.7916667, 0.2851092)
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.click_points import box_size, click_points

WassersteinReading = Literal["released", "paper"]
# Up to this many copies a side the assignment is faster than the linear programme.
LARGEST_ASSIGNMENT = 300


def pairwise_l1(a: ArrayLike, b: ArrayLike, box: tuple[float, float]) -> float:
    """PL1: the mean over all pairs of (n, 2) and (m, 2) points of |dx| / w + |dy| / h.

    The mean over draws of equal size is the PL1 of all their points together: one call serves many draws.

    >>> pairwise_l1([(0, 0)], [(1, 0), (3, 4)], (2, 4))
    1.5
    """
    from scipy.spatial.distance import cdist

    size = box_size(box)
    return float(cdist(click_points(a, "a") / size, click_points(b, "b") / size, "cityblock").mean())


def wasserstein(
    a: ArrayLike, b: ArrayLike, box: tuple[float, float], reading: WassersteinReading = "released"
) -> float:
    """WD: the exact 1-Wasserstein distance of (n, 2) and (m, 2) points, every point of a set with the same weight.

    `released` measures in pixels and divides by the box's diagonal; `paper` divides x by its width and y by its height
    first. Sets of equal size are an assignment problem.

    >>> wasserstein([(0, 0), (8, 0)], [(8, 3), (0, 3)], (3, 4)), wasserstein([(0, 0)], [(3, 4)], (3, 1), "paper")
    (0.6, 4.123105625617661)
    """
    from scipy.spatial.distance import cdist

    first, second, size = click_points(a, "a"), click_points(b, "b"), box_size(box)
    if reading == "released":
        return transport_cost(cdist(first, second)) / math.hypot(*size)
    if reading == "paper":
        return transport_cost(cdist(first / size, second / size))
    raise ValueError(f"wasserstein: expected the reading released or paper, got {reading!r}")


def transport_cost(costs: NDArray[np.float64]) -> float:
    """The least mean cost of carrying weight 1, spread evenly over the rows, to weight 1 spread over the columns.

    `costs` is (n, m), 0 or more, a cost for carrying weight 1 from row to column.

    >>> transport_cost(np.array([[1.0, 3.0], [2.0, 1.0], [5.0, 2.0]]))
    1.5
    """
    from scipy.optimize import linear_sum_assignment

    n, m = costs.shape
    copies = math.lcm(n, m)
    if copies > LARGEST_ASSIGNMENT and n != m:
        return _programme_cost(costs)
    if n != m:
        costs = np.repeat(np.repeat(costs, copies // n, axis=0), copies // m, axis=1)
    return float(costs[linear_sum_assignment(costs)].mean())


def _programme_cost(costs: NDArray[np.float64]) -> float:
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    # With m units at each of n rows and n at each of m columns, the best flow is whole numbers. So the solver's flow
    # can be rounded, and only which flow is best rests on its tolerance.
    n, m = costs.shape
    row, column = np.divmod(np.arange(n * m), m)
    # One of the n + m sums follows from the others.
    kept = column < m - 1
    ends = np.concatenate([row, n + column[kept]])
    routes = np.concatenate([np.arange(n * m), np.flatnonzero(kept)])
    sums = csr_array((np.ones(len(ends)), (ends, routes)), shape=(n + m - 1, n * m))
    units = np.concatenate([np.full(n, m), np.full(m - 1, n)])
    largest = costs.max()
    if largest == 0:
        return 0.0
    tight = {"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10}
    found = linprog(costs.ravel() / largest, A_eq=sums, b_eq=units, method="highs-ds", options=tight)
    flow = np.rint(found.x) if found.success else np.zeros(n * m)
    if not np.array_equal(sums @ flow, units):
        raise RuntimeError(f"transport of {n} to {m} points: no whole flow found ({found.message})")
    return float((costs.ravel() * flow).sum() / (n * m))
