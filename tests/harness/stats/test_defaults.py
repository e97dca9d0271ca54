"""Levels, powers and numbers of swaps that hold unless a caller says otherwise, as docs/statistics.md has them."""

import inspect

import pytest

from hardlook.harness.stats import association, intervals, paired, ranking


def defaults(function):
    given = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in given if one.default is not inspect.Parameter.empty}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (paired.permutation_test, {"swaps": 9_999}),
        (paired.permutation_test_mean, {"swaps": 9_999}),
        (intervals.t_interval, {"level": 0.95, "resampled": "unit"}),
        (ranking.significant_pairs, {"alpha": 0.05}),
        (ranking.units_needed, {"alpha": 0.05, "power": 0.8}),
        (ranking.detectable_difference, {"alpha": 0.05, "power": 0.8}),
        (ranking.competition_ranks, {"tolerance": 0.0, "higher_is_better": True}),
        (association.mutual_information, {"k": 3}),
        (association.mutual_information_interval, {"k": 3, "halves": 200, "level": 0.95}),
    ],
)
def test_defaults_are_those_of_the_page(function, expected):
    assert defaults(function).items() >= expected.items()


def test_up_to_fourteen_clusters_are_swapped_in_every_way():
    assert paired.is_exact(14) and not paired.is_exact(15)
