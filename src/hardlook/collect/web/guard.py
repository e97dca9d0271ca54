"""The checks that every request passes before a page sees it: host, rate, method and size.

`PublicAddress` knows which Host headers are ours, `RateLimiter` how often a client may ask (token buckets in memory,
refilled by a clock that is passed in), and `Guard` is the ASGI middleware that applies both.

>>> limiter = RateLimiter(per_minute=2)
>>> limiter.take("a", 0.0), limiter.take("a", 0.0), limiter.take("a", 0.0), limiter.take("b", 0.0)
(0.0, 0.0, 30.0, 0.0)
>>> limiter.take("a", 30.0)
0.0
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hardlook.collect.web.refusals import JSON_PATHS, RequestRefused
from hardlook.errors import OptionError
from hardlook.serving import (
    ISOLATION_HEADERS,
    Application,
    Message,
    Receive,
    Scope,
    Send,
    add_headers,
    is_allowed_host,
    is_ip_address,
    parse_host,
    send_text,
)

MAX_PATH_LENGTH, MAX_QUERY_LENGTH = 1500, 4096
MAX_KEYS = 50_000
BODY_TIMEOUT_SECONDS = 20.0
METHODS = ("GET", "HEAD", "POST")

_LOADING_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
CONTENT_SECURITY_POLICY = _LOADING_POLICY + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
_PERMISSIONS = (b"permissions-policy", b"camera=(), geolocation=(), microphone=()")

SECURITY_HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    *ISOLATION_HEADERS,
    # Not no-referrer: browsers then hide the origin of our own forms from us.
    (b"referrer-policy", b"same-origin"),
    _PERMISSIONS,
)

# The participants' pages, which alone may be shown in a frame, where the study allows it.
_FRAMED_PAGES, _FRAMED_LINKS = frozenset({"/", "/join", "/work", "/done", "/privacy"}), "/join/"

_NO_STORE = (b"cache-control", b"no-store")

# Files of the program itself are the same for all: a browser keeps them and asks whether they have changed.
_STATIC, _REVALIDATE = "/static/", (b"cache-control", b"no-cache")
_HTTPS_ONLY = (b"strict-transport-security", b"max-age=31536000")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>https?)://(?P<name>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?/?")


@dataclass(frozen=True)
class PublicAddress:
    """Where the study is reached: the host listened on, and the public URL and proxy in front of it ("" for none).

    The client's address is taken from forwarding headers only if the trusted proxy sent them.
    """

    host: str = "127.0.0.1"
    url: str = ""
    trusted_proxy: str = ""

    def __post_init__(self) -> None:
        if self.url and not self.origin:
            remedy = "give one like https://study.example.org, without a path; a name with other letters as xn--..."
            raise OptionError(f"{self.url!r} is not a public address", remedy=remedy)
        if self.trusted_proxy and not self.url:
            raise OptionError("a trusted proxy without a public address", remedy="give --public-url as well")
        if self.trusted_proxy and not is_ip_address(self.trusted_proxy):
            remedy = "give it in numbers, such as 127.0.0.1"
            raise OptionError(f"{self.trusted_proxy!r} is not the address of a proxy", remedy=remedy)

    @property
    def secure(self) -> bool:
        """Whether participants connect over https."""
        return self.origin.startswith("https:")

    @property
    def origin(self) -> str:
        """The public URL as browsers write an origin: lower case, without the default port and the last slash.

        >>> PublicAddress(url="https://Study.Example:443/").origin, PublicAddress().origin
        ('https://study.example', '')
        """
        match = _URL.fullmatch(self.url.lower())
        if match is None or not 0 < int(match["port"] or 80) < 2**16 or not parse_host(match["name"]):
            return ""
        default = match["port"] is None or int(match["port"]) == _DEFAULT_PORTS[match["scheme"]]
        return f"{match['scheme']}://{match['name']}" + ("" if default else f":{int(match['port'])}")

    def is_own_host(self, header: str) -> bool:
        """Whether a request with that Host header is meant for this study.

        >>> address = PublicAddress(url="https://study.example")
        >>> [address.is_own_host(host) for host in ("study.example", "127.0.0.1:8000", "evil.example")]
        [True, True, False]
        """
        return is_allowed_host(header, self.host) or is_host_of_origin(self.origin, header)


def is_host_of_origin(origin: str, header: str) -> bool:
    """Whether a Host header names the host of an origin; False where there is no origin.

    >>> is_host_of_origin("https://study.example", "STUDY.example:443"), is_host_of_origin("", "")
    (True, False)
    """
    return bool(origin) and parse_host(header) == parse_host(origin.partition("://")[2])


class RateLimiter:
    """A full bucket of `per_minute` tokens per key, refilled at that rate; beyond `max_keys` the oldest is dropped."""

    def __init__(self, per_minute: float, max_keys: int = MAX_KEYS) -> None:
        if per_minute <= 0 or max_keys < 1:
            needed = "a positive rate and at least one key"
            raise ValueError(f"a rate limit needs {needed}, not {per_minute} and {max_keys}")
        self.per_minute, self.max_keys = float(per_minute), max_keys
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str, now: float, tokens: float = 1.0) -> float:
        """Take tokens and return 0, or take nothing and return the seconds to wait."""
        cost = min(tokens, self.per_minute)
        with self._lock:
            left, since = self._left.pop(key, (self.per_minute, now))
            # A clock that is set back must not empty a bucket.
            left = min(self.per_minute, left + max(0.0, now - since) * self.per_minute / 60.0)
            enough = left >= cost
            self._left[key] = (left - cost if enough else left, now)
            while len(self._left) > self.max_keys:
                self._left.popitem(last=False)
        return 0.0 if enough else (cost - left) * 60.0 / self.per_minute

    def __len__(self) -> int:
        return len(self._left)


def address_key(address: str) -> str:
    """What counts as one client: an IPv4 address, or the /64 of an IPv6 address, which one household has whole.

    >>> address_key("10.0.0.7"), address_key("2001:db8::7"), address_key("::ffff:10.0.0.7"), address_key("testclient")
    ('10.0.0.7', '2001:db8::', '10.0.0.7', 'unknown')
    """
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(number, ipaddress.IPv6Address):
        if number.ipv4_mapped:
            return str(number.ipv4_mapped)
        return str(ipaddress.IPv6Network((int(number) >> 64 << 64, 64)).network_address)
    return str(number)


def client_address(peer: str, forwarded: Iterable[str], trusted_proxy: str) -> str:
    """The client's address: the peer, or the peer of the trusted proxy.

    `forwarded` are the X-Forwarded-For headers. Only the last entry of their list was written by the proxy itself.

    >>> client_address("10.0.0.1", ["1.1.1.1, 2.2.2.2"], "10.0.0.1"), client_address("9.9.9.9", ["1.1.1.1"], "10.0.0.1")
    ('2.2.2.2', '9.9.9.9')
    """
    if not trusted_proxy or peer != trusted_proxy:
        return peer
    entries = [entry.strip() for header in forwarded for entry in header.split(",")]
    return entries[-1] if entries and entries[-1] else peer


def client_key(scope: Scope, address: PublicAddress) -> str:
    """The rate limit's key of the client that sent a request."""
    peer = str((scope.get("client") or ("",))[0])
    return address_key(client_address(peer, _header_values(scope, b"x-forwarded-for"), address.trusted_proxy))


def may_be_framed(path: str) -> bool:
    """Whether a path is a participants' page, which another site's page may show in a frame if the study says so.

    >>> [may_be_framed(path) for path in ("/", "/join/TOKEN", "/work", "/research", "/research/key/KEY", "/api/state")]
    [True, True, True, False, False, False]
    """
    return path in _FRAMED_PAGES or path.startswith(_FRAMED_LINKS)


def make_framed_headers(frame_origins: Iterable[str], submit_origin: str = "") -> tuple[tuple[bytes, bytes], ...]:
    """The headers of a page that these origins may frame, and whose form may be sent to `submit_origin` as well.

    A form may also be sent to the framing origins: browsers check where a response redirects to, and MTurk's leads back
    to its own pages.
    """
    framing = " ".join(frame_origins)
    targets = " ".join(filter(None, ("'self'", submit_origin, framing)))
    policy = f"{_LOADING_POLICY}form-action {targets}; base-uri 'none'; frame-ancestors {framing}"
    return (
        (b"content-security-policy", policy.encode()),
        *(pair for pair in ISOLATION_HEADERS if pair[0] != b"x-frame-options"),
        # The platform that is posted to sees our origin, as from any other page; never a path or an id.
        (b"referrer-policy", b"strict-origin-when-cross-origin"),
        _PERMISSIONS,
    )


class Guard:
    """ASGI middleware: refuse what is not meant for the study, read bodies whole, set the headers of every response.

    `max_bytes` bounds a body and `body_timeout` the seconds it may take to arrive; `limiter` counts by client address.
    `framed_headers` are those of the participants' pages where others may frame them; all other pages refuse it.
    """

    def __init__(
        self,
        app: Application,
        address: PublicAddress,
        limiter: RateLimiter,
        clock: Callable[[], float],
        *,
        max_bytes: int,
        body_timeout: float = BODY_TIMEOUT_SECONDS,
        framed_headers: tuple[tuple[bytes, bytes], ...] = SECURITY_HEADERS,
    ) -> None:
        self.app, self.address, self.limiter, self.clock = app, address, limiter, clock
        self.max_bytes, self.body_timeout, self.framed_headers = max_bytes, body_timeout, framed_headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or refuse it."""
        if scope["type"] != "http":
            return
        path, head = str(scope["path"]), scope["method"] == "HEAD"
        caching = _REVALIDATE if path.startswith(_STATIC) else _NO_STORE
        secure = (_HTTPS_ONLY,) if self.address.secure else ()
        security = self.framed_headers if may_be_framed(path) else SECURITY_HEADERS
        send = add_headers(_drop_body(send) if head else send, (*security, caching, *secure))
        try:
            self._check(scope)
            if scope["method"] == "POST":
                receive = _replay_body(await self._read_body(scope, receive), receive)
        except RequestRefused as refused:
            await self._refuse(send, path, refused)
        except _Disconnected:
            return
        else:
            await self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        hosts = _header_values(scope, b"host")
        if len(hosts) != 1 or not self.address.is_own_host(hosts[0]):
            raise RequestRefused(421, "not-here", "This server answers to its own address only.")
        wait = self.limiter.take(client_key(scope, self.address), self.clock())
        if wait:
            message = "Too many requests from this address. Please wait a little."
            raise RequestRefused(429, "too-many", message, wait=wait)
        if scope["method"] not in METHODS:
            raise RequestRefused(405, "method", f"The methods here are {', '.join(METHODS)}.")
        if len(scope["path"]) > MAX_PATH_LENGTH or len(scope["query_string"]) > MAX_QUERY_LENGTH:
            raise RequestRefused(414, "address-too-long", "The address is too long.")

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes:
        too_large = RequestRefused(413, "too-large", f"A request holds {self.max_bytes} bytes at most.")
        stated = _header_values(scope, b"content-length")
        if stated and (not stated[0].isdecimal() or int(stated[0][:20]) > self.max_bytes):
            raise too_large
        # Counted while it arrives: the stated length is not trusted.
        body = bytearray()
        try:
            async with asyncio.timeout(self.body_timeout):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise _Disconnected
                    body += message.get("body", b"")
                    if len(body) > self.max_bytes:
                        raise too_large
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise RequestRefused(408, "too-slow", "The request took too long to arrive.") from None

    async def _refuse(self, send: Send, path: str, refused: RequestRefused) -> None:
        headers = [(name.encode(), value.encode()) for name, value in refused.headers.items()]
        if refused.status == 405:
            headers.append((b"allow", ", ".join(METHODS).encode()))
        if refused.status in (408, 413):
            # The rest of the body is not wanted.
            headers.append((b"connection", b"close"))
        text = refused.message
        if path.startswith(JSON_PATHS):
            send = add_headers(send, [(b"content-type", b"application/json")])
            text = refused.to_json().decode()
        await send_text(send, refused.status, text, headers=headers)


class _Disconnected(Exception):
    """The client closed the connection."""


def _header_values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read, then any later message."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


def _drop_body(send: Send) -> Send:
    async def send_without_body(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_without_body
