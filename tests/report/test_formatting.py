from __future__ import annotations

import math

import pytest

from hardlook.report.formatting import MISSING, choose_column_decimals, choose_decimals, format_number


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([], 3),
        ([None, math.nan], 3),
        ([0.5], 3),
        ([0, 1], 3),
        ([12, 3], 0),
        ([12.5], 2),
        ([1234.5], 1),
        ([0.004], 4),
        ([0.0], 3),
    ],
)
def test_decimals_suit_the_largest_value(values, decimals):
    assert choose_decimals(values) == decimals


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, MISSING),
        (math.nan, MISSING),
        (0.12345, "0.123"),
        (-0.5, "\N{MINUS SIGN}0.500"),
        (-0.0001, "0.000"),
        (12345.6, "12,345.600"),
        (2e12, "2e+12"),
    ],
)
def test_numerals_read_like_print(value, text):
    assert format_number(value, 3) == text


def test_a_tiny_value_is_zero_beside_larger_ones_and_shown_among_its_like():
    assert format_number(1e-10, 2) == "0.00"
    assert format_number(1e-10, choose_decimals([1e-10, 3e-10])) == "1e\N{MINUS SIGN}10"


@pytest.mark.parametrize(
    ("values", "asked", "expected"),
    [
        ([0.67, 0.51, 0.54, 0.26], 3, 2),
        ([0.67, 0.51, 0.54, 0.261], 3, 3),
        ([0.67, 0.51], 3, 3),
        ([0.0, 1.0, 0.0, 1.0], 3, 3),
        ([math.nan, 0.5, 0.25, 0.75, 0.5], 3, 2),
        ([2_614_377.0, 0.5], 2, 0),
        ([12.5, 13.5, 14.5, 15.5], 1, 1),
        ([1, 2], 3, 0),
        ([55.25], None, 2),
        ([], 3, 0),
    ],
)
def test_a_column_shows_no_decimals_that_it_does_not_have(values, asked, expected):
    assert choose_column_decimals(values, asked) == expected
