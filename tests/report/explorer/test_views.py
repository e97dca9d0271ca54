"""The fields of a record on its page: lists of whole numbers have no decimals."""

import pytest

from hardlook.report.explorer.views import _format_value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([194.0, 220.0, 19.0], "194, 220, 19"),
        ([0.5, 1.0], "0.500, 1.000"),
        ([1, 20_000], "1, 20,000"),
        ([True, False], "yes, no"),
        ([], "\N{EN DASH}"),
        ("cat\ndog", "cat, dog"),
        (0.25, "0.250"),
    ],
)
def test_values_are_written_for_readers(value, expected):
    assert _format_value(value) == expected


def test_a_long_list_is_cut_and_counted():
    assert _format_value([7.0] * 500).endswith("7 and 460 more")
