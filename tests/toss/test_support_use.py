"""Whether the support is used: over the same query images, with intervals, and only where the data can tell."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from toss_records import frame_of, row, scorecard

from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.harness.stats import Estimate
from hardlook.harness.stats.intervals import Interval
from hardlook.toss.benchmark import TOSS
from hardlook.toss.options import TossOptions
from hardlook.toss.support_use import describe_support_use, judge_support_use, measure_support_use


def list_pairs(found):
    """Pairs of `cat` by level: `found` is {level: {query: per cent of the 100 true pixels that are found}}."""
    cells = [(level, query, hits) for level, queries in found.items() for query, hits in queries.items()]
    return frame_of(
        [row(place, 2, 0, level, "cat", query, [hits, 100 - hits, 0, 900, 0, 0]) for place, (level, query, hits) in
         enumerate(cells)]
    )  # fmt: skip


def share(value, half, n=40):
    bounds = Interval(value - half, value + half, 0.95, "percentile", n, "query image")
    return Estimate(value, bounds, half / 2, 1000, 0)


EASY = {f"easy {place}": 90 for place in range(20)}
HARD = {f"hard {place}": 30 for place in range(20)}


def test_a_model_that_never_sees_its_support_ignores_it_though_levels_have_other_queries():
    """The right supports have easy and hard queries, the wrong ones hard ones: a ratio of levels is .50."""
    records = list_pairs({"L2": EASY, "L3": HARD, "L4": HARD, "L5": HARD, "L6": HARD})
    shares = measure_support_use(records, void_ignored=True)
    assert {level: one.value for level, one in shares.items()} == {"L4": 1.0, "L5": 1.0, "L6": 1.0}
    assert {one.interval.n for one in shares.values()} == {20}
    text = describe_support_use(records, scorecard(records))
    assert "The support is all but ignored" in text and text.count("100% (") == 3 and text.count("20 images)") == 3


def test_four_pairs_say_nothing():
    few = {"a": 30, "b": 40, "c": 90, "d": 50}
    records = list_pairs({"L3": few, "L4": {name: min(2 * hits, 100) for name, hits in few.items()}})
    text = describe_support_use(records, scorecard(records))
    assert text.endswith(
        "These data cannot tell whether the support is used: there are 4 query images, and a verdict needs 10."
    )


def test_levels_without_a_common_query_are_not_compared():
    assert measure_support_use(list_pairs({"L3": EASY, "L4": HARD}), void_ignored=True) == {}
    records = list_pairs({"L3": EASY, "L4": HARD})
    assert describe_support_use(records, scorecard(records)) == ""


@pytest.mark.parametrize(("void", "expected"), [("ignored", 0.5 / 0.5), ("background", 0.5 / (50 / 150))])
def test_pixels_that_the_truth_leaves_open_count_as_the_reading_says(void, expected):
    """The right support's mask has 50 of 100 true pixels and 50 that are open, the wrong one's the true ones alone."""
    right = row(0, 2, 0, "L3", "cat", "a", [50, 50, 0, 9, 50, 0])
    records = frame_of([right, row(1, 2, 0, "L4", "cat", "a", [50, 50, 0, 9, 0, 50])])
    assert measure_support_use(records, void_ignored=void == "ignored")["L4"].value == pytest.approx(expected)
    card = replace(scorecard(records), readings=tuple(TOSS.readings(TossOptions(reading={"void": void}))))
    assert f"what is left is {100 * expected:.0f}%" in describe_support_use(records, card)


def test_nothing_found_is_undefined_and_not_ignored():
    nothing = dict.fromkeys(HARD, 0)
    records = list_pairs({"L3": nothing, "L4": nothing})
    text = describe_support_use(records, scorecard(records))
    assert "undefined (20 images)" in text and "These data cannot tell" in text


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ({"L4": share(0.9, 0.1), "L5": share(1.0, 0.0)}, "The support is all but ignored"),
        ({"L4": share(0.1, 0.1), "L5": share(0.0, 0.0)}, "The support is followed: without it"),
        ({"L4": share(0.9, 0.1), "L5": share(0.1, 0.1), "L6": share(0.0, 0.0)}, "nearly any will do"),
        ({"L4": share(0.5, 0.1), "L5": share(0.1, 0.1)}, "in part any will do"),
        ({"L4": share(0.5, 0.1), "L5": share(0.6, 0.1)}, "The support is followed in part"),
        ({"L4": share(0.8, 0.2), "L5": share(0.9, 0.2)}, "These data cannot tell whether the support is used"),
        ({"L4": share(0.7, 0.6), "L5": share(0.6, 0.6)}, "These data cannot tell whether the support is used"),
        ({"L4": share(1.68, 0.3, n=4), "L5": share(0.9, 0.1)}, "there are 4 query images"),
    ],
)
def test_a_verdict_needs_the_intervals_of_all_levels(shares, expected):
    assert expected in judge_support_use(shares)


def test_planted_models_get_the_verdict_of_their_fault():
    run = InMemoryRun("toss", {"scenes": 48, "resamples": 0})
    cases = (
        ({"saliency": 1.0, "support_blind": 1.0}, "The support is all but ignored"),
        ({"support_blind": 1.0}, "The support is followed in part"),
        ({}, "The support is followed: without it"),
    )
    for faults, expected in cases:
        records = run.records("planted-one-shot", faults)
        assert expected in describe_support_use(records, run.benchmark.score(records, run.options))


def test_one_query_image_has_a_share_without_an_interval():
    [one] = measure_support_use(list_pairs({"L3": {"a": 50}, "L4": {"a": 25}}), void_ignored=True).values()
    assert one.value == 0.5 and math.isnan(one.interval.low)
