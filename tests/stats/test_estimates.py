import math

import numpy as np
import pytest

from hardlook.stats.estimates import find_plan, summarise


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_summary_by_hand() -> None:
    plan = find_plan(5, rng=rng(), level=0.5, resampled="image")
    replicates = np.array([[1.0, math.nan], [2.0, math.inf], [4.0, 7.0], [5.0, math.nan]])
    first, second = summarise(plan, np.array([3.0, 7.0]), replicates, None)
    # Squared deviations from 3 are 4, 1, 1, 4: their sum over n - 1 is 10 / 3.
    assert first.standard_error == pytest.approx(math.sqrt(10 / 3))
    assert (first.value, first.interval.low, first.interval.high) == (3.0, 1.75, 4.25)
    assert (first.interval.n, first.interval.resampled) == (5, "image")
    assert (first.undefined, first.resamples) == (0, 4)
    assert (second.undefined, second.resamples) == (3, 4)
    assert (second.interval.low, second.interval.high) == (7.0, 7.0)
    assert math.isnan(second.standard_error)


def test_defaults() -> None:
    plan = find_plan(3, rng=rng())
    assert (plan.resamples, plan.level, plan.method, plan.resampled) == (10_000, 0.95, "percentile", "unit")


@pytest.mark.parametrize(
    ("labels", "word"),
    [
        ({"clusters": "aab"}, "cluster"),
        ({"strata": "aab"}, "unit within stratum"),
        ({"clusters": "aab", "strata": "xxy"}, "cluster within stratum"),
        ({"clusters": "aab", "resampled": "image"}, "image"),
    ],
)
def test_the_interval_names_what_was_drawn(labels: dict[str, str], word: str) -> None:
    assert find_plan(3, rng=rng(), **labels).resampled == word


def test_no_resamples_where_nothing_varies() -> None:
    assert find_plan(3, rng=rng(), clusters="aaa").resamples == 0
    assert find_plan(1, rng=rng()).resamples == 0
