from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kstwobign, pearsonr, wasserstein_distance_nd

from hardlook.metrics import click_sets
from hardlook.metrics.click_sets import (
    fasano_franceschini,
    fasano_franceschini_draws,
    pairwise_l1,
    quadrant_gaps_numpy,
    transport_cost,
    wasserstein,
)
from hardlook.metrics.kernels.click_ks import quadrant_gaps

A = [(0, 0), (10, 0), (10, 20)]

B = [(0, 10), (20, 20)]

BOX = (20, 40)


def point_sets(largest):
    return st.integers(1, largest).flatmap(lambda n: arrays(np.float64, (n, 2), elements=st.integers(0, 30)))


def test_worked_check():
    assert pairwise_l1(A, B, BOX) == pytest.approx(0.7916667, abs=5e-8)
    assert wasserstein(A, B, BOX) == pytest.approx(0.2851092, abs=5e-8)
    assert wasserstein(A, B, BOX, "paper") == pytest.approx(0.4610206, abs=5e-8)


@given(point_sets(9), point_sets(9))
def test_pairwise_l1_equals_a_loop(a, b):
    pairs = [abs(p[0] - q[0]) / 20 + abs(p[1] - q[1]) / 40 for p, q in product(a, b)]
    assert pairwise_l1(a, b, BOX) == pytest.approx(sum(pairs) / len(pairs))


def test_pairwise_l1_of_pooled_draws_is_the_mean_over_draws():
    rng = np.random.default_rng(0)
    draws, b = rng.uniform(0, 40, (5, 8, 2)), rng.uniform(0, 40, (11, 2))
    alone = np.mean([pairwise_l1(drawn, b, BOX) for drawn in draws])
    assert pairwise_l1(draws.reshape(-1, 2), b, BOX) == pytest.approx(alone)


@settings(max_examples=25)
@given(point_sets(12), point_sets(12))
def test_wasserstein_equals_scipy_for_equal_and_unequal_sizes(a, b):
    assert wasserstein(a, b, (3, 4)) * 5 == pytest.approx(wasserstein_distance_nd(a, b), abs=1e-6)
    scaled = wasserstein_distance_nd(a / [3, 4], b / [3, 4])
    assert wasserstein(a, b, (3, 4), "paper") == pytest.approx(scaled, abs=1e-6)


@pytest.mark.parametrize(("n", "m"), [(48, 48), (47, 48), (20, 30), (53, 31), (1, 40)])
def test_wasserstein_equals_scipy_at_the_usual_sizes(n, m):
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 400, (n, 2)), rng.integers(100, 500, (m, 2))
    assert wasserstein(a, b, (3, 4)) * 5 == pytest.approx(wasserstein_distance_nd(a, b), rel=1e-9)


@given(st.integers(1, 5).flatmap(lambda n: arrays(np.float64, (2, n, 2), elements=st.integers(0, 30))))
def test_equal_sizes_equal_the_best_of_all_pairings(both):
    a, b = both
    best = min(np.linalg.norm(a - b[list(order)], axis=1).mean() for order in permutations(range(len(b))))
    assert wasserstein(a, b, (3, 4)) * 5 == pytest.approx(best)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9))
def test_assignment_and_linear_program_agree(seed, n, m):
    # With integer costs many flows are optimal, but the minimum cost is unique.
    costs = np.random.default_rng(seed).integers(0, 4, (n, m)).astype(float)
    assert click_sets._solve_transport(costs) == pytest.approx(transport_cost(costs), abs=1e-12)


@given(point_sets(8), point_sets(8))
def test_laws_of_a_distance(a, b):
    assert wasserstein(a, a[::-1], BOX) == 0
    assert wasserstein(a, b, BOX) == pytest.approx(wasserstein(b, a, BOX), abs=1e-9)
    # The distance of the means is never more than that of the sets, and the mean over pairs never less.
    gap = np.linalg.norm(a.mean(0) - b.mean(0)) / np.hypot(*BOX)
    pairs = np.linalg.norm(a[:, None] - b[None], axis=-1).mean() / np.hypot(*BOX)
    assert gap - 1e-9 <= wasserstein(a, b, BOX) <= pairs + 1e-9


@given(point_sets(6), st.integers(-50, 50), st.integers(-50, 50))
def test_a_shifted_set_is_as_far_as_the_shift(a, dx, dy):
    assert wasserstein(a, a + np.array([dx, dy]), (3, 4)) * 5 == pytest.approx(np.hypot(dx, dy), abs=1e-9)


def test_repeating_every_point_changes_nothing():
    repeated = np.repeat(A, 4, axis=0)
    assert wasserstein(repeated, B, BOX) == pytest.approx(wasserstein(A, B, BOX))
    assert pairwise_l1(repeated, B, BOX) == pytest.approx(pairwise_l1(A, B, BOX))


@pytest.mark.parametrize("distance", [pairwise_l1, wasserstein])
def test_distances_are_relative_to_the_box_however_small_it_is(distance):
    tiny = (np.array(A) / 1000, np.array(B) / 1000, (BOX[0] / 1000, BOX[1] / 1000))
    assert distance(*tiny) == pytest.approx(distance(A, B, BOX))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pairwise_l1(A, B, (0, 4)), "box: expected a width and a height above 0, got 0 and 4"),
        (lambda: wasserstein(A, B, (2, float("nan"))), "got 2 and nan"),
        (lambda: wasserstein(A, B, (float("inf"), 2)), "got inf and 2"),
        (lambda: wasserstein(A, B, (2, 0)), "got 2 and 0"),
        (lambda: wasserstein(A, B, BOX, "ours"), "released or paper, got 'ours'"),
        (lambda: wasserstein([1, 2], B, BOX), r"a: expected points of shape \(n, 2\)"),
    ],
)
def test_errors_show_the_wrong_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_solver_that_gives_up_is_an_error_and_not_a_number(monkeypatch):
    import scipy.optimize

    class GaveUp:
        success, message, x = False, "time limit", None

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: GaveUp())
    with pytest.raises(RuntimeError, match="transport of 47 to 48 points: no whole flow found"):
        wasserstein(np.arange(94).reshape(47, 2), np.arange(96).reshape(48, 2), BOX)


CLICK_KS_A = [(1, 1), (2, 3), (4, 2), (5, 5)]

CLICK_KS_B = [(1, 4), (3, 3), (6, 1), (6, 6)]

# A few whole coordinates, so that most sets have ties.
points = st.integers(2, 25).flatmap(lambda n: arrays(np.float64, (n, 2), elements=st.integers(0, 12)))


def compute_distance_by_loops(centres, others):
    differences = []
    for x, y in centres:
        row = []
        for right, above in ((False, False), (False, True), (True, False), (True, True)):
            shares = [
                sum(((px > x) == right) and ((py > y) == above) for px, py in points) / len(points)
                for points in (centres, others)
            ]
            row.append(shares[0] - shares[1])
        row[0] -= 1 / len(centres)
        differences += row
    return max(-min(differences), max(differences) + 1 / len(centres))


def run_test_by_loops(a, b):
    d = (compute_distance_by_loops(a, b) + compute_distance_by_loops(b, a)) / 2
    n, m = len(a), len(b)
    s = np.sqrt(n * m / (n + m))
    r1, r2 = pearsonr(*np.transpose(a))[0], pearsonr(*np.transpose(b))[0]
    r = np.sqrt(max(0.0, 1 - (r1**2 + r2**2) / 2))
    lambda_ = d * s / (1 + r * (0.25 - 0.75 / s))
    return d, lambda_, kstwobign.sf(lambda_)


def has_constant_axis(points):
    return bool((np.ptp(points, axis=0) == 0).any())


def test_click_ks_worked_check():
    result = fasano_franceschini(CLICK_KS_A, CLICK_KS_B)
    assert result.d == 0.5
    assert result.lambda_ == pytest.approx(0.927371, abs=5e-7)
    assert result.p == pytest.approx(0.356064, abs=5e-7)
    assert result.passes
    assert not result.why


@given(points, points)
def test_equals_plain_loops(a, b):
    assume(not has_constant_axis(a) and not has_constant_axis(b))
    d, lambda_, p = run_test_by_loops(a.tolist(), b.tolist())
    result = fasano_franceschini(a, b)
    assert (result.d, result.lambda_, result.p) == pytest.approx((d, lambda_, p), abs=1e-6)
    assert result.passes == (p > 0.05)


@given(points, points)
def test_the_order_of_sets_and_points_does_not_matter(a, b):
    assert fasano_franceschini(a, b).d == fasano_franceschini(b, a).d == fasano_franceschini(a[::-1], b).d
    assert fasano_franceschini(a, b).p == pytest.approx(fasano_franceschini(b, a[::-1]).p, abs=1e-6, nan_ok=True)


@given(points, points)
def test_the_distance_depends_only_on_the_order_along_each_axis(a, b):
    assert fasano_franceschini(np.exp(a / 3), np.exp(b / 3)).d == fasano_franceschini(a, b).d


@given(points, points)
def test_kernel_and_numpy_agree(a, b):
    assert quadrant_gaps(a[None], b).tolist() == quadrant_gaps_numpy(a[None], b).tolist()


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(2, 12))
def test_many_draws_give_the_same_as_single_draws(seed, n, m):
    rng = np.random.default_rng(seed)
    draws, b = rng.integers(0, 5, (6, n, 2)), rng.integers(0, 5, (m, 2))
    many = fasano_franceschini_draws(draws, b)
    alone = [fasano_franceschini(one, b) for one in draws]
    assert many.d.tolist() == [one.d for one in alone]
    assert many.p == pytest.approx([one.p for one in alone], nan_ok=True, abs=1e-12)
    assert many.passes.tolist() == [one.passes for one in alone]
    assert many.undefined == sum(bool(one.why) for one in alone)


def test_sets_far_apart_fail_and_draws_of_one_distribution_mostly_pass():
    rng = np.random.default_rng(0)
    b = rng.normal(size=(48, 2))
    alike = fasano_franceschini_draws(rng.normal(size=(400, 48, 2)), b)
    assert not fasano_franceschini(b, b + 100).passes
    assert alike.passes.mean() > 0.85


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ([(1, 1), (1, 2)], CLICK_KS_B, "x of the first set is constant"),
        (CLICK_KS_A, [(0, 3), (1, 3)], "y of the second set is constant"),
        ([(2, 2)], CLICK_KS_A, "x of the first set and y of the first set is constant"),
        # The mean of three times 0.1 is not exactly 0.1: still constant.
        ([(0.1, 1), (0.1, 2), (0.1, 4)], CLICK_KS_B, "x of the first set is constant"),
    ],
)
def test_a_constant_coordinate_gives_no_p_and_a_reason(a, b, why):
    result = fasano_franceschini(a, b)
    assert np.isnan(result.p)
    assert not result.passes
    assert result.why.startswith(why)
    assert 0 <= result.d <= 1


def test_points_on_a_line_have_a_p():
    line = [(i / 7, 3 * i / 7) for i in range(9)]
    assert fasano_franceschini(line, line).p == pytest.approx(run_test_by_loops(line, line)[2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fasano_franceschini([], CLICK_KS_A), r"a: expected points of shape \(n, 2\), n at least 1"),
        (
            lambda: fasano_franceschini(CLICK_KS_A, [(1, float("nan"))]),
            r"b: expected finite coordinates, got \[1.0, nan\]",
        ),
        (
            lambda: fasano_franceschini_draws(CLICK_KS_A, CLICK_KS_B),
            r"draws: expected points of shape \(draws, n, 2\), got \(4, 2\)",
        ),
    ],
)
def test_click_ks_errors_show_the_wrong_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()
