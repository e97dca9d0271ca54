"""Conversion to JSON: exact numbers, null where a number is not finite."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def to_json_value(value: Any) -> Any:
    """The value as dicts, lists, texts, numbers, booleans and None; NaN and infinities become None.

    Arrays and numbers of numpy become lists and numbers of Python. Anything else becomes a text.

    >>> import numpy as np
    >>> to_json_value({"miou": np.float64(0.1), "range": (1, math.inf)})
    {'miou': 0.1, 'range': [1, None]}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json_value(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [to_json_value(inner) for inner in value]
    return str(value)


def dump_json(value: Any, indent: int | None = 1) -> str:
    """The value as standard JSON, which has no NaN.

    >>> dump_json({"spearman": math.nan}, indent=None)
    '{"spearman": null}'
    """
    return json.dumps(to_json_value(value), indent=indent, allow_nan=False)
