"""Accuracy on right-or-wrong units: the permutation test is the exact sign test on the units where models disagree."""

import numpy as np
import pytest
from compared_runs import hits_run
from scipy.stats import binomtest

from hardlook.report.compare.comparison import compare_runs


@pytest.mark.parametrize(("first_only", "second_only", "agree"), [(9, 2, 0), (8, 1, 5), (5, 5, 2), (3, 0, 4)])
def test_few_units_give_the_sign_test_exactly(first_only, second_only, agree):
    a = [1] * first_only + [0] * second_only + [1] * agree
    b = [0] * first_only + [1] * second_only + [1] * agree
    if len(a) > 14:
        a, b = a[:14], b[:14]
    discordant = np.array(a) != np.array(b)
    wins = int(np.array(a)[discordant].sum())
    (difference,) = compare_runs([hits_run(a, "ant"), hits_run(b, "bee")]).headline
    assert difference.p_value == pytest.approx(binomtest(wins, int(discordant.sum())).pvalue, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_many_units_give_it_within_monte_carlo_error(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random(120) < 0.75, rng.random(120) < 0.68
    expected = binomtest(int((a & ~b).sum()), int((a != b).sum())).pvalue
    (difference,) = compare_runs([hits_run(a, "ant"), hits_run(b, "bee")], swaps=9_999).headline
    # Four standard errors of a share of 9,999 swaps.
    assert difference.p_value == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 9_999) + 2e-4)
