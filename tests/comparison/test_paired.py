import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from hardlook.comparison.paired import pair_tallies, spread_of
from hardlook.comparison.swap_plan import SwapPlan
from hardlook.contract.tally import Entry, SumTally, ratio
from hardlook.errors import RunError
from hardlook.randomness import generator
from hardlook.stats import paired_bootstrap_scores, permutation_test

CLASSES = 3
counts = st.lists(st.tuples(*[st.integers(0, 9)] * 4), min_size=1, max_size=6)


def tally(sums, statistic=ratio, labels=None, names=("score",)):
    entries = tuple(
        Entry(name, len(np.asarray(labels if labels is not None else range(sums.shape[0])))) for name in names
    )
    return SumTally(entries, sums, statistic, ("test",), "image", labels)


def paired(*tallies, swaps=500, resamples=200, seed=0, level=0.95):
    return pair_tallies(tallies, plan=SwapPlan(swaps), resamples=resamples, level=level, seed=seed)


class Mixed:
    """A tally that shows nothing of its sums, so that the general way is taken."""

    def __init__(self, inner):
        self.inner = inner
        self.entries, self.key, self.resampled, self.clusters = (
            inner.entries,
            inner.key,
            inner.resampled,
            inner.clusters,
        )

    def values(self, weights=None):
        return self.inner.values(weights)

    def mixed(self, other, swaps):
        return self.inner.mixed(other.inner, swaps)


def ious(totals):
    each = totals[..., :CLASSES] / totals[..., CLASSES:]
    return np.concatenate([each, each.mean(-1, keepdims=True)], axis=-1)


def pixel_sums(rng, n=20):
    union = rng.integers(5, 50, (n, CLASSES))
    return [np.concatenate([rng.integers(0, union), union], axis=1) for _ in range(2)]


@pytest.mark.parametrize("n", [3, 8, 12])
def test_exact_p_values_of_means_are_those_of_scipy(n):
    rng = np.random.default_rng(n)
    a, b = rng.normal(0.5, 1, n), rng.normal(0, 1, n)

    def apart(x, y, axis=-1):
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    theirs = stats.permutation_test((a, b), apart, permutation_type="samples", n_resamples=np.inf)
    ones = np.ones(n)
    found = paired(tally(np.stack([a, ones], 1)), tally(np.stack([b, ones], 1)))
    assert found.p_values[0, 1][0] == pytest.approx(theirs.pvalue, rel=1e-12)
    assert found.values[0, 0] - found.values[1, 0] == pytest.approx(theirs.statistic, rel=1e-12)


def test_every_entry_agrees_with_the_test_of_one_score():
    a, b = pixel_sums(np.random.default_rng(0))
    names = ("x", "y", "z", "mean")
    found = paired(tally(a, ious, names=names), tally(b, ious, names=names), swaps=400)
    for column in range(4):
        alone = permutation_test(
            a, b, lambda totals, c=column: ious(totals)[..., c], rng=generator(0, "swaps", "test"), swaps=400
        )
        assert found.p_values[0, 1][column] == alone.p_value
        assert found.values[0, column] - found.values[1, column] == pytest.approx(alone.difference, rel=1e-12)


def test_intervals_are_those_of_the_paired_bootstrap():
    a, b = pixel_sums(np.random.default_rng(1))
    names = ("x", "y", "z", "mean")
    found = paired(tally(a, ious, names=names), tally(b, ious, names=names), resamples=300)
    error, low, high = found.spread(0, 1)
    alone = paired_bootstrap_scores(a, b, ious, rng=generator(0, "test"), resamples=300)
    assert low == pytest.approx([one.interval.low for one in alone], abs=1e-12)
    assert high == pytest.approx([one.interval.high for one in alone], abs=1e-12)
    assert error == pytest.approx([one.standard_error for one in alone], rel=1e-9)


@given(counts, st.integers(0, 3))
@settings(max_examples=40)
def test_comparing_the_other_way_round_changes_the_sign_alone(rows, seed):
    sums = np.array(rows * 4)
    a, b = tally(sums[:, :2]), tally(sums[:, 2:])
    forward, backward = paired(a, b, swaps=60, resamples=40, seed=seed), paired(b, a, swaps=60, resamples=40, seed=seed)
    assert np.array_equal(forward.p_values[0, 1], backward.p_values[0, 1], equal_nan=True)
    assert np.array_equal(forward.values, backward.values[::-1], equal_nan=True)
    (error, low, high), (other_error, other_low, other_high) = forward.spread(0, 1), backward.spread(0, 1)
    assert np.allclose(error, other_error, equal_nan=True)
    assert np.allclose(low, -other_high, equal_nan=True) and np.allclose(high, -other_low, equal_nan=True)


@given(counts)
@settings(max_examples=30)
def test_a_model_never_differs_from_itself(rows):
    sums = np.array(rows * 3)[:, :2] + [[0, 1]]
    found = paired(tally(sums), tally(sums.copy()), swaps=50, resamples=20)
    assert found.p_values[0, 1].tolist() == [1.0]
    assert found.spread(0, 1)[0].tolist() in ([0.0], [pytest.approx(np.nan, nan_ok=True)])


def test_three_models_give_the_p_values_of_each_pair_alone():
    rng = np.random.default_rng(2)
    tallies = [tally(sums, ious, names=("x", "y", "z", "mean")) for _ in range(2) for sums in pixel_sums(rng)][:3]
    together = paired(*tallies)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        alone = paired(tallies[i], tallies[j])
        assert np.array_equal(together.p_values[i, j], alone.p_values[0, 1])
        assert np.allclose(together.spread(i, j), alone.spread(0, 1))


def test_sparse_sums_and_tallies_of_any_other_make_agree_with_dense_sums():
    a, b = pixel_sums(np.random.default_rng(3))
    labels = [f"image-{place // 2}" for place in range(len(a))]
    names = ("x", "y", "z", "mean")
    dense = [tally(one, ious, labels, names) for one in (a, b)]
    thin = [tally(sparse.csr_array(one), ious, labels, names) for one in (a, b)]
    whole = paired(*dense)
    for others in (thin, [Mixed(one) for one in dense]):
        found = paired(*others)
        assert np.array_equal(found.p_values[0, 1], whole.p_values[0, 1])
        assert np.allclose(found.replicates, whole.replicates)
    assert whole.clusters == 10


def test_undefined_scores_have_no_p_value_and_undefined_swaps_count_against_a_claim():
    a, b = np.array([[1, 2, 0, 0], [0, 0, 0, 0]]), np.array([[0, 0, 0, 0], [0, 2, 0, 0]])

    def two(totals):
        return np.stack([ratio(totals[..., :2]), ratio(totals[..., 2:])], axis=-1)

    found = paired(tally(a, two, names=("one", "none")), tally(b, two, names=("one", "none")))
    # Swapping one of the two images leaves a model without any union: those two of four swaps count as reached.
    assert found.p_values[0, 1][0] == 1.0
    assert np.isnan(found.p_values[0, 1][1])


def test_spread_uses_the_defined_replicates_only():
    replicates = np.array([[1.0, 1.0, np.nan], [2.0, np.nan, np.nan], [3.0, 3.0, np.inf]])
    error, low, high = spread_of(replicates, 0.8)
    assert error[:2] == pytest.approx([1.0, np.std([1, 3], ddof=1)])
    assert (low[0], high[0]) == pytest.approx(tuple(np.quantile([1, 2, 3], [0.1, 0.9])))
    assert (low[1], high[1]) == pytest.approx(tuple(np.quantile([1, 3], [0.1, 0.9])))
    assert np.isnan([error[2], low[2], high[2]]).all()
    assert np.isnan(spread_of(np.empty((0, 2)), 0.95)).all()


def test_tallies_of_other_clusters_or_scores_are_refused():
    sums = np.ones((4, 2))
    with pytest.raises(RunError, match="do not have the same scores of the same units"):
        paired(tally(sums), tally(np.ones((3, 2))))
    with pytest.raises(RunError, match="do not have the same scores"):
        paired(tally(sums), tally(sums, names=("other",)))
    wide = SumTally(tally(sums).entries, np.ones((4, 3)), ratio, ("test",), "image")
    with pytest.raises(RunError, match=r"same columns: \(4, 2\) and \(4, 3\)"):
        paired(tally(sums), wide)
