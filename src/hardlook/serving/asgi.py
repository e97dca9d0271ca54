"""The types of an application behind a server (ASGI), and an answer in a line of text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]
# Of every answer of every server: nothing is guessed, framed, or read by pages from elsewhere.
ISOLATION = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


async def say(send: Send, status: int, words: str, *, head: bool = False, headers: Headers = ()) -> None:
    """Answer with a status and a line of text; without the text to a HEAD request."""
    body = words.encode()
    own = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": b"" if head else body})


def with_headers(send: Send, headers: Headers) -> Send:
    """A `send` that sets these headers on every answer, in place of any of the same name."""
    ours = tuple(headers)
    names = {name for name, _ in ours}

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in names]
            message = {**message, "headers": [*kept, *ours]}
        await send(message)

    return sending
