"""Comparison of two sets of clicks: PL1, the 1-Wasserstein distance and the two-dimensional Kolmogorov-Smirnov test.

PL1 and the Wasserstein distance are from "RClicks: Realistic Click Simulation for Benchmarking Interactive
Segmentation" (2024). Both are 0 or more, and lower is more alike; `box` is the width and height in pixels of the target
object's box.

>>> a, b = [(0, 0), (10, 0), (10, 20)], [(0, 10), (20, 20)]
>>> round(pairwise_l1(a, b, (20, 40)), 7), round(wasserstein(a, b, (20, 40)), 7)
(0.7916667, 0.2851092)

The test is that of G. Fasano and A. Franceschini, "A multidimensional version of the Kolmogorov-Smirnov test" (1987),
with the centre's own weight moved to where it counts most, as the published results of RClicks have it. Each point cuts
the plane into four quadrants; D is the largest difference between the shares of both sets in a quadrant, averaged over
centres from the one and from the other set. Counts are integers, so D has one rounding only.

>>> result = fasano_franceschini([(1, 1), (2, 3), (4, 2), (5, 5)], [(1, 4), (3, 3), (6, 1), (6, 6)])
>>> result.d, round(result.lambda_, 6), round(result.p, 6), result.passes
(0.5, 0.927371, 0.356064, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardlook.metrics.kernels import load_kernels

WassersteinReading = Literal["released", "paper"]
LARGEST_ASSIGNMENT = 300  # copies per side; above, the linear programme is faster
PASSES_ABOVE = 0.05


def click_points(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """The clicks as (n, 2) float64 x and y in pixels, n at least 1, finite; `name` is what an error calls them.

    >>> click_points([(1, 2)], "clicks")
    array([[1., 2.]])
    """
    points = np.asarray(values, np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(f"{name}: expected points of shape (n, 2), n at least 1, got {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError(f"{name}: expected finite coordinates, got {points[~np.isfinite(points).all(1)][0].tolist()}")
    return points


def box_size(box: tuple[float, float]) -> NDArray[np.float64]:
    """(2,) width and height of an object's box in pixels, both above 0.

    >>> box_size((20, 40))
    array([20., 40.])
    """
    width, height = box
    if not (0 < width < math.inf and 0 < height < math.inf):
        raise ValueError(f"box: expected a width and a height above 0, got {width} and {height}")
    return np.array([width, height], np.float64)


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
        return _solve_transport(costs)
    if n != m:
        costs = np.repeat(np.repeat(costs, copies // n, axis=0), copies // m, axis=1)
    return float(costs[linear_sum_assignment(costs)].mean())


def _solve_transport(costs: NDArray[np.float64]) -> float:
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


@dataclass(frozen=True)
class KsResult:
    """D in [0, 1], lambda, p and the verdict of one test; where p is NaN, `passes` is False and `why` says why."""

    d: float
    lambda_: float
    p: float
    passes: bool
    why: str = ""


@dataclass(frozen=True)
class KsDraws:
    """D, lambda, p and verdict of many tests, (draws,) each; p is NaN and the verdict False in `undefined` of them."""

    d: NDArray[np.float64]
    lambda_: NDArray[np.float64]
    p: NDArray[np.float64]
    passes: NDArray[np.bool_]
    undefined: int


def fasano_franceschini(a: ArrayLike, b: ArrayLike) -> KsResult:
    """The test of (n, 2) points against (m, 2) points; it passes where p > .05. Their order does not matter.

    A set with a constant coordinate has no correlation and so no p.

    >>> result = fasano_franceschini([(1, 1), (1, 2)], [(1, 1), (2, 2)])
    >>> result.passes, result.why
    (False, 'x of the first set is constant: no correlation, no p')
    """
    first, second = click_points(a, "a"), click_points(b, "b")
    tests = _tests(first[None], second)
    why = _why_undefined(first, second) if tests.undefined else ""
    return KsResult(float(tests.d[0]), float(tests.lambda_[0]), float(tests.p[0]), bool(tests.passes[0]), why)


def fasano_franceschini_draws(draws: ArrayLike, b: ArrayLike) -> KsDraws:
    """The test of each of many sets, (draws, n, 2), against one set, (m, 2).

    Each result is that of `fasano_franceschini`, for a fraction of its time.

    >>> fasano_franceschini_draws([[(1, 1), (2, 3)], [(7, 7), (7, 9)]], [(1, 2), (3, 4)]).undefined
    1
    """
    sets = np.asarray(draws, np.float64)
    if sets.ndim != 3 or not len(sets):
        raise ValueError(f"draws: expected points of shape (draws, n, 2), got {sets.shape}")
    click_points(sets.reshape(-1, sets.shape[-1]), "draws")
    return _tests(sets, click_points(b, "b"))


def quadrant_gaps_numpy(draws: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int64]:
    """D of each set in `draws` (draws, n, 2) against `points` (m, 2), times 2 n m; used where numba is not installed.

    >>> quadrant_gaps_numpy(np.array([[[1.0, 1.0]]]), np.array([[2.0, 2.0]]))
    array([2])
    """
    return np.array([_find_largest_gap(drawn, points) + _find_largest_gap(points, drawn) for drawn in draws])


def _find_largest_gap(centres: NDArray[np.float64], others: NDArray[np.float64]) -> int:
    n, m = len(centres), len(others)
    differences = _count_quadrants(centres, centres) * m - _count_quadrants(centres, others) * n
    differences[:, 0] -= m
    return int(max(-differences.min(), differences.max() + m))


def _count_quadrants(centres: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int64]:
    left, below = (points[None, :, axis] <= centres[:, None, axis] for axis in (0, 1))
    both, lefts, belows = (left & below).sum(1), left.sum(1), below.sum(1)
    return np.stack([both, lefts - both, belows - both, len(points) - lefts - belows + both], axis=1)


def _tests(draws: NDArray[np.float64], points: NDArray[np.float64]) -> KsDraws:
    from scipy.special import kolmogorov

    n, m = draws.shape[1], len(points)
    kernels = load_kernels("click_ks")
    gaps = kernels.quadrant_gaps if kernels else quadrant_gaps_numpy
    d = gaps(draws, points) / (2 * n * m)
    root = np.sqrt(n * m / (n + m))
    squares = (_correlation(draws) ** 2 + _correlation(points) ** 2) / 2
    # Rounding may carry a correlation just beyond 1.
    spread = np.sqrt(np.maximum(1 - squares, 0))
    lambda_ = d * root / (1 + spread * (0.25 - 0.75 / root))
    p = np.asarray(kolmogorov(lambda_), np.float64)
    return KsDraws(d, lambda_, p, p > PASSES_ABOVE, int(np.isnan(p).sum()))


def _why_undefined(first: NDArray[np.float64], second: NDArray[np.float64]) -> str:
    constant = [
        f"{axis} of the {name} set"
        for name, points in (("first", first), ("second", second))
        for axis, values in zip("xy", points.T, strict=True)
        if _constant(values)
    ]
    # Coordinates that differ by less than a square can hold (such as 1e-200) have no correlation either.
    named = " and ".join(constant) or "a coordinate of a set"
    return f"{named} is constant: no correlation, no p"


def _correlation(points: NDArray[np.float64]) -> NDArray[np.float64]:
    x, y = points[..., 0], points[..., 1]
    dx, dy = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    norms = np.sqrt((dx * dx).sum(-1)) * np.sqrt((dy * dy).sum(-1))
    undefined = _constant(x) | _constant(y) | (norms == 0)
    return np.where(undefined, np.nan, (dx * dy).sum(-1) / np.where(undefined, 1.0, norms))


def _constant(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(values.max(-1) == values.min(-1))
