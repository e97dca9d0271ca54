from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.report.charts.scales import LinearScale, fit

numbers = st.floats(-1e8, 1e8, allow_nan=False)


@given(st.lists(numbers, min_size=1, max_size=20), st.integers(1, 10), st.booleans())
def test_every_value_and_every_tick_lies_on_the_scale(values, ticks, tight):
    scale = fit(values, start=0, stop=100, ticks=ticks, tight=tight)
    assert scale.low < scale.high
    slack = 1e-9 * max(1.0, abs(scale.low), abs(scale.high))
    assert all(scale.low - slack <= value <= scale.high + slack for value in values)
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)
    assert len(scale.ticks) <= 2 * ticks + 4


@given(st.lists(numbers, min_size=2, max_size=5, unique=True))
def test_ticks_are_equally_spaced_and_their_texts_differ(values):
    scale = fit(values, start=0, stop=1)
    steps = [b - a for a, b in pairwise(scale.ticks)]
    assert all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps)


def test_tick_texts_share_their_decimals():
    assert LinearScale(0, 1, 0, 1, (0.0, 0.25, 0.5)).tick_texts() == ["0.00", "0.25", "0.50"]
    assert LinearScale(-1, 1, 0, 1, (-1.0, 0.0)).tick_texts() == ["\N{MINUS SIGN}1", "0"]


@pytest.mark.parametrize("values", [[], [math.nan], [None], [math.inf, -math.inf]])
def test_without_a_value_the_scale_is_the_unit_range(values):
    scale = fit(values, start=0, stop=10)
    assert (scale.low, scale.high) == (0, 1)


def test_values_outside_stay_on_the_edge():
    scale = LinearScale(0, 1, 10, 20)
    assert (scale.at(-5), scale.at(0.5), scale.at(7)) == (10, 15, 20)


@pytest.mark.parametrize("values", [[1e-9, 3e-9], [1e12, -3e11], [123456.5, 123456.75], [0.30001, 0.30002]])
def test_tick_texts_of_extreme_values_differ_from_each_other(values):
    texts = fit(values, start=0, stop=1).tick_texts()
    assert len(set(texts)) == len(texts)
