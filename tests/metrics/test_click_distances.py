from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import wasserstein_distance_nd

from hardlook.metrics import click_distances
from hardlook.metrics.click_distances import pairwise_l1, transport_cost, wasserstein

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
def test_pairs_equal_a_loop(a, b):
    pairs = [abs(p[0] - q[0]) / 20 + abs(p[1] - q[1]) / 40 for p, q in product(a, b)]
    assert pairwise_l1(a, b, BOX) == pytest.approx(sum(pairs) / len(pairs))


def test_the_pairs_of_all_draws_together_are_the_mean_over_draws():
    rng = np.random.default_rng(0)
    draws, b = rng.uniform(0, 40, (5, 8, 2)), rng.uniform(0, 40, (11, 2))
    alone = np.mean([pairwise_l1(one, b, BOX) for one in draws])
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
def test_assignment_and_programme_agree(seed, n, m):
    # Whole costs make many best flows; the least cost is one.
    costs = np.random.default_rng(seed).integers(0, 4, (n, m)).astype(float)
    assert click_distances._programme_cost(costs) == pytest.approx(transport_cost(costs), abs=1e-12)


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pairwise_l1(A, B, (0, 4)), "box: expected a width and a height above 0, got 0 and 4"),
        (lambda: wasserstein(A, B, (2, float("nan"))), "got 2 and nan"),
        (lambda: wasserstein(A, B, BOX, "ours"), "released or paper, got 'ours'"),
        (lambda: wasserstein([1, 2], B, BOX), r"a: expected points of shape \(n, 2\)"),
    ],
)
def test_errors_say_what_came(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_solver_that_gives_up_is_an_error_and_not_a_number(monkeypatch):
    import scipy.optimize

    class GaveUp:
        success, message, x = False, "time limit", None

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: GaveUp())
    with pytest.raises(RuntimeError, match="transport of 47 to 48 points: no whole flow found"):
        wasserstein(np.arange(94).reshape(47, 2), np.arange(96).reshape(48, 2), BOX)
