import builtins
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kstwobign, pearsonr

from hardlook.metrics import click_ks
from hardlook.metrics.click_ks import fasano_franceschini, fasano_franceschini_draws, gaps_plainly
from hardlook.metrics.click_ks_kernel import quadrant_gaps

A = [(1, 1), (2, 3), (4, 2), (5, 5)]
B = [(1, 4), (3, 3), (6, 1), (6, 6)]

# A few whole coordinates, so that most sets have ties.
points = st.integers(2, 25).flatmap(lambda n: arrays(np.float64, (n, 2), elements=st.integers(0, 12)))


def literal_distance(centres, others):
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


def literal_test(a, b):
    d = (literal_distance(a, b) + literal_distance(b, a)) / 2
    n, m = len(a), len(b)
    s = np.sqrt(n * m / (n + m))
    r1, r2 = pearsonr(*np.transpose(a))[0], pearsonr(*np.transpose(b))[0]
    r = np.sqrt(max(0.0, 1 - (r1**2 + r2**2) / 2))
    lambda_ = d * s / (1 + r * (0.25 - 0.75 / s))
    return d, lambda_, kstwobign.sf(lambda_)


def constant(points):
    return bool((np.ptp(points, axis=0) == 0).any())


def test_worked_check():
    result = fasano_franceschini(A, B)
    assert result.d == 0.5
    assert result.lambda_ == pytest.approx(0.927371, abs=5e-7)
    assert result.p == pytest.approx(0.356064, abs=5e-7)
    assert result.passes
    assert not result.why


@given(points, points)
def test_equals_the_literal_loop(a, b):
    assume(not constant(a) and not constant(b))
    d, lambda_, p = literal_test(a.tolist(), b.tolist())
    result = fasano_franceschini(a, b)
    assert (result.d, result.lambda_, result.p) == pytest.approx((d, lambda_, p), abs=1e-6)
    assert result.passes == (p > 0.05)


@given(points, points)
def test_the_order_of_sets_and_points_is_all_one(a, b):
    assert fasano_franceschini(a, b).d == fasano_franceschini(b, a).d == fasano_franceschini(a[::-1], b).d
    assert fasano_franceschini(a, b).p == pytest.approx(fasano_franceschini(b, a[::-1]).p, abs=1e-6, nan_ok=True)


@given(points, points)
def test_the_distance_sees_only_the_order_along_each_axis(a, b):
    assert fasano_franceschini(np.exp(a / 3), np.exp(b / 3)).d == fasano_franceschini(a, b).d


@given(points, points)
def test_kernel_and_plain_count_alike(a, b):
    assert quadrant_gaps(a[None], b).tolist() == gaps_plainly(a[None], b).tolist()


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(2, 12))
def test_many_draws_give_what_each_gives(seed, n, m):
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
        ([(1, 1), (1, 2)], B, "x of the first set is constant"),
        (A, [(0, 3), (1, 3)], "y of the second set is constant"),
        ([(2, 2)], A, "x of the first set and y of the first set is constant"),
        # A coordinate whose mean is not exactly itself is as constant as any.
        ([(0.1, 1), (0.1, 2), (0.1, 4)], B, "x of the first set is constant"),
    ],
)
def test_a_constant_coordinate_has_no_p_and_says_so(a, b, why):
    result = fasano_franceschini(a, b)
    assert np.isnan(result.p)
    assert not result.passes
    assert result.why.startswith(why)
    assert 0 <= result.d <= 1


def test_points_on_a_line_have_a_p():
    line = [(i / 7, 3 * i / 7) for i in range(9)]
    assert fasano_franceschini(line, line).p == pytest.approx(literal_test(line, line)[2])


def test_the_plain_version_counts_where_numba_is_absent(monkeypatch):
    imports = builtins.__import__

    def without_numba(name, *rest):
        if name == "numba":
            raise ImportError(name)
        return imports(name, *rest)

    for name in ("numba", "hardlook.compiled", "hardlook.metrics.click_ks_kernel"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(builtins, "__import__", without_numba)
    assert click_ks._fastest_gaps.__wrapped__() is gaps_plainly


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fasano_franceschini([], A), r"a: expected points of shape \(n, 2\), n at least 1"),
        (lambda: fasano_franceschini(A, [(1, float("nan"))]), r"b: expected finite coordinates, got \[1.0, nan\]"),
        (lambda: fasano_franceschini_draws(A, B), r"draws: expected points of shape \(draws, n, 2\), got \(4, 2\)"),
    ],
)
def test_errors_say_what_came(call, message):
    with pytest.raises(ValueError, match=message):
        call()
