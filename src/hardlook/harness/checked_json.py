"""JSON documents that contain the checksum of their own content, so that a changed bit is noticed when they are read.

The checksum covers the values, not the layout: white space and the order of keys do not count. Documents without one,
of earlier versions or from other tools, are read as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hardlook import fingerprints

CHECKSUM = "checksum"


def format_checked_json(document: Mapping[str, Any]) -> str:
    """A JSON document with the checksum of its content as its first key."""
    plain = json.loads(json.dumps(document, default=str))
    plain.pop(CHECKSUM, None)
    return json.dumps({CHECKSUM: fingerprints.hash_value(plain), **plain}, indent=1)


def parse_checked_json(text: str) -> Any:
    """The document without its checksum; a `ValueError` where its content is not what was written.

    >>> text = format_checked_json({"units": 12})
    >>> parse_checked_json(text), parse_checked_json('{"units": 12}')
    ({'units': 12}, {'units': 12})
    >>> parse_checked_json(text.replace("12", "13"))
    Traceback (most recent call last):
    ...
    ValueError: does not match its checksum: it was damaged, or changed by hand (then delete its line "checksum")
    """
    document = json.loads(text)
    if not isinstance(document, dict):
        return document
    # If the changed bit is in the key `checksum`, the checksum is there under another name.
    names = [name for name, value in document.items() if isinstance(value, str) and _is_checksum(value)]
    name = next((one for one in (CHECKSUM, *names) if one in document), None)
    if name is None:
        return document
    rest = {key: value for key, value in document.items() if key != name}
    is_right = fingerprints.hash_value(rest) == document[name]
    if name == CHECKSUM and is_right:
        return rest
    if name != CHECKSUM and not is_right:
        return document
    raise ValueError(
        'does not match its checksum: it was damaged, or changed by hand (then delete its line "checksum")'
    )


def _is_checksum(value: str) -> bool:
    return len(value) == 24 and set(value) <= set("0123456789abcdef")
