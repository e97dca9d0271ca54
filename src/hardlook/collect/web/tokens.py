"""Signed tokens for links and cookies, and completion codes, all made with the secret of a study.

A token is `BODY.SIGNATURE`, both base64url. The body is JSON with random ids and an expiry time; it is readable, not
secret. The signature (HMAC-SHA256, by itsdangerous) covers the body and a purpose, so that a token made for one
purpose is not accepted for another.

>>> secret = bytes(32)
>>> token = sign_token(secret, "invitation", {"i": "abc"}, expires=100.0)
>>> read_token(secret, "invitation", token, now=99.0), read_token(secret, "invitation", token, now=100.0)
({'i': 'abc'}, None)
>>> read_token(secret, "session", token, now=99.0) is None, read_token(bytes(31) + b"!", "invitation", token, 0) is None
(True, True)
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hardlook.extras import require

if TYPE_CHECKING:
    from itsdangerous import Signer

MAX_TOKEN_LENGTH = 1024
CODE_LENGTH = 12

# Without I, L, O and U: codes are read from a screen and typed. 32 characters, so each encodes five bits.
CODE_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_INVITATION = "invitation"
Payload = Mapping[str, str | int]


def sign_token(secret: bytes, purpose: str, payload: Payload, expires: float | None = None) -> str:
    """A signed token that holds the payload; `expires` in seconds since 1970, None for never."""
    content = json.dumps({"e": expires, "p": dict(payload)}, separators=(",", ":"), sort_keys=True)
    token = _sign_body(secret, purpose, base64.urlsafe_b64encode(content.encode()).rstrip(b"="))
    if len(token) > MAX_TOKEN_LENGTH:
        raise ValueError(f"a token holds {MAX_TOKEN_LENGTH} characters at most, this one has {len(token)}")
    return token


def read_token(secret: bytes, purpose: str, token: str, now: float) -> dict[str, str | int] | None:
    """The payload of a token; None when it is forged, changed, cut short, expired or made for another purpose."""
    if len(token) > MAX_TOKEN_LENGTH or not token.isascii():
        return None
    body = token.partition(".")[0].encode()
    if not _make_signer(secret).validate(_encode_prefix(purpose, body) + token.encode()):
        return None
    # Base64 has several spellings of one signature; only the one that we write is accepted.
    if token != _sign_body(secret, purpose, body):
        return None
    content = json.loads(base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4)))
    expires = math.inf if content["e"] is None else float(content["e"])
    return dict(content["p"]) if now < expires else None


def compute_mac(secret: bytes, purpose: str, *parts: str) -> bytes:
    """HMAC-SHA256 (32 bytes) of a purpose and texts under the secret.

    >>> compute_mac(bytes(32), "a", "bc") == compute_mac(bytes(32), "ab", "c"), len(compute_mac(bytes(32), "a"))
    (False, 32)
    """
    return _make_signer(secret).algorithm.get_signature(secret, b"".join(map(_encode_with_length, (purpose, *parts))))


def derive_completion_code(secret: bytes, participant_id: str) -> str:
    """The code (12 letters and digits, 60 bits) that a participant enters on a crowdsourcing platform.

    >>> code = derive_completion_code(bytes(32), "participant")
    >>> len(code), code == derive_completion_code(bytes(32), "another")
    (12, False)
    """
    bits = int.from_bytes(compute_mac(secret, "code", participant_id), "big")
    return "".join(CODE_ALPHABET[(bits >> (5 * place)) & 31] for place in range(CODE_LENGTH))


def shorten_address(secret: bytes, address: str) -> str:
    """16 bits (4 characters) of a keyed hash of an internet address: 65,536 IPv4 addresses have the same.

    It tells whether two batches are requested from one address, hardly ever wrongly, and not from which.

    >>> [shorten_address(bytes(32), address) for address in ("10.0.0.7", "10.0.0.7", "10.0.0.8")]
    ['1217', '1217', 'dad1']
    """
    return compute_mac(secret, "address", address).hex()[:4]


def make_invitation_links(secret: bytes, base_url: str, *, count: int, expires: float | None) -> list[str]:
    """New links below `base_url`, one per participant; `expires` in seconds since 1970, None for never.

    >>> links = make_invitation_links(bytes(32), "https://study.example/", count=2, expires=100.0)
    >>> len(set(links)), links[0].startswith("https://study.example/join/")
    (2, True)
    >>> token = links[0].rpartition("/")[2]
    >>> len(read_invitation(bytes(32), token, now=0.0)), read_invitation(bytes(32), token, now=100.0)
    (22, None)
    """
    ids = [secrets.token_urlsafe(16) for _ in range(count)]
    return [f"{base_url.rstrip('/')}/join/{sign_token(secret, _INVITATION, {'i': id}, expires)}" for id in ids]


def read_invitation(secret: bytes, token: str, now: float) -> str | None:
    """The random id in an invitation token; None when `read_token` does not accept the token."""
    payload = read_token(secret, _INVITATION, token, now)
    return str(payload["i"]) if payload else None


def _sign_body(secret: bytes, purpose: str, body: bytes) -> str:
    # The purpose is signed together with the body but not sent: the reader of a token knows which one to expect.
    prefix = _encode_prefix(purpose, body)
    return _make_signer(secret).sign(prefix + body).removeprefix(prefix).decode()


def _make_signer(secret: bytes) -> Signer:
    itsdangerous = require("itsdangerous", extra="web")
    # No key derivation: the secret is 32 random bytes already. Links that are in use depend on this choice.
    signer: Signer = itsdangerous.Signer(secret, sep=".", key_derivation="none", digest_method=hashlib.sha256)
    return signer


def _encode_prefix(purpose: str, body: bytes) -> bytes:
    return _encode_with_length(purpose) + len(body).to_bytes(4, "big")


def _encode_with_length(text: str) -> bytes:
    """A text with its length in front, so that different lists of texts never give the same bytes."""
    data = text.encode()
    return len(data).to_bytes(4, "big") + data
