import math

import numpy as np
import pytest

from hardlook.stats.finite import check_probability, finite_rows, finite_vector


def test_values_pass_unchanged_as_float64() -> None:
    vector = finite_vector([1, True, 2.5], "scores")
    assert vector.tolist() == [1.0, 1.0, 2.5]
    assert vector.dtype == np.float64
    assert finite_rows(np.arange(6).reshape(3, 2), "sums").tolist() == [[0, 1], [2, 3], [4, 5]]


def test_what_is_not_finite_is_counted_under_its_name() -> None:
    with pytest.raises(ValueError, match="scores: 3 of 4 values are NaN or infinite; leave those units out"):
        finite_vector([math.nan, 1, math.inf, -math.inf], "scores")
    with pytest.raises(ValueError, match="sums: 1 of 4 values"):
        finite_rows([[1, 2], [3, math.nan]], "sums")


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"scores: expected shape \(n,\), got \(\)"):
        finite_vector(1.0, "scores")
    with pytest.raises(ValueError, match=r"sums: expected shape \(n_units, n_columns\), got \(3,\)"):
        finite_rows([1, 2, 3], "sums")


@pytest.mark.parametrize("value", [0, 1, 95, -0.1, math.nan])
def test_a_probability_lies_strictly_between_0_and_1(value: float) -> None:
    check_probability(0.5, "level")
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1"):
        check_probability(value, "level")
