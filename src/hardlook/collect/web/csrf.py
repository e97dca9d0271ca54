"""Whether a request that changes something was made by our own page.

Its origin says so, and a token that a page from elsewhere cannot read.

>>> token = csrf_token(bytes(32), "the session's cookie")
>>> token_fits(bytes(32), "the session's cookie", token), token_fits(bytes(32), "another's cookie", token)
(True, False)
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from hardlook.collect.web.public_address import is_host_of
from hardlook.collect.web.tokens import mac


def csrf_token(secret: bytes, cookie: str) -> str:
    """32 characters that belong to one cookie."""
    return mac(secret, "csrf", cookie).hex()[:32]


def token_fits(secret: bytes, cookie: str, token: str) -> bool:
    """Whether the token is the cookie's, compared in constant time."""
    return bool(cookie) and hmac.compare_digest(csrf_token(secret, cookie).encode(), token.encode("utf-8", "replace"))


def from_our_page(headers: Mapping[str, str], public_origin: str) -> bool:
    """Whether the browser says that the request comes from our own origin; one that says nothing is let through.

    Browsers of today say it with every request that changes something; the token stands for those that do not.

    >>> from_our_page({"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}, "")
    True
    >>> from_our_page({"host": "study.example", "origin": "https://study.example"}, "https://study.example")
    True
    >>> from_our_page({"host": "study.example", "origin": "http://study.example"}, "https://study.example")
    False
    >>> from_our_page({"host": "127.0.0.1", "origin": "null"}, ""), from_our_page({"sec-fetch-site": "cross-site"}, "")
    (False, False)
    """
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return False
    origin, host = headers.get("origin"), headers.get("host", "")
    own = public_origin if is_host_of(public_origin, host) else f"http://{host}"
    return origin is None or origin == own
