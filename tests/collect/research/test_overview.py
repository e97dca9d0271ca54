"""Answers per hour are those of a literal count, and the chart has a text alternative."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hardlook.collect.research.overview import count_by_hour, draw_hours


@given(st.lists(st.integers(0, 400_000)), st.integers(400_000, 500_000))
def test_hours_are_those_of_a_literal_count(received, now):
    counts = count_by_hour(np.array(received, float), float(now), hours=48)
    for hour in range(48):
        low, high = now - 3600 * (48 - hour), now - 3600 * (47 - hour)
        inside = [time for time in received if low <= time < high or (hour == 47 and time == high)]
        assert counts[hour] == len(inside)


def test_a_clock_ahead_counts_as_now():
    assert count_by_hour(np.array([7300.0]), now=7200.0, hours=2).tolist() == [0, 1]


def test_the_chart_has_a_text_alternative():
    drawn = draw_hours(np.array([0, 3, 1]), key="k", width=300)
    assert "4 answers in the last 3 hours, 1 in the last hour" in drawn
    assert 'role="img"' in drawn
    assert draw_hours(np.zeros(3, int), key="k", width=300) == ""
