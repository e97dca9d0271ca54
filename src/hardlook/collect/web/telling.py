"""How a refusal is told: in the language of whoever asked, as JSON to programs and as a page to people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from hardlook.collect.web.pages import render
from hardlook.collect.web.refusals import Refused, as_refused, speaks_json
from hardlook.collect.web.site import Site, language_of
from hardlook.collect.web.texts import texts

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

# What answers a request, given its body; it may wait for the database, since it is called in a thread.
Respond = Callable[["Request", bytes], "Response"]


def answering(site: Site, respond: Respond) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of an answer: whatever goes wrong becomes a refusal."""

    async def endpoint(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        try:
            # Only of a POST has the guard read the body, whole and small.
            content = await request.body() if request.method == "POST" else b""
            return await run_in_threadpool(respond, request, content)
        except Exception as error:
            return refusal(site, request, as_refused(error))

    return endpoint


def reading(respond: Callable[[Request], Response]) -> Respond:
    """What answers without a look at the body."""
    return lambda request, content: respond(request)


def refusal(site: Site, request: Request, refused: Refused, headers: Mapping[str, str] | None = None) -> Response:
    """The answer that says no; a language may have words of its own for its code, else it is told in English."""
    from starlette.responses import HTMLResponse, Response

    language = language_of(site, request.query_params.get("lang", getattr(request.state, "language", "")))
    words = texts(language).get(f"refused.{refused.code}", refused.message)
    named = {**refused.headers, **(headers or {})}
    if speaks_json(request.scope["path"]):
        return Response(refused.body(words), refused.status, named, "application/json")
    page = render("refused.html", language, title=site.study.settings.title, message=words)
    return HTMLResponse(page, refused.status, named)
