"""What the averages hide: which slices differ from the rest of their kind beyond chance, and where data cannot tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.harness.scorecard import Scorecard
from hardlook.harness.verdicts import (
    CANNOT_TELL,
    MIN_CLUSTERS,
    SliceTest,
    compare_slices,
    count_clusters,
    describe_need,
    list_slice_kinds,
    name_several,
    rate_need,
)
from hardlook.report.formatting import choose_decimals, format_interval, format_number
from hardlook.report.score_display import choose_score_decimals, get_bounds


@dataclass(frozen=True)
class SliceStatement:
    """A score over one kind of slice: its title, the kind, and a statement; `found` where some slice differs."""

    name: str
    by: str
    text: str
    found: bool


def describe_slices(
    scorecard: Scorecard, titles: Mapping[str, str] | None = None, most: int = 4
) -> list[SliceStatement]:
    """A statement on each kind of slice, from its first score; kinds with a slice that differs come first.

    >>> from hardlook.harness.scorecard import Score
    >>> from hardlook.harness.stats.intervals import Interval
    >>> def score(value, name):
    ...     interval = Interval(value - 0.1, value + 0.1, 0.95, "percentile", 40, "image")
    ...     return Score("iou", value, 40, interval, {"class": name})
    >>> card = Scorecard("b", "1", "m", (score(0.2, "cat"), score(0.8, "dog"), score(0.5, "cow")))
    >>> describe_slices(card)[0].text
    'from 0.200 (0.100 to 0.300) for cat to 0.800 (0.700 to 0.900) for dog'
    """
    kinds = list_slice_kinds(scorecard)
    tested = compare_slices([scores for _, scores in kinds])
    statements = [
        SliceStatement(
            (titles or {}).get(scores[0].name) or scores[0].name, " and ".join(keys), *_describe(keys, tests)
        )
        for (keys, scores), tests in zip(kinds, tested, strict=True)
    ]
    return sorted(statements, key=lambda statement: not statement.found)[:most]


def _describe(keys: Sequence[str], tests: Sequence[SliceTest]) -> tuple[str, bool]:
    differs = [test for test in tests if test.differs]
    below = min((test for test in differs if test.score.value < test.rest), key=_get_value, default=None)
    above = max((test for test in differs if test.score.value > test.rest), key=_get_value, default=None)
    made = [test for test in tests if not math.isnan(test.adjusted)]
    thin = f"; {len(tests) - len(made)} more have too few" if made and len(made) < len(tests) else ""
    if below and above:
        decimals = min(choose_score_decimals(test.score) for test in (below, above))
        ends = [_describe_end(test, made, keys, decimals) for test in (below, above)]
        return f"from {ends[0]} to {ends[1]}", True
    if one := below or above:
        decimals = choose_score_decimals(one.score)
        rest = f"{format_number(one.rest, decimals)} in the mean of the other {len(made) - 1}"
        return f"{_describe_end(one, made, keys, decimals)}, {rest}", True
    values = [test.score.value for test in tests]
    if math.isclose(min(values), max(values), rel_tol=1e-9, abs_tol=1e-12):
        # Sums of equal numbers differ in their last bits: that is no difference to tell with more images.
        return f"{format_number(values[0], choose_score_decimals(tests[0].score))} in all {len(tests)}", False
    return _describe_unclear(keys, tests, made) + thin, False


def _describe_unclear(keys: Sequence[str], tests: Sequence[SliceTest], made: Sequence[SliceTest]) -> str:
    """The sentence that these data cannot tell, and how many clusters it would take."""
    if len(made) < 2:
        largest = max(tests, key=lambda test: count_clusters(test.score)[0])
        clusters, resampled = count_clusters(largest.score)
        several = name_several(resampled)
        few = f"{len(made)} of {len(tests)} slices {'has' if len(made) == 1 else 'have'} {MIN_CLUSTERS} {several}"
        return f"{CANNOT_TELL.lower()}: {few} and an interval; the largest has {clusters}"
    furthest = min(made, key=rate_need)
    clusters, resampled = count_clusters(furthest.score)
    gap = furthest.score.value - furthest.rest
    where = ", ".join(furthest.score.slice[key] for key in keys)
    size = format_number(gap, choose_decimals([gap, furthest.rest], counts=False))
    text = f"{CANNOT_TELL.lower()}: none of {len(made)} differs from the rest beyond chance"
    if not math.isfinite(furthest.needed):
        return text
    need = describe_need(max(furthest.needed, clusters + 1), resampled)
    return f"{text}. The clearest difference, {size} for {where}, would take about {need} there, and it has {clusters}"


def _describe_end(test: SliceTest, made: Sequence[SliceTest], keys: Sequence[str], decimals: int) -> str:
    """A value and its slice; of slices with the same value the first is named and the others are counted."""
    same = [other for other in made if other.score.value == test.score.value]
    where = ", ".join(same[0].score.slice[key] for key in keys)
    more = f" and {len(same) - 1} more" if len(same) > 1 else ""
    bounds = format_interval(*get_bounds(same[0].score), decimals)
    return f"{format_number(test.score.value, decimals)} ({bounds}) for {where}{more}"


def _get_value(test: SliceTest) -> float:
    return test.score.value
