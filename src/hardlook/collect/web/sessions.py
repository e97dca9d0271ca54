"""Who asks: a cookie that holds a participant's random id, signed, with an end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardlook.collect.web.csrf import csrf_token, token_fits
from hardlook.collect.web.tokens import mac, read_token, sign

if TYPE_CHECKING:
    from starlette.responses import Response

DAY = 86_400.0
SESSION_DAYS, FORM_HOURS = 60, 12


@dataclass(frozen=True)
class Session:
    """A participant's id, and the cookie that says so."""

    participant: str
    cookie: str


@dataclass(frozen=True)
class Sessions:
    """The cookies of one study; `secure` ones travel over https only."""

    secret: bytes
    secure: bool = False

    @property
    def mark(self) -> str:
        """Eight characters that tell this study from others on the same host, in names that a browser keeps.

        >>> len(Sessions(bytes(32)).mark)
        8
        """
        return mac(self.secret, "cookie name").hex()[:8]

    @property
    def name(self) -> str:
        """The session cookie's name, other for every study, since a browser keeps one jar for all ports of a host.

        >>> Sessions(bytes(32)).name.startswith("hardlook_session_"), Sessions(bytes(32), secure=True).name[:7]
        (True, '__Host-')
        """
        return self._named("hardlook_session")

    @property
    def form_name(self) -> str:
        """The name of the cookie that the form of consent is sent back with."""
        return self._named("hardlook_form")

    def read(self, cookies: Mapping[str, str], now: float) -> Session | None:
        """The session of a request's cookies; None when there is none that we made and that still holds.

        >>> sessions = Sessions(bytes(32))
        >>> sessions.read({sessions.name: sessions.made("abc", now=0.0)}, now=1.0).participant
        'abc'
        >>> sessions.read({sessions.name: sessions.made("abc", now=0.0)}, now=61 * DAY) is None
        True
        """
        cookie = cookies.get(self.name, "")
        said = read_token(self.secret, "session", cookie, now)
        return Session(str(said["p"]), cookie) if said else None

    def made(self, participant: str, now: float) -> str:
        """The value of a new session cookie."""
        return sign(self.secret, "session", {"p": participant}, now + SESSION_DAYS * DAY)

    def keep(self, response: Response, name: str, value: str, seconds: float) -> None:
        """Have the browser keep a cookie that no script and no other site can use."""
        response.set_cookie(
            name, value, max_age=int(seconds), path="/", secure=self.secure, httponly=True, samesite="strict"
        )

    def form_token(self, cookie: str) -> str:
        """What the form of consent holds: it belongs to the form's cookie and to no session."""
        return csrf_token(self.secret, f"form {cookie}")

    def form_ok(self, cookies: Mapping[str, str], token: str, now: float) -> bool:
        """Whether a form came back from the browser that was given it, in time."""
        cookie = cookies.get(self.form_name, "")
        known = read_token(self.secret, "form", cookie, now) is not None
        return known and token_fits(self.secret, f"form {cookie}", token)

    def _named(self, word: str) -> str:
        # Browsers let nobody but this very host set a cookie of this prefix, and over https alone.
        prefix = "__Host-" if self.secure else ""
        return f"{prefix}{word}_{self.mark}"
