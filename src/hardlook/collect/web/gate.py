"""Who is a researcher: a key, a cookie of its own, forms of its own; a participant's session opens nothing here."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from hardlook.collect.web.csrf import csrf_token, from_our_page, token_fits
from hardlook.collect.web.limits import Buckets
from hardlook.collect.web.refusals import Refused
from hardlook.collect.web.sessions import Sessions
from hardlook.collect.web.tokens import mac, read_token, sign

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

HOME, HOURS = "/research", 12
TRIES_A_MINUTE = 10


def research_key(secret: bytes) -> str:
    """The key of a study's researchers: 32 characters, the same as long as the secret is.

    >>> len(research_key(bytes(32))), research_key(bytes(32)) == research_key(bytes(31) + b"!")
    (32, False)
    """
    return base64.urlsafe_b64encode(mac(secret, "research key")[:24]).decode()


class Gate:
    """Lets researchers in; `address_of` tells whose tries are counted, `clock` gives seconds."""

    def __init__(
        self,
        sessions: Sessions,
        key: str,
        *,
        public_url: str = "",
        address_of: Callable[[Request], str] = lambda request: "",
        clock: Callable[[], float],
    ) -> None:
        if len(key) < 16:
            raise ValueError(f"a research key has at least 16 characters, not {len(key)}")
        self._sessions, self._key, self._public_url = sessions, key, public_url
        # Of the key as well: another key ends all sessions that the old one opened.
        self._secret = mac(sessions.secret, "researchers", key)
        self._address_of, self._clock = address_of, clock
        # Of each address alone: a limit for all together would let one stranger lock the researchers out.
        self._tries = Buckets(TRIES_A_MINUTE)
        self._name = sessions.name.replace("session", "research")

    def researcher(self, request: Request) -> bool:
        """Whether the request carries a researcher's cookie that still holds."""
        return read_token(self._secret, "researcher", self._cookie(request), self._clock()) is not None

    def form_token(self, request: Request) -> str:
        """What every form of the dashboard holds."""
        return csrf_token(self._secret, self._cookie(request))

    def form_ok(self, request: Request, value: str) -> bool:
        """Whether a form was made by our own page for this researcher."""
        fits = token_fits(self._secret, self._cookie(request), value)
        return fits and self.researcher(request) and from_our_page(request.headers, self._public_url)

    def log_in(self, request: Request, key: str) -> Response:
        """To the dashboard with a new cookie; `Refused` with 403 for another key, with 429 after too many tries."""
        from starlette.responses import RedirectResponse

        now = self._clock()
        wait = self._tries.take(self._address_of(request), now)
        if wait:
            raise Refused(429, "too-many", "Too many tries. Please wait a minute.", wait=wait)
        if not hmac.compare_digest(self._key.encode(), key.encode("utf-8", "replace")):
            raise Refused(403, "wrong-key", "This is not the key of this study. The server printed it at its start.")
        seconds = HOURS * 3600.0
        cookie = sign(self._secret, "researcher", {"r": secrets.token_hex(8)}, now + seconds)
        response = RedirectResponse(HOME, 303)
        self._sessions.keep(response, self._name, cookie, seconds)
        return response

    def log_out(self, request: Request) -> Response:
        """To the login page, the cookie forgotten."""
        from starlette.responses import RedirectResponse

        response = RedirectResponse(f"{HOME}/login", 303)
        self._sessions.keep(response, self._name, "", 0)
        return response

    def _cookie(self, request: Request) -> str:
        return request.cookies.get(self._name, "")
