"""Clicks on a shrunken frame."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import OptionError
from hardlook.models.interactive.click_seeds import check_sizes, compute_seeds, threshold_probabilities
from hardlook.models.roles import Clicks

CLICKS = st.lists(st.tuples(st.integers(-3, 33), st.integers(-3, 23), st.booleans()), min_size=1, max_size=5)


def prompt(*clicks):
    return Clicks(np.array([click[:2] for click in clicks], np.float32), np.array([click[2] for click in clicks]))


@given(CLICKS, st.sampled_from([(20, 30), (10, 15), (7, 11)]), st.sampled_from([0.0, 0.1, 0.5]))
def test_each_cell_asks_its_nearest_click(clicks, working, radius):
    found = compute_seeds(prompt(*clicks), (20, 30), working, radius)
    for row in range(working[0]):
        for column in range(working[1]):
            best, sign = np.inf, 0
            for x, y, positive in clicks:
                cell_x = (min(max(x, 0), 29) + 0.5) * working[1] / 30 - 0.5
                cell_y = (min(max(y, 0), 19) + 0.5) * working[0] / 20 - 0.5
                away = (row - cell_y) ** 2 + (column - cell_x) ** 2
                if away <= best:
                    best, sign = away, 1 if positive else -1
            assert found.squared[row, column] == pytest.approx(best)
            within = best <= max(radius * max(working), 0.75) ** 2
            assert (found.side[row, column], found.seed[row, column]) == (sign, sign if within else 0)


@given(CLICKS)
def test_the_last_click_always_has_a_seed(clicks):
    signs = np.unique(compute_seeds(prompt(*clicks), (20, 30), (8, 12), 0.0).seed)
    assert (1 if clicks[-1][2] else -1) in signs


def test_clicks_outside_are_brought_in():
    rows, columns = prompt((-4, 99, True), (2.6, 0.4, False)).pixels((5, 6))
    assert (rows.tolist(), columns.tolist()) == ([4, 0], [0, 3])


def test_clicked_pixels_end_on_their_side():
    chances = np.zeros((3, 3), np.float32)
    mask = threshold_probabilities(chances, prompt((0, 0, True), (1, 1, True), (1, 1, False)), (3, 3))
    assert np.argwhere(mask).tolist() == [[0, 0]] and not chances.any()


def test_sizes_that_cannot_be():
    with pytest.raises(OptionError, match="shows nothing"):
        check_sizes(7, 0.02)
    with pytest.raises(OptionError, match="no share"):
        check_sizes(8, 1.5)
