"""What keeps the explorer to itself: who may ask, how, how much, and what a page may do.

A page from elsewhere can make a browser send requests to this machine, and by a name of its own that points here
(DNS rebinding) even read the answers. So the Host header must be one that the user typed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_QUERY, MOST_PATH = 8192, 512
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


def host_name(header: str) -> str:
    """The name in a Host header, without port and brackets.

    >>> [host_name(text) for text in ("localhost:8000", "[::1]:8000", "Example.org", "::1")]
    ['localhost', '::1', 'example.org', '']
    """
    name, bracket, rest = header.strip().lower().partition("]")
    if name.startswith("[") and bracket and (not rest or rest.startswith(":")):
        return name[1:]
    name, colon, port = header.strip().lower().partition(":")
    return name if not colon or port.isdigit() else ""


def may_ask(header: str, host: str) -> bool:
    """Whether a request with that Host header is meant for a server on `host`.

    A server on all interfaces answers to any address in numbers, since no name of a stranger is among those.

    >>> may_ask("127.0.0.1:8000", "127.0.0.1"), may_ask("evil.example:8000", "127.0.0.1")
    (True, False)
    >>> may_ask("10.0.0.5", "0.0.0.0"), may_ask("evil.example", "0.0.0.0")
    (True, False)
    """
    name = host_name(header)
    return name in LOOPBACK or name == host.lower().strip("[]") or (host in EVERYWHERE and _is_number(name))


class Guard:
    """Lets through what is meant for us, and sets the headers of every answer."""

    def __init__(self, app: Application, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it in a line of text."""
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in HEADERS}
                kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in own]
                message = {**message, "headers": [*kept, *HEADERS]}
            await send(message)

        status, words = self._refusal(scope)
        if status:
            await _say(with_headers, status, words, head=scope["method"] == "HEAD")
        else:
            await self.app(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> tuple[int, str]:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
        if len(hosts) != 1 or not may_ask(hosts[0], self.host):
            return 421, "This server answers to its own address only."
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "Pages can be read, and nothing else."
        if len(scope["query_string"]) > MOST_QUERY or len(scope["path"]) > MOST_PATH:
            return 414, f"The address is too long: at most {MOST_QUERY} bytes after the question mark."
        return 0, ""


async def _say(send: Send, status: int, words: str, *, head: bool) -> None:
    body = b"" if head else words.encode()
    headers: Collection[tuple[bytes, bytes]] = [(b"content-type", b"text/plain; charset=utf-8")]
    headers = [*headers, (b"content-length", str(len(words.encode())).encode())]
    if status == 405:
        headers = [*headers, (b"allow", b"GET, HEAD")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
