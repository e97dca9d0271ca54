"""What stands before every page: who is asked, how, how much, how often; and what a page may do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hardlook.collect.web.limits import Buckets, address_key, asking_address
from hardlook.collect.web.public_address import PublicAddress
from hardlook.collect.web.refusals import Refused, speaks_json
from hardlook.serving.asgi import ISOLATION, Application, Message, Receive, Scope, Send, say, with_headers

MOST_PATH, MOST_QUERY = 1500, 4096
PATIENCE_SECONDS = 20.0
METHODS = ("GET", "HEAD", "POST")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    *ISOLATION,
    # Not no-referrer: browsers then hide the origin of our own forms from us.
    (b"referrer-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
NO_STORE = (b"cache-control", b"no-store")
# Files of the program itself, the same for everybody; a browser asks whether they have changed.
STATIC, REVALIDATE = "/static/", (b"cache-control", b"no-cache")
OVER_HTTPS = (b"strict-transport-security", b"max-age=31536000")


class Guard:
    """Lets through what is meant for the study, with a body read whole and small, and sets every answer's headers.

    `most_bytes` bounds a body, `patience` the seconds that it may take; `addresses` counts what an address asks.
    """

    def __init__(
        self,
        app: Application,
        address: PublicAddress,
        addresses: Buckets,
        clock: Callable[[], float],
        *,
        most_bytes: int,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.app, self.address, self.addresses, self.clock = app, address, addresses, clock
        self.most_bytes, self.patience = most_bytes, patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        path, head = str(scope["path"]), scope["method"] == "HEAD"
        kept = REVALIDATE if path.startswith(STATIC) else NO_STORE
        secure = (OVER_HTTPS,) if self.address.secure else ()
        sending = with_headers(_without_body(send) if head else send, (*HEADERS, kept, *secure))
        try:
            self._look_at(scope)
            if scope["method"] == "POST":
                receive = _again(await self._body(scope, receive), receive)
        except Refused as refused:
            await self._refuse(sending, path, refused)
        except _Gone:
            return
        else:
            await self.app(scope, receive, sending)

    def _look_at(self, scope: Scope) -> None:
        hosts = _values(scope, b"host")
        if len(hosts) != 1 or not self.address.means_us(hosts[0]):
            raise Refused(421, "not-here", "This server answers to its own address only.")
        wait = self.addresses.take(address_of(scope, self.address), self.clock())
        if wait:
            raise Refused(429, "too-many", "Too many requests from this address. Please wait a little.", wait=wait)
        if scope["method"] not in METHODS:
            raise Refused(405, "method", f"The methods here are {', '.join(METHODS)}.")
        if len(scope["path"]) > MOST_PATH or len(scope["query_string"]) > MOST_QUERY:
            raise Refused(414, "address-too-long", "The address is too long.")

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        said = _values(scope, b"content-length")
        if said and (not said[0].isdecimal() or int(said[0][:20]) > self.most_bytes):
            raise self._too_large()
        try:
            async with asyncio.timeout(self.patience):
                return await self._read(receive)
        except TimeoutError:
            raise Refused(408, "too-slow", "The request took too long to arrive.") from None

    async def _read(self, receive: Receive) -> bytes:
        # Counted while it comes: what a request says of its own length is not believed.
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _Gone
            body += message.get("body", b"")
            if len(body) > self.most_bytes:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(body)

    def _too_large(self) -> Refused:
        return Refused(413, "too-large", f"A request holds {self.most_bytes} bytes at most.")

    async def _refuse(self, send: Send, path: str, refused: Refused) -> None:
        headers = [(name.encode(), value.encode()) for name, value in refused.headers.items()]
        if refused.status == 405:
            headers.append((b"allow", ", ".join(METHODS).encode()))
        if refused.status in (408, 413):
            # The rest of the body is not wanted.
            headers.append((b"connection", b"close"))
        if speaks_json(path):
            send = with_headers(send, [(b"content-type", b"application/json")])
        words = refused.body().decode() if speaks_json(path) else refused.message
        await say(send, refused.status, words, headers=headers)


class _Gone(Exception):
    """Whoever asked has left."""


def address_of(scope: Scope, address: PublicAddress) -> str:
    """Whom a request counts for: the peer, or whom a trusted proxy names."""
    peer = str((scope.get("client") or ("",))[0])
    return address_key(asking_address(peer, _values(scope, b"x-forwarded-for"), address.trusted_proxy))


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read, then what still comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Message:
        return waiting.pop() if waiting else await receive()

    return receiving


def _without_body(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return sending
