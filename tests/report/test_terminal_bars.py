from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from hardlook.contract.scorecard import Score
from hardlook.report.terminal_bars import interval_bar, range_of, ranges_by_name, room_for_bars, strip, with_ends

from . import samples

numbers = st.floats(-1e6, 1e6)


def test_the_bar_marks_value_and_interval_on_its_range():
    bar = interval_bar(samples.score("a", 0.5, 0.25), 0, 1, width=21)
    assert bar.index("●") == 10 and bar.count("─") == 10 and len(bar) == 21
    assert interval_bar(Score("a", float("nan"), 0), 0, 1, width=5) == "·····"
    assert interval_bar(Score("a", 3.0, 1), 3, 3, width=5) == "··●··"


@given(st.lists(numbers | st.just(math.nan)))
def test_a_range_holds_all_its_numbers_and_zero(values):
    span = range_of(values)
    assert span.low <= 0 <= span.high
    assert span.low < span.high
    slack = 1e-6 * (span.high - span.low)
    assert all(span.low - slack <= value <= span.high + slack for value in values if not math.isnan(value))


@given(st.lists(st.floats(0, 1)))
def test_shares_have_the_range_zero_to_one(values):
    assert (range_of(values).left, range_of(values).right) == ("0", "1")


@given(st.lists(st.floats(0, 1), min_size=1), st.integers(1, 40))
def test_a_strip_has_a_mark_at_the_place_of_each_value(values, width):
    drawn = strip(values, 0, 1, width)
    assert len(drawn) == width
    assert {index for index, mark in enumerate(drawn) if mark == "•"} == {round(v * (width - 1)) for v in values}


def test_ranges_go_by_name_with_the_intervals_of_what_has_a_bar():
    card = [samples.score("clicks", 3.0, 4.0), Score("miou", 0.5, 3)]
    ranges = ranges_by_name(card, [Score("miou", 0.9, 1), Score("gap", -0.2, 1)])
    assert (ranges["clicks"].low, ranges["clicks"].high) == (-5, 10)
    assert (ranges["miou"].low, ranges["miou"].high) == (0, 1)
    assert ranges["gap"].left == "−0.2"  # noqa: RUF001


def test_bars_get_what_is_left_and_none_where_that_is_too_little():
    ranges = [range_of([0.5]), range_of([150.0])]
    assert room_for_bars(60, 40, ranges) == 14
    assert room_for_bars(200, 40, ranges) == 24
    assert room_for_bars(60, 50, ranges) == 0
    assert len(set(map(len, with_ends(["●··", "··●"], [ranges[0], ranges[0]])))) == 1
