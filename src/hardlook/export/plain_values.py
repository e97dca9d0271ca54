"""Values as JSON can hold them: exact numbers, null where a number is not finite."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def plain(value: Any) -> Any:
    """The value in dicts, lists, texts, numbers, booleans and None; NaN and infinities become None.

    Arrays and numbers of numpy become Python's own of the same values. Anything else is written as text.

    >>> import numpy as np
    >>> plain({"miou": np.float64(0.1), "range": (1, math.inf)})
    {'miou': 0.1, 'range': [1, None]}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [plain(inner) for inner in value]
    return str(value)


def json_text(value: Any, indent: int | None = 1) -> str:
    """The value as JSON of today's standard, which knows no NaN.

    >>> json_text({"spearman": math.nan}, indent=None)
    '{"spearman": null}'
    """
    return json.dumps(plain(value), indent=indent, allow_nan=False)
