"""Statistics of scores: intervals, paired comparisons, rankings, and how many units they need.

Everything here takes numpy arrays and returns numbers or frozen records. Randomness comes from the generator
that the caller passes. scipy is imported at the first call that needs it.

>>> import numpy as np
>>> from hardlook.harness.stats import bootstrap_mean
>>> scores, images = [0.9, 0.7, 0.4, 0.8], ["a", "a", "b", "c"]
>>> mean = bootstrap_mean(scores, rng=np.random.default_rng(0), clusters=images, resampled="image")
>>> round(mean.value, 6), mean.interval.n
(0.7, 3)
"""

from __future__ import annotations

from hardlook.harness.stats.association import (
    average_ranks,
    mutual_information,
    mutual_information_interval,
    pearson,
    spearman,
)
from hardlook.harness.stats.bootstrap import (
    IndexStatistic,
    Statistic,
    bootstrap_indices,
    bootstrap_mean,
    bootstrap_score,
    bootstrap_scores,
    ratio,
)
from hardlook.harness.stats.intervals import Estimate, Interval, Method, Resampling, t_interval
from hardlook.harness.stats.paired import (
    PermutationTest,
    paired_bootstrap,
    paired_bootstrap_scores,
    permutation_test,
    permutation_test_mean,
)
from hardlook.harness.stats.ranking import (
    Standing,
    competition_ranks,
    detectable_difference,
    holm,
    rank_models,
    significant_pairs,
    units_needed,
    units_needed_for,
)
from hardlook.harness.stats.resampling import Labels

__all__ = [
    "Estimate",
    "IndexStatistic",
    "Interval",
    "Labels",
    "Method",
    "PermutationTest",
    "Resampling",
    "Standing",
    "Statistic",
    "average_ranks",
    "bootstrap_indices",
    "bootstrap_mean",
    "bootstrap_score",
    "bootstrap_scores",
    "competition_ranks",
    "detectable_difference",
    "holm",
    "mutual_information",
    "mutual_information_interval",
    "paired_bootstrap",
    "paired_bootstrap_scores",
    "pearson",
    "permutation_test",
    "permutation_test_mean",
    "rank_models",
    "ratio",
    "significant_pairs",
    "spearman",
    "t_interval",
    "units_needed",
    "units_needed_for",
]
