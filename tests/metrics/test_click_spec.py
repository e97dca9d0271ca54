"""Section 7 of the specification where other tests share a library with the code or keep to whole coordinates."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from hardlook.metrics.click_maps import nss, pde
from hardlook.metrics.click_sets import fasano_franceschini, fasano_franceschini_draws, pairwise_l1, wasserstein

SIZES = [(1, 1), (2, 5), (10, 10), (10, 25), (37, 48), (60, 97)]


def crowds(n, m, seed, shift=0.0):
    """Two clouds with fractions of pixels, some of them on the other side of 0, of unlike shapes."""
    rng = np.random.default_rng([n, m, seed])
    first = rng.normal(size=(n, 2)) @ [[30, 12], [0, 8]]
    return first, rng.normal(size=(m, 2)) @ [[25, -9], [0, 14]] + shift


def kolmogorov(value):
    """The survival function by both of its series; each alone is slow where the other is fast."""
    if value < 1:
        ends = [math.exp(-((2 * k - 1) ** 2) * math.pi**2 / (8 * value**2)) for k in range(1, 40)]
        return 1 - math.sqrt(2 * math.pi) / value * math.fsum(ends)
    return 2 * math.fsum((-1) ** (k - 1) * math.exp(-2 * k**2 * value**2) for k in range(1, 40))


def half_distance(centres, others):
    """The largest difference of quadrant shares about the centres, the centre's own weight off the first quadrant."""
    n, low, high = len(centres), math.inf, -math.inf
    for x, y in centres:
        for number, (right, above) in enumerate([(False, False), (False, True), (True, False), (True, True)]):
            own, other = (
                sum((px > x) == right and (py > y) == above for px, py in points) / len(points)
                for points in (centres, others)
            )
            difference = own - other - (1 / n if number == 0 else 0)
            low, high = min(low, difference), max(high, difference)
    return max(-low, high + 1 / n)


def correlation(points):
    xs, ys = zip(*points, strict=True)
    mx, my = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    above = math.fsum((x - mx) * (y - my) for x, y in points)
    return above / math.sqrt(math.fsum((x - mx) ** 2 for x in xs) * math.fsum((y - my) ** 2 for y in ys))


@pytest.mark.parametrize("shift", [0.0, 6.0, 15.0])
@pytest.mark.parametrize(("n", "m"), SIZES[1:])
def test_the_test_of_two_crowds_without_a_library(n, m, shift):
    a, b = (points.tolist() for points in crowds(n, m, 1, shift))
    d = (half_distance(a, b) + half_distance(b, a)) / 2
    s = math.sqrt(n * m / (n + m))
    r = math.sqrt(max(0.0, 1 - (correlation(a) ** 2 + correlation(b) ** 2) / 2))
    value = d * s / (1 + r * (0.25 - 0.75 / s))
    p = kolmogorov(value)
    result = fasano_franceschini(a, b)
    assert (result.d, result.lambda_, result.p) == pytest.approx((d, value, p), abs=1e-9)
    assert result.passes == (p > 0.05)


def test_the_verdict_turns_where_p_crosses_one_in_twenty():
    """A crowd of the same shape moved away step by step."""
    (a, _), (b, _) = crowds(30, 30, 2), crowds(30, 30, 3)
    results = [fasano_franceschini(a, b + shift) for shift in np.linspace(0, 40, 60)]
    assert {result.passes for result in results} == {True, False}
    for result in results:
        assert result.passes == (kolmogorov(result.lambda_) > 0.05)
    draws = fasano_franceschini_draws(np.stack([a - shift for shift in np.linspace(0, 40, 60)]), b)
    assert draws.p == pytest.approx([kolmogorov(value) for value in draws.lambda_], abs=1e-9)


def cheapest_transport(a, b, scale):
    """The transport programme as textbooks have it: flows from every point to every point."""
    n, m = len(a), len(b)
    costs = [[math.hypot((p[0] - q[0]) / scale[0], (p[1] - q[1]) / scale[1]) for q in b] for p in a]
    leaving = np.kron(np.eye(n), np.ones(m))
    arriving = np.kron(np.ones(n), np.eye(m))
    weights = [1 / n] * n + [1 / m] * m
    answer = linprog(np.ravel(costs), A_eq=np.vstack([leaving, arriving]), b_eq=weights, method="highs")
    assert answer.success
    return answer.fun


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_distances_of_crowds_with_fractions_of_pixels(n, m):
    a, b = crowds(n, m, 3, shift=4.5)
    w, h = 61.5, 23.25
    pairs = [abs(p[0] - q[0]) / w + abs(p[1] - q[1]) / h for p in a for q in b]
    assert pairwise_l1(a, b, (w, h)) == pytest.approx(math.fsum(pairs) / (n * m), rel=1e-12)
    released = cheapest_transport(a, b, (1, 1)) / math.sqrt(w * w + h * h)
    assert wasserstein(a, b, (w, h)) == pytest.approx(released, rel=1e-9)
    assert wasserstein(a, b, (w, h), "paper") == pytest.approx(cheapest_transport(a, b, (w, h)), rel=1e-9)


@settings(max_examples=50)
@given(
    arrays(np.float64, (4, 6), elements=st.one_of(st.just(0.0), st.floats(1e-3, 1))),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=8),
    st.sampled_from([1e-9, 1e-6, 1.0, 1e3]),
)
def test_scores_at_clicks_as_released_in_plain_loops(click_map, clicks, loudness):
    """Maps as loud as the small numbers show them; clicks where the map has nothing count, too."""
    click_map = click_map * loudness
    assume(np.ptp(click_map) > 0.01 * loudness)
    values = click_map.ravel().tolist()
    total = math.fsum(values) + 1e-9
    shares = [value / total for value in values]
    middle = math.fsum(shares) / 24
    deviation = math.sqrt(math.fsum((share - middle) ** 2 for share in shares) / 24)
    at_clicks = [shares[y * 6 + x] for x, y in clicks]
    assert pde(click_map, clicks) == pytest.approx(math.fsum(at_clicks) / len(clicks), rel=1e-9)
    scores = [(share - middle) / (deviation + 1e-9) for share in at_clicks]
    assert nss(click_map, clicks) == pytest.approx(math.fsum(scores) / len(clicks), abs=1e-9)
