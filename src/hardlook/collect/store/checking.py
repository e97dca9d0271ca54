r"""What may be written: text and numbers that both databases hold as they are, anything else refused by name.

PostgreSQL refuses a NUL and counts characters; SQLite would turn NaN into nothing. Both get the same values here.

>>> text_of("language", "de", 16)
'de'
>>> text_of("language", "d\0e", 16)
Traceback (most recent call last):
...
hardlook.collect.store.records.Refusal: language: a NUL cannot be stored
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from hardlook.collect.store.records import NewAnswer, Refusal

KEY, LANGUAGE, INVITATION, DEVICE, ID = 64, 16, 64, 8, 32
_JSON_CHARACTERS = 10_000
_MOST = 2**31 - 1


def text_of(name: str, value: object, most: int) -> str:
    """`value` as text of 1 to `most` characters that UTF-8 can hold, without NUL; else a `Refusal` bad-value."""
    if not isinstance(value, str):
        raise _bad(name, f"expected text, not {type(value).__name__}")
    if not 0 < len(value) <= most:
        raise _bad(name, f"expected 1 to {most} characters, not {len(value)}")
    if "\0" in value:
        raise _bad(name, "a NUL cannot be stored")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise _bad(name, "half a surrogate pair cannot be stored")
    return value


def storable(value: object, most: int) -> bool:
    r"""Whether `value` could be in the database at all; what could not need not be looked for.

    >>> storable("a1", 32), storable("a\0", 32), storable("a" * 33, 32)
    (True, False, False)
    """
    try:
        text_of("", value, most)
    except Refusal:
        return False
    return True


def number_of(name: str, value: object) -> float:
    """`value` as a finite float; else a `Refusal` bad-value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300 or math.isnan(value):
        raise _bad(name, "expected a finite number")
    return float(value)


def whole_of(name: str, value: object) -> int:
    """`value` as a whole number of 32 bits; else a `Refusal` bad-value."""
    if isinstance(value, bool) or not isinstance(value, int) or not -_MOST <= value <= _MOST:
        raise _bad(name, "expected a whole number of 32 bits")
    return value


def row_of(answer: NewAnswer) -> dict[str, Any]:
    """The columns of `answers` that an answer itself fills, checked.

    >>> row_of(NewAnswer("key-1", "trial-1", value=3))["value"]
    3
    """
    return {
        "key": text_of("key", answer.key, KEY),
        "x": None if answer.x is None else number_of("x", answer.x),
        "y": None if answer.y is None else number_of("y", answer.y),
        "inside": None if answer.inside is None else int(bool(answer.inside)),
        "near": None if answer.near is None else int(bool(answer.near)),
        "value": None if answer.value is None else whole_of("value", answer.value),
        "early": whole_of("early", answer.early),
        "reaction_ms": None if answer.reaction_ms is None else number_of("reaction_ms", answer.reaction_ms),
        "durations": _json_of("durations", answer.durations),
        "circumstances": _json_of("circumstances", answer.circumstances),
    }


def _json_of(name: str, value: Mapping[str, Any]) -> str:
    try:
        # ASCII: a NUL or half a pair inside becomes an escape, which any database holds.
        text = json.dumps(dict(value), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise _bad(name, "expected plain JSON values") from None
    if len(text) > _JSON_CHARACTERS:
        raise _bad(name, f"expected at most {_JSON_CHARACTERS} characters of JSON, not {len(text)}")
    return text


def _bad(name: str, why: str) -> Refusal:
    return Refusal("bad-value", f"{name}: {why}")
