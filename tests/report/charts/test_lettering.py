from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hardlook.report.charts.lettering import shorten, spread, text_width


@given(st.lists(st.floats(0, 100), max_size=7))
def test_spread_places_are_apart_inside_and_in_order(places):
    settled = spread(places, gap=12, low=0, high=100)
    ordered = sorted(settled)
    assert all(b - a >= 12 - 1e-6 for a, b in pairwise(ordered))
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in settled)
    for one, first in enumerate(places):
        for other, second in enumerate(places):
            assert not first < second or settled[one] < settled[other]


@given(st.lists(st.integers(0, 7), max_size=8, unique=True))
def test_places_that_are_apart_stay(indices):
    places = [13.0 * index for index in indices]
    assert spread(places, gap=13, low=0, high=100) == places


@given(st.text(max_size=60), st.floats(20, 300))
def test_shortened_texts_fit_and_begin_alike(text, room):
    cut = shorten(text, 12, room)
    assert text_width(cut, 12) <= room
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
