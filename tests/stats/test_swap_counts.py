import numpy as np
import pytest

from hardlook.stats import permutation_test_mean
from hardlook.stats.swap_counts import SwapCounts, all_swaps, is_exact, random_swaps, swaps_of, swaps_tried


def test_several_scores_count_as_each_alone() -> None:
    rng = np.random.default_rng(0)
    gains = rng.normal(0.3, 1, (9, 3))
    counts = SwapCounts(gains.sum(0), np.abs(gains).sum(0))
    for mask in all_swaps(9):
        counts.add(gains.sum(0) - 2 * mask @ gains)
    for column, found in enumerate(counts.p_values(exact=True)):
        alone = permutation_test_mean(gains[:, column], np.zeros(9), rng=rng)
        assert found == alone.p_value


def test_every_swap_of_few_clusters_and_random_ones_of_many() -> None:
    rng = np.random.default_rng(0)
    (block,) = swaps_of(3, 50, rng)
    assert len({tuple(row) for row in block}) == 8 == swaps_tried(3, 50)
    many = np.concatenate(list(swaps_of(20, 50, rng)))
    assert many.shape == (50, 20) and swaps_tried(20, 50) == 50
    assert (is_exact(14), is_exact(15)) == (True, False)
    with pytest.raises(ValueError, match="swaps: expected at least 1, got 0"):
        swaps_of(3, 0, rng)


def test_random_swaps_are_fair_and_do_not_depend_on_blocks() -> None:
    whole = np.concatenate(list(random_swaps(30, 400, np.random.default_rng(1))))
    assert set(np.unique(whole)) == {0.0, 1.0}
    # 12,000 fair coins: the mean has a standard error of 0.0046.
    assert abs(whole.mean() - 0.5) < 0.02
    assert np.array_equal(whole[:7], np.concatenate(list(random_swaps(30, 7, np.random.default_rng(1)))))


def test_no_swap_tried_gives_one_and_undefined_differences_give_nothing() -> None:
    counts = SwapCounts(np.array([0.1, np.nan, np.inf]), np.array([1.0, np.nan, np.inf]))
    assert np.array_equal(counts.p_values(exact=False), [1.0, np.nan, np.nan], equal_nan=True)
