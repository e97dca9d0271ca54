"""Statistics of scores: intervals, paired comparisons, rankings, and how many units they need.

Everything here takes numpy arrays and returns numbers or frozen records. Randomness comes from the generator
that the caller passes. scipy loads at the first call that needs it.

>>> import numpy as np
>>> from hardlook.stats import bootstrap_mean
>>> scores, images = [0.9, 0.7, 0.4, 0.8], ["a", "a", "b", "c"]
>>> mean = bootstrap_mean(scores, rng=np.random.default_rng(0), clusters=images, resampled="image")
>>> round(mean.value, 6), mean.interval.n
(0.7, 3)
"""

from hardlook.stats.bootstrap import Statistic, bootstrap_mean, bootstrap_score, bootstrap_scores, ratio
from hardlook.stats.bounds import Method
from hardlook.stats.clusters import Labels
from hardlook.stats.correlation import average_ranks, pearson, spearman
from hardlook.stats.estimates import Resampling
from hardlook.stats.index_bootstrap import IndexStatistic, bootstrap_indices
from hardlook.stats.intervals import Estimate, Interval, t_interval
from hardlook.stats.multiplicity import holm, significant_pairs
from hardlook.stats.mutual_information import mutual_information, mutual_information_interval
from hardlook.stats.paired import paired_bootstrap, paired_bootstrap_scores
from hardlook.stats.permutation import PermutationTest, permutation_test, permutation_test_mean
from hardlook.stats.power import detectable_difference, units_needed, units_needed_for
from hardlook.stats.ranking import Standing, competition_ranks, rank_models

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
