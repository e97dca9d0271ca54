import json
import math
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hardlook.report.json_values import dump_json, to_json_value

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()

values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)


def strict(text):
    """Parse JSON as the standard has it."""

    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def literal(value):
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return None
    if isinstance(value, list):
        return [literal(inner) for inner in value]
    return {key: literal(inner) for key, inner in value.items()} if isinstance(value, dict) else value


@given(values)
def test_everything_finite_comes_back_exactly_and_the_rest_is_null(value):
    assert strict(dump_json(value)) == literal(value)


def test_numbers_of_numpy_paths_and_bytes_are_written():
    document = {"a": np.float32(0.5), "b": np.arange(3), "c": (np.int64(7), np.nan), "d": Path("x"), 1: np.bool_(True)}
    assert to_json_value(document) == {"a": 0.5, "b": [0, 1, 2], "c": [7, None], "d": "x", "1": True}
    assert isinstance(to_json_value(document)["1"], bool)
