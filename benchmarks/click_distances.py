"""Distances between sets of clicks beside their peers in one run, one thread: 48 clicks against 48.

Run `python benchmarks/click_distances.py`. The Wasserstein distance is timed beside
scipy.stats.wasserstein_distance_nd, the Kolmogorov-Smirnov test beside its definition as a loop over points with numpy
inside. Processor time decides, the best of a few runs. The values must agree.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstwobign, pearsonr, wasserstein_distance_nd
from threadpoolctl import threadpool_limits

from bootstrap import spent
from hardlook.metrics.click_sets import fasano_franceschini, fasano_franceschini_draws, pairwise_l1, wasserstein

CLICKS, OTHER_CLICKS, DRAWS = 48, 47, 100
WD_TARGET, KS_TARGET = 100.0, 10.0

Points = NDArray[np.float64]


def quadrant_shares(x: float, y: float, points: Points) -> NDArray[np.float64]:
    left, below = points[:, 0] <= x, points[:, 1] <= y
    quadrants = left & below, left & ~below, ~left & below, ~left & ~below
    return np.array([np.count_nonzero(quadrant) for quadrant in quadrants]) / len(points)


def literal_distance(centres: Points, others: Points) -> float:
    rows = [quadrant_shares(x, y, centres) - quadrant_shares(x, y, others) for x, y in centres]
    differences = np.array(rows) - np.array([1 / len(centres), 0, 0, 0])
    return float(max(-differences.min(), differences.max() + 1 / len(centres)))


def literal_p(a: Points, b: Points) -> float:
    d = (literal_distance(a, b) + literal_distance(b, a)) / 2
    root = np.sqrt(len(a) * len(b) / (len(a) + len(b)))
    squares = sum(pearsonr(points[:, 0], points[:, 1])[0] ** 2 for points in (a, b))
    return float(kstwobign.sf(d * root / (1 + np.sqrt(1 - squares / 2) * (0.25 - 0.75 / root))))


def microseconds(work: Callable[[], object], times: int) -> float:
    """Processor time of one call; many calls a run, because the clock is coarse."""
    work()  # the first call compiles

    def many() -> None:
        for _ in range(times):
            work()

    return spent(many, 5).cpu / times * 1e6


def print_row(name: str, own: float, peer: float, target: float | None) -> None:
    verdict = "" if target is None else f"{target:>8.0f}x  {'met' if peer / own >= target else 'missed'}"
    print(f"{name:<40}{own:>11.1f}{peer:>11.1f}{peer / own:>13.0f}x{verdict}")


def main() -> None:
    rng = np.random.default_rng(0)
    shapes = (CLICKS, 2), (CLICKS, 2), (OTHER_CLICKS, 2), (DRAWS, CLICKS, 2)
    a, b, fewer, draws = (rng.integers(0, 400, shape).astype(np.float64) for shape in shapes)
    box = (3.0, 4.0)
    for other in (b, fewer):
        difference = abs(wasserstein(a, other, box) * 5 - wasserstein_distance_nd(a, other))
        assert difference < 1e-9, difference
    difference = abs(fasano_franceschini(a, b).p - literal_p(a, b))
    assert difference < 1e-9, difference
    with threadpool_limits(limits=1):
        peer = microseconds(lambda: wasserstein_distance_nd(a, b), 3)
        peer_fewer = microseconds(lambda: wasserstein_distance_nd(a, fewer), 3)
        loop = microseconds(lambda: literal_p(a, b), 5)
        wd = microseconds(lambda: wasserstein(a, b, box), 200)
        wd_fewer = microseconds(lambda: wasserstein(a, fewer, box), 5)
        ks = microseconds(lambda: fasano_franceschini(a, b), 200)
        many = microseconds(lambda: fasano_franceschini_draws(draws, b), 20) / DRAWS
        pairs = microseconds(lambda: pairwise_l1(draws.reshape(-1, 2), b, box), 20) / DRAWS
    print(f"{'microseconds a pair of sets, one thread':<40}{'ours':>11}{'peer':>11}{'peer / ours':>14}   target")
    print_row(f"WD, {CLICKS} against {CLICKS}", wd, peer, WD_TARGET)
    print_row(f"WD, {CLICKS} against {OTHER_CLICKS}", wd_fewer, peer_fewer, None)
    print_row(f"KS, {CLICKS} against {CLICKS}", ks, loop, KS_TARGET)
    print_row(f"KS, {DRAWS} draws against {CLICKS}, a draw", many, loop, KS_TARGET)
    print(f"PL1, {DRAWS} draws against {CLICKS}: {pairs:.1f} microseconds a draw")


if __name__ == "__main__":
    main()
