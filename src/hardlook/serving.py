"""Serve a web application (ASGI) on this machine: host checks, sockets, a server, page templates.

A page from elsewhere can make a browser send requests to this machine, and under a host name of its own that points
here (DNS rebinding) even read the responses. So a server answers only to the Host headers that a user would type.

>>> async def hello(scope, receive, send):
...     await send_text(send, 200, "hello")
>>> from urllib.request import urlopen
>>> with serve_in_background(hello) as address, urlopen(address) as response:
...     response.read()
b'hello'
"""

from __future__ import annotations

import ipaddress
import re
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from hardlook.errors import OptionError, RunError

if TYPE_CHECKING:
    from asyncio import Protocol, TimerHandle, Transport

    from jinja2 import Environment
    from uvicorn import Server

# The types of an ASGI application.
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

Headers = Iterable[tuple[bytes, bytes]]

# For every response of every server: browsers guess no content type, frame no page, share nothing with other sites.
ISOLATION_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

ALL_INTERFACES = frozenset({"0.0.0.0", "::"})

# How long the head of a request may take to arrive.
HEAD_TIMEOUT_SECONDS = 10.0

# Addresses of documentation (RFC 5737, RFC 3849): no packet is sent there, only the way there is looked up.
_ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}

# Strict, since addresses are made from this header.
_HOST = re.compile(r"(?:\[(?P<number>[0-9a-f]*:[0-9a-f:.]*)\]|(?P<name>[^:\[\]/?#@\s]*))(?::[0-9]{1,5})?")


async def send_text(send: Send, status: int, text: str, *, head: bool = False, headers: Headers = ()) -> None:
    """Respond with a status and plain text; without the text to a HEAD request."""
    body = text.encode()
    own = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": b"" if head else body})


def add_headers(send: Send, headers: Headers) -> Send:
    """A `send` that sets these headers on every response, in place of any of the same name."""
    added = tuple(headers)
    names = {name for name, _ in added}

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in names]
            message = {**message, "headers": [*kept, *added]}
        await send(message)

    return send_with_headers


def parse_host(header: str) -> str:
    """The name in a Host header, without port and brackets; empty where the header is malformed.

    >>> [parse_host(text) for text in ("localhost:8000", "[::1]:8000", "Example.org", "::1", "[::1]:@evil.example")]
    ['localhost', '::1', 'example.org', '', '']
    """
    match = _HOST.fullmatch(header.strip(" \t").lower())
    return (match["number"] or match["name"]) if match else ""


def is_allowed_host(header: str, host: str) -> bool:
    """Whether a request with that Host header is meant for a server on `host`.

    A server on all interfaces answers to any numeric address, since no other site's name is one.

    >>> is_allowed_host("127.0.0.1:8000", "127.0.0.1"), is_allowed_host("evil.example:8000", "127.0.0.1")
    (True, False)
    >>> is_allowed_host("10.0.0.5", "0.0.0.0"), is_allowed_host("evil.example", "0.0.0.0")
    (True, False)
    """
    name = parse_host(header)
    return name in LOOPBACK or name == host.lower().strip("[]") or (host in ALL_INTERFACES and is_ip_address(name))


def is_ip_address(text: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address.

    >>> is_ip_address("::1"), is_ip_address("localhost")
    (True, False)
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on `host` and `port` (0: a free one); an `OptionError` where the port cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small packets at once; else every page waits 40 ms for an acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # From here on a browser that is quicker than the server waits instead of being refused.
        listening.listen(128)
    except OSError as error:
        listening.close()
        reason = error.strerror or "another program listens there already, or this address is not this machine's"
        raise OptionError(
            f"cannot listen on {host} port {port}: {reason}",
            remedy="choose another --port (0 takes a free one) or --host",
        ) from None
    return listening


def server_url(host: str, listening: socket.socket) -> str:
    """The address to type into a browser; of a server on all interfaces, the one that this machine has in its network.

    >>> with socket.create_server(("127.0.0.1", 0)) as listening:
    ...     server_url("127.0.0.1", listening).startswith("http://127.0.0.1:")
    True
    """
    if host in ALL_INTERFACES:
        host = _find_own_address(listening)
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}/"


def _find_own_address(listening: socket.socket) -> str:
    """An address at which others reach a socket that listens on all interfaces; the loopback one without a network."""
    families = [listening.family]
    if listening.family == socket.AF_INET6 and not listening.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
        families.append(socket.AF_INET)
    for family in families:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((_ELSEWHERE[family], 9))
            except OSError:
                continue
            return str(probe.getsockname()[0])
    return "127.0.0.1" if socket.AF_INET in families else "::1"


def serve(app: Application, listening: socket.socket, to_open: str = "") -> None:
    """Serve until stopped; `to_open` is an address to open in a browser.

    SIGTERM and SIGHUP end the requests under way, then raise `SystemExit`, so that callers can close what they opened.
    """
    import webbrowser

    if to_open:
        threading.Timer(0.5, webbrowser.open, [to_open]).start()
    server = make_server(app)
    received: list[int] = []

    def stop(number: int, frame: object) -> None:
        received.append(number)
        server.should_exit = True

    # uvicorn has a handler for SIGTERM while it serves, then sends the signal again to the one that was there before.
    names = ("SIGTERM", "SIGHUP")
    numbers = [number for name in names if (number := getattr(signal, name, None)) is not None]
    before = {number: signal.getsignal(number) for number in numbers}
    ours = [number for number in numbers if before[number] is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, stop)
    try:
        server.run(sockets=[listening])
    finally:
        for number in ours:
            signal.signal(number, before[number])
    if received:
        raise SystemExit(128 + received[0])


def make_server(app: Application, *, head_timeout: float = HEAD_TIMEOUT_SECONDS) -> Server:
    """A uvicorn server that has not been started; it hangs up where a request's head takes `head_timeout` seconds."""
    from hardlook.extras import require

    uvicorn = require("uvicorn", extra="web")
    config = uvicorn.Config(
        app,
        http=_make_protocol(head_timeout),
        # Bytes that are no HTTP are not worth a line of log each.
        log_level="error",
        access_log=False,
        server_header=False,
        # Forwarding headers are read by the application, and only from a trusted proxy.
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=2,
    )
    server: Server = uvicorn.Server(config)
    return server


def _make_protocol(head_timeout: float) -> type[Protocol]:
    """Uvicorn's HTTP on h11, the only one of its parsers that limits the size of a head, with a limit on its time."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedH11Protocol(H11Protocol):
        head_timer: TimerHandle | None = None

        def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.time_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.time_head()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.stop_timer()

        def time_head(self) -> None:
            """Start the timer with the first byte of a head, not again with the next; stop it with the last."""
            if self.conn.their_state is not h11.IDLE:
                self.stop_timer()
            elif self.head_timer is None:
                self.head_timer = self.loop.call_later(head_timeout, self.transport.close)

        def stop_timer(self) -> None:
            if self.head_timer is not None:
                self.head_timer.cancel()
                self.head_timer = None

    return TimedH11Protocol


@contextmanager
def serve_in_background(
    app: Application,
    listening: socket.socket | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    head_timeout: float = HEAD_TIMEOUT_SECONDS,
) -> Iterator[str]:
    """Serve `app` in a thread; gives the address, and stops the server at the end.

    `listening` is a socket of `listen`; without one it listens on `host` and `port`.
    """
    listening = listening or listen(host, port)
    server = make_server(app, head_timeout=head_timeout)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise RunError("the server did not start", remedy="see what it printed above")
            time.sleep(0.01)
        yield server_url(host, listening)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        listening.close()


@cache
def template_environment(package: str) -> Environment:
    """The templates in `package`/templates; every value is escaped, and a missing value is an error.

    >>> refused = template_environment("hardlook.report.explorer").get_template("refused.html")
    >>> "&lt;b&gt;" in refused.render(title="No", message="<b>")
    True
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(lambda name: read_package_text(package, f"templates/{name}")),
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def read_package_text(package: str, name: str) -> str:
    """The text of a file of a package.

    >>> read_package_text("hardlook.report", "style.css").count("{") > 0
    True
    """
    return files(package).joinpath(name).read_text(encoding="utf-8")
