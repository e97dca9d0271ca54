"""Ask the application as a server would, byte by byte: any host, any method, any query string."""

from __future__ import annotations

import asyncio
import html
import re
from dataclasses import dataclass, field

OWN = ((b"host", b"127.0.0.1:8000"),)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def words(self) -> str:
        """The page without markup, as a reader sees it."""
        return " ".join(html.unescape(re.sub("<[^>]*>", " ", self.text)).split())

    def links(self, part: str) -> list[str]:
        links = map(html.unescape, re.findall('href="([^"]*)"', self.text))
        return [link for link in links if part in link]


class Asking:
    """`ask("/run/..?q=x")` gives an `Answer`."""

    def __init__(self, app) -> None:
        self.app = app

    def __call__(self, address: str, *, method: str = "GET", headers=OWN) -> Answer:
        path, _, query = address.partition("?")
        return asyncio.run(self._ask(path, query.encode(), method, list(headers)))

    async def _ask(self, path, query, method, headers):
        from urllib.parse import unquote

        scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http"}
        scope |= {"path": unquote(path), "raw_path": path.encode(), "query_string": query, "headers": headers}
        scope |= {"root_path": "", "server": ("127.0.0.1", 8000), "client": ("127.0.0.1", 50000)}
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        names = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        body = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], names, body)
