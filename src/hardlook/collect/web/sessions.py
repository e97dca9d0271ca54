"""Who sends a request: cookies of participants and researchers, and proof that a request comes from our own page.

A participant's cookie holds a random id, signed, with an expiry time; a researcher's cookie is signed with another
secret, so that neither is accepted for the other. A request that changes something must come from our own origin and
carry a token (CSRF) that belongs to its cookie, which a page from elsewhere cannot read.

>>> token = make_csrf_token(bytes(32), "the session's cookie")
>>> [is_csrf_token(bytes(32), cookie, token) for cookie in ("the session's cookie", "another cookie")]
[True, False]
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardlook.collect.web.guard import PublicAddress, RateLimiter, client_key, is_host_of_origin
from hardlook.collect.web.refusals import RequestRefused
from hardlook.collect.web.tokens import compute_mac, read_token, sign_token

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

DAY = 86_400.0
SESSION_SECONDS, FORM_SECONDS, RESEARCHER_SECONDS = 60 * DAY, 12 * 3600.0, 12 * 3600.0
LOGINS_PER_MINUTE = 10
RESEARCH_HOME = "/research"


def make_csrf_token(secret: bytes, cookie: str) -> str:
    """32 characters that belong to one cookie."""
    return compute_mac(secret, "csrf", cookie).hex()[:32]


def is_csrf_token(secret: bytes, cookie: str, token: str) -> bool:
    """Whether the token belongs to the cookie, compared in constant time."""
    expected = make_csrf_token(secret, cookie).encode()
    return bool(cookie) and hmac.compare_digest(expected, token.encode("utf-8", "replace"))


def is_own_origin(headers: Mapping[str, str], public_origin: str) -> bool:
    """Whether a request comes from our own origin, by the browser's headers; True where they are missing.

    Current browsers send them with every request that changes something; the token covers those that do not.

    >>> is_own_origin({"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}, "")
    True
    >>> is_own_origin({"host": "study.example", "origin": "https://study.example"}, "https://study.example")
    True
    >>> is_own_origin({"host": "study.example", "origin": "http://study.example"}, "https://study.example")
    False
    >>> is_own_origin({"host": "127.0.0.1", "origin": "null"}, ""), is_own_origin({"sec-fetch-site": "cross-site"}, "")
    (False, False)
    """
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return False
    origin, host = headers.get("origin"), headers.get("host", "")
    own = public_origin if is_host_of_origin(public_origin, host) else f"http://{host}"
    return origin is None or origin == own


@dataclass(frozen=True)
class Session:
    """A participant's id, and the cookie that carries it."""

    participant: str
    cookie: str


@dataclass(frozen=True)
class Sessions:
    """The cookies of one study; `secure` ones are sent over https only, `framed` ones in another site's frame too."""

    secret: bytes
    secure: bool = False
    framed: bool = False

    @property
    def study_tag(self) -> str:
        """Eight characters that distinguish this study from others on the same host."""
        return compute_mac(self.secret, "cookie name").hex()[:8]

    @property
    def name(self) -> str:
        """The session cookie's name, different in every study, since browsers share cookies over all ports of a host.

        >>> Sessions(bytes(32)).name.startswith("hardlook_session_"), Sessions(bytes(32), secure=True).name[:7]
        (True, '__Host-')
        """
        return self.cookie_name("session")

    @property
    def form_name(self) -> str:
        """The name of the cookie that must come back with the form of consent."""
        return self.cookie_name("form")

    def cookie_name(self, kind: str) -> str:
        """The name of a cookie of this study."""
        # A name with this prefix can be set by this very host alone, and over https.
        prefix = "__Host-" if self.secure else ""
        return f"{prefix}hardlook_{kind}_{self.study_tag}"

    def set_cookie(self, response: Response, name: str, value: str, seconds: float) -> None:
        """Set a cookie that no script and no other site can use."""
        age, secure = int(seconds), self.secure
        response.set_cookie(name, value, max_age=age, path="/", secure=secure, httponly=True, samesite="strict")

    def set_participant_cookie(self, response: Response, name: str, value: str, seconds: float) -> None:
        """Set a cookie of a participant, which a page in another site's frame gets too where the study allows it.

        Such a cookie is Partitioned: a browser keeps one for each site that frames the page and gives it to no other,
        so that it is kept where third-party cookies are blocked.
        """
        if not self.framed:
            self.set_cookie(response, name, value, seconds)
            return
        attributes = f"Max-Age={int(seconds)}; Path=/; HttpOnly; Secure; SameSite=None; Partitioned"
        response.headers.append("set-cookie", f"{name}={value}; {attributes}")

    def has_form_cookie(self, cookies: Mapping[str, str]) -> bool:
        """Whether the browser sent the form's cookie at all: without, it blocks cookies or the form is too old."""
        return bool(cookies.get(self.form_name))

    def make_cookie(self, participant: str, now: float) -> str:
        """The value of a new session cookie."""
        return sign_token(self.secret, "session", {"p": participant}, now + SESSION_SECONDS)

    def read(self, cookies: Mapping[str, str], now: float) -> Session | None:
        """The session of a request's cookies; None without a cookie that we made and that has not expired.

        >>> sessions = Sessions(bytes(32))
        >>> sessions.read({sessions.name: sessions.make_cookie("abc", now=0.0)}, now=1.0).participant
        'abc'
        >>> sessions.read({sessions.name: sessions.make_cookie("abc", now=0.0)}, now=61 * DAY) is None
        True
        """
        cookie = cookies.get(self.name, "")
        payload = read_token(self.secret, "session", cookie, now)
        return Session(str(payload["p"]), cookie) if payload else None

    def make_form_cookie(self, now: float) -> str:
        """The value of a new cookie for the form of consent."""
        return sign_token(self.secret, "form", {"n": secrets.token_hex(16)}, now + FORM_SECONDS)

    def make_form_token(self, cookie: str) -> str:
        """The hidden field of the form of consent: it belongs to the form's cookie, not to a session."""
        return make_csrf_token(self.secret, f"form {cookie}")

    def is_valid_form(self, cookies: Mapping[str, str], token: str, now: float) -> bool:
        """Whether a form came back in time from the browser that it was sent to."""
        cookie = cookies.get(self.form_name, "")
        known = read_token(self.secret, "form", cookie, now) is not None
        return known and is_csrf_token(self.secret, f"form {cookie}", token)


def derive_research_key(secret: bytes) -> str:
    """The key of a study's researchers: 32 characters that follow from the secret.

    >>> len(derive_research_key(bytes(32))), derive_research_key(bytes(32)) == derive_research_key(bytes(31) + b"!")
    (32, False)
    """
    return base64.urlsafe_b64encode(compute_mac(secret, "research key")[:24]).decode()


class ResearcherGate:
    """Logs researchers in by their key; attempts are limited per client address, `clock` gives seconds."""

    def __init__(self, sessions: Sessions, key: str, address: PublicAddress, clock: Callable[[], float]) -> None:
        if len(key) < 16:
            raise ValueError(f"a research key has at least 16 characters, not {len(key)}")
        self._sessions, self._key, self._address, self._clock = sessions, key, address, clock
        # Derived from the key as well: a new key ends all sessions that the old one opened.
        self._secret = compute_mac(sessions.secret, "researchers", key)
        # Per client only: a limit for all together would let one attacker lock the researchers out.
        self._attempts = RateLimiter(LOGINS_PER_MINUTE)
        self._name = sessions.cookie_name("research")

    def is_researcher(self, request: Request) -> bool:
        """Whether the request carries a researcher's cookie that has not expired."""
        return read_token(self._secret, "researcher", self._cookie(request), self._clock()) is not None

    def make_form_token(self, request: Request) -> str:
        """The hidden field of every form of the dashboard."""
        return make_csrf_token(self._secret, self._cookie(request))

    def is_valid_form(self, request: Request, token: str) -> bool:
        """Whether a form was made by our own page for this researcher."""
        valid = is_csrf_token(self._secret, self._cookie(request), token)
        return valid and self.is_researcher(request) and is_own_origin(request.headers, self._address.origin)

    def log_in(self, request: Request, key: str, page: str = "") -> Response:
        """Redirect to the dashboard with a new cookie; refused with 403 for a wrong key, 429 after many attempts.

        The redirect works for a form of our own page. Where a link on another site, such as webmail, led here, browsers
        send no cookie with what it redirects to; then `page`, which loads the dashboard itself, is the response.
        """
        from starlette.responses import HTMLResponse, RedirectResponse

        now = self._clock()
        wait = self._attempts.take(client_key(request.scope, self._address), now)
        if wait:
            raise RequestRefused(429, "too-many", "Too many tries. Please wait a minute.", wait=wait)
        if not hmac.compare_digest(self._key.encode(), key.encode("utf-8", "replace")):
            message = "This is not the key of this study. The server printed it at its start."
            raise RequestRefused(403, "wrong-key", message)
        cookie = sign_token(self._secret, "researcher", {"r": secrets.token_hex(8)}, now + RESEARCHER_SECONDS)
        response = HTMLResponse(page) if page else RedirectResponse(RESEARCH_HOME, 303)
        self._sessions.set_cookie(response, self._name, cookie, RESEARCHER_SECONDS)
        return response

    def log_out(self) -> Response:
        """Redirect to the login page and delete the cookie."""
        from starlette.responses import RedirectResponse

        response = RedirectResponse(f"{RESEARCH_HOME}/login", 303)
        self._sessions.set_cookie(response, self._name, "", 0)
        return response

    def _cookie(self, request: Request) -> str:
        return request.cookies.get(self._name, "")
