from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.report.charts.drawing import LinearScale, fit_scale, space_apart, text_width, truncate_text


@given(st.lists(st.floats(0, 100), max_size=7))
def test_spread_places_are_apart_inside_and_in_order(places):
    settled = space_apart(places, gap=12, low=0, high=100)
    ordered = sorted(settled)
    assert all(b - a >= 12 - 1e-6 for a, b in pairwise(ordered))
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in settled)
    for one, first in enumerate(places):
        for other, second in enumerate(places):
            assert not first < second or settled[one] < settled[other]


@given(st.lists(st.integers(0, 7), max_size=8, unique=True))
def test_places_that_are_apart_stay(indices):
    places = [13.0 * index for index in indices]
    assert space_apart(places, gap=13, low=0, high=100) == places


@given(st.text(max_size=60), st.floats(20, 300))
def test_shortened_texts_fit_and_begin_alike(text, room):
    cut = truncate_text(text, 12, room)
    assert text_width(cut, 12) <= room
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))


numbers = st.floats(-1e8, 1e8, allow_nan=False)


@given(st.lists(numbers, min_size=1, max_size=20), st.integers(1, 10), st.booleans())
def test_every_value_and_every_tick_lies_on_the_scale(values, ticks, tight):
    scale = fit_scale(values, start=0, stop=100, ticks=ticks, tight=tight)
    assert scale.low < scale.high
    slack = 1e-9 * max(1.0, abs(scale.low), abs(scale.high))
    assert all(scale.low - slack <= value <= scale.high + slack for value in values)
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)
    assert len(scale.ticks) <= 2 * ticks + 4


@given(st.lists(numbers, min_size=2, max_size=5, unique=True))
def test_ticks_are_equally_spaced_and_their_texts_differ(values):
    scale = fit_scale(values, start=0, stop=1)
    steps = [b - a for a, b in pairwise(scale.ticks)]
    assert all(math.isclose(step, steps[0], rel_tol=1e-6) for step in steps)


def test_tick_texts_share_their_decimals():
    assert LinearScale(0, 1, 0, 1, (0.0, 0.25, 0.5)).tick_texts() == ["0.00", "0.25", "0.50"]
    assert LinearScale(-1, 1, 0, 1, (-1.0, 0.0)).tick_texts() == ["\N{MINUS SIGN}1", "0"]


@pytest.mark.parametrize("values", [[], [math.nan], [None], [math.inf, -math.inf]])
def test_without_a_value_the_scale_is_the_unit_range(values):
    scale = fit_scale(values, start=0, stop=10)
    assert (scale.low, scale.high) == (0, 1)


def test_values_outside_stay_on_the_edge():
    scale = LinearScale(0, 1, 10, 20)
    assert (scale.at(-5), scale.at(0.5), scale.at(7)) == (10, 15, 20)


@pytest.mark.parametrize("values", [[1e-9, 3e-9], [1e12, -3e11], [123456.5, 123456.75], [0.30001, 0.30002]])
def test_tick_texts_of_extreme_values_differ_from_each_other(values):
    texts = fit_scale(values, start=0, stop=1).tick_texts()
    assert len(set(texts)) == len(texts)
