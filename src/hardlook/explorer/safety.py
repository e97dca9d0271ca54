"""What keeps the explorer to itself: who may ask, how, how much, and what a page may do."""

from __future__ import annotations

from hardlook.serving.asgi import ISOLATION, Application, Receive, Scope, Send, say, with_headers
from hardlook.serving.hosts import may_ask

MOST_QUERY, MOST_PATH = 8192, 512
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    *ISOLATION,
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class Guard:
    """Lets through what is meant for us, and sets the headers of every answer."""

    def __init__(self, app: Application, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it in a line of text."""
        if scope["type"] != "http":
            return
        sending = with_headers(send, HEADERS)
        status, words = self._refusal(scope)
        if status:
            allow = [(b"allow", b"GET, HEAD")] if status == 405 else []
            await say(sending, status, words, head=scope["method"] == "HEAD", headers=allow)
        else:
            await self.app(scope, receive, sending)

    def _refusal(self, scope: Scope) -> tuple[int, str]:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
        if len(hosts) != 1 or not may_ask(hosts[0], self.host):
            return 421, "This server answers to its own address only."
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "Pages can be read, and nothing else."
        if len(scope["query_string"]) > MOST_QUERY or len(scope["path"]) > MOST_PATH:
            return 414, f"The address is too long: at most {MOST_QUERY} bytes after the question mark."
        return 0, ""
