"""Signed texts: what a link or a cookie says, for one purpose, until a time, under one study's secret.

A token is `BODY.SIGNATURE`, both base64url; the signature (HMAC-SHA256) is of the body and the purpose, so that a
token of one purpose is none of another. Nothing in it is hidden: it says only random ids.

>>> secret = bytes(32)
>>> token = sign(secret, "invitation", {"i": "abc"}, expires=100.0)
>>> read_token(secret, "invitation", token, now=99.0), read_token(secret, "invitation", token, now=100.0)
({'i': 'abc'}, None)
>>> read_token(secret, "session", token, now=99.0) is None, read_token(bytes(31) + b"!", "invitation", token, 0) is None
(True, True)
"""

from __future__ import annotations

import base64
import hmac
import json
import math
from collections.abc import Mapping

MOST_CHARACTERS = 1024
Payload = Mapping[str, str | int]


def sign(secret: bytes, purpose: str, payload: Payload, expires: float | None = None) -> str:
    """A token; `expires` in seconds since 1970, None for never."""
    written = json.dumps({"e": expires, "p": dict(payload)}, separators=(",", ":"), sort_keys=True)
    body = _text(written.encode())
    token = f"{body}.{_text(mac(secret, purpose, body))}"
    if len(token) > MOST_CHARACTERS:
        raise ValueError(f"a token holds {MOST_CHARACTERS} characters at most, this one has {len(token)}")
    return token


def read_token(secret: bytes, purpose: str, token: str, now: float) -> dict[str, str | int] | None:
    """What a token says; None when it is not ours, of another purpose, changed, cut short or too old."""
    if len(token) > MOST_CHARACTERS or not token.isascii():
        return None
    body, _, signature = token.partition(".")
    if not hmac.compare_digest(_text(mac(secret, purpose, body)), signature):
        return None
    # From here on it is what we wrote ourselves.
    said = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    expires = math.inf if said["e"] is None else float(said["e"])
    return dict(said["p"]) if now < expires else None


def mac(secret: bytes, purpose: str, *words: str) -> bytes:
    """The 32 bytes that only the holder of the secret can make of a purpose and words.

    >>> mac(bytes(32), "a", "bc") == mac(bytes(32), "ab", "c"), len(mac(bytes(32), "a"))
    (False, 32)
    """
    # With their lengths, so that no two lists of words are one text.
    said = b"".join(len(word).to_bytes(4, "big") + word for word in (part.encode() for part in (purpose, *words)))
    return hmac.digest(secret, said, "sha256")


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
