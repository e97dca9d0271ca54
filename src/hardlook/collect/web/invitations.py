"""Links for one participant each: a random id, signed, with an end.

>>> links = invitation_links(bytes(32), "https://study.example/", count=2, expires=100.0)
>>> len(set(links)), links[0].startswith("https://study.example/join/")
(2, True)
>>> token = links[0].rpartition("/")[2]
>>> len(invitation_in(bytes(32), token, now=0.0)), invitation_in(bytes(32), token, now=100.0)
(22, None)
"""

from __future__ import annotations

import secrets

from hardlook.collect.web.tokens import read_token, sign

_PURPOSE = "invitation"


def invitation_links(secret: bytes, base_url: str, *, count: int, expires: float | None) -> list[str]:
    """New links below `base_url`; `expires` in seconds since 1970, None for never."""
    base = base_url.rstrip("/")
    return [f"{base}/join/{sign(secret, _PURPOSE, {'i': secrets.token_urlsafe(16)}, expires)}" for _ in range(count)]


def invitation_in(secret: bytes, token: str, now: float) -> str | None:
    """The random id in a link's token; None when the token is not ours or too old."""
    said = read_token(secret, _PURPOSE, token, now)
    return str(said["i"]) if said else None
