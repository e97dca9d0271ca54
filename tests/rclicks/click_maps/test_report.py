"""The picture of clicking groups against the groups themselves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.rclicks.click_maps.report import group_numbers, group_parts
from hardlook.rclicks.clicks.groups import compute_pixel_probabilities, sort_values

VALUES = arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5]))


@given(VALUES, st.integers(2, 12), st.sampled_from(["threshold", "exact"]))
def test_a_pixel_is_painted_with_a_group_that_may_click_it(values, count, rule):
    numbers = group_numbers(values, count, rule)
    assert ((numbers == -1) == (values == 0)).all() or not values.any()
    if values.any():
        ordered = sort_values(values)
        for number in set(numbers[numbers >= 0].tolist()):
            drawn = compute_pixel_probabilities(ordered, number / count, (number + 1) / count, rule)
            assert (drawn[numbers == number] > 0).all()


@given(VALUES, st.integers(2, 12))
def test_likelier_pixels_are_in_later_groups_and_equal_ones_together(values, count):
    numbers = group_numbers(values, count, "threshold")
    for value in np.unique(values):
        assert len(set(numbers[values == value].tolist())) == 1
    assert (np.diff(numbers[np.argsort(values, kind="stable")]) >= 0).all()


def test_the_spec_groups_of_one_two_three_four():
    parts = group_parts(np.array([1.0, 2.0, 3.0, 4.0]), 10, "threshold")
    assert [part.name for part in parts] == [f"G{n}" for n in range(1, 11)]
    assert [part.pixels for part in parts] == [2, 2, 2, 2, 1, 2, 2, 1, 1, 1]
    assert parts[0].share == pytest.approx(0.5)
