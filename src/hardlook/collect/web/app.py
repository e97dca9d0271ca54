"""The study as a web application: which address is answered by what, and how a refusal looks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hardlook.collect.research.routes import research_routes
from hardlook.collect.study.folder import Study
from hardlook.collect.study.validity import Judge
from hardlook.collect.web import joining
from hardlook.collect.web.gate import HOME, Gate
from hardlook.collect.web.guard import PATIENCE_SECONDS, Guard, address_of
from hardlook.collect.web.limits import Buckets
from hardlook.collect.web.openapi import openapi
from hardlook.collect.web.operations import OPERATIONS, Operation
from hardlook.collect.web.pages import render
from hardlook.collect.web.picture_routes import picture
from hardlook.collect.web.public_address import PublicAddress
from hardlook.collect.web.refusals import Endpoint, Refused, RefusedPage, answering, failed, refusal
from hardlook.collect.web.sessions import Sessions
from hardlook.collect.web.site import Site, check_origin, read_body, visiting
from hardlook.collect.web.static_routes import static
from hardlook.collect.web.texts import texts
from hardlook.extras import require
from hardlook.serving.asgi import Application

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from hardlook.collect.store.store import Store

_NOWHERE = {404: ("nowhere", "There is no such page."), 405: ("method", "This cannot be done here.")}


def make_app(
    study: Study,
    store: Store,
    *,
    host: str = "127.0.0.1",
    public_url: str = "",
    trusted_proxy: str = "",
    research_key: str,
    clock: Callable[[], float] = time.time,
    patience: float = PATIENCE_SECONDS,
) -> Application:
    """The application of a study whose `store` is prepared, for a server on `host`.

    `public_url` is the address that participants type where a proxy stands before this server; `trusted_proxy` is
    that proxy's own address, which is believed when it says who asks. `clock` gives seconds since 1970, `patience` is
    how many of them a request's body may take.
    """
    require("starlette", extra="web")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException

    address, limits = PublicAddress(host, public_url, trusted_proxy), study.settings.limits
    sessions = Sessions(study.secret, address.secure)
    addresses = Buckets(limits.per_address)
    site = Site(study, store, Judge(study), clock, address, sessions, Buckets(limits.per_participant), addresses)
    gate = Gate(
        sessions,
        research_key,
        public_url=address.origin,
        address_of=lambda request: address_of(request.scope, address),
        clock=clock,
    )

    async def nowhere(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        headers = error.headers if isinstance(error, HTTPException) else None
        code, words = _NOWHERE.get(status, ("refused", "This cannot be answered."))
        return refusal(request, Refused(status, code, words), _page_of(site), headers)

    async def unforeseen(request: Request, error: Exception) -> Response:
        # What no endpoint caught; the server logs it.
        return refusal(request, failed(), _page_of(site))

    app = Starlette(
        routes=[*_routes(site), *_research(site, gate)],
        exception_handlers={HTTPException: nowhere, Exception: unforeseen},
    )
    app.router.redirect_slashes = False
    return Guard(app, address, addresses, clock, most_bytes=limits.body_bytes, patience=patience)


def _routes(site: Site) -> list[Route]:
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    document = openapi(site.study.settings.title)

    async def described(request: Request) -> Response:
        return JSONResponse(document)

    async def health(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        # Nobody has this id; what is asked is whether the database answers.
        await run_in_threadpool(site.store.participant, "nobody")
        return JSONResponse({"ok": True})

    pages = (
        ("/", joining.welcome),
        ("/join/{token}", joining.welcome),
        ("/work", joining.work),
        ("/done", joining.done),
        ("/privacy", joining.privacy),
    )
    page = _page_of(site)
    return [
        *(Route(path, answering(_reading(site, respond), page), methods=["GET"]) for path, respond in pages),
        Route("/join", answering(_joining(site), page), methods=["POST"]),
        Route("/static/{name}", answering(static, page), methods=["GET"]),
        Route("/health", answering(health, page), methods=["GET"]),
        Route("/api/openapi.json", answering(described, page), methods=["GET"]),
        *(Route(one.path, answering(_operation(site, one), page), methods=[one.method]) for one in OPERATIONS),
        Route("/pictures/{trial}/{what}", answering(_picture(site), page), methods=["GET"]),
    ]


def _reading(site: Site, respond: Callable[[Site, Request], Response]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(respond, site, request)

    return endpoint


def _joining(site: Site) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(joining.join, site, request, await request.body())

    return endpoint


def _operation(site: Site, operation: Operation) -> Endpoint:
    """An operation of the API: who asks and what is said are checked before anything is done."""

    async def endpoint(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse

        words: list[Any] = []
        if operation.body:
            check_origin(site, request)
            words = [read_body(request, await request.body(), operation.body)]
        words += request.path_params.values()
        return JSONResponse(await run_in_threadpool(lambda: operation.act(visiting(site, request), *words)))

    return endpoint


def _picture(site: Site) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        trial, what = str(request.path_params["trial"]), str(request.path_params["what"])
        return await run_in_threadpool(lambda: picture(visiting(site, request), trial, what))

    return endpoint


def _research(site: Site, gate: Gate) -> list[Route]:
    """The researchers' pages, and the link with the key that the server prints."""
    from starlette.routing import Route

    async def by_key(request: Request) -> Response:
        return gate.log_in(request, str(request.path_params["key"]))

    dashboard = research_routes(site.study, site.store, gate, site.clock, public_url=site.address.origin)
    return [Route(f"{HOME}/key/{{key}}", answering(by_key, _page_of(site)), methods=["GET"]), *dashboard]


def _page_of(site: Site) -> RefusedPage:
    def page(request: Request, refused: Refused) -> str:
        known = getattr(request.state, "language", "")
        language = joining.language_of(site, request.query_params.get("lang", known))
        # A language may have words of its own for a refusal; else it is told in English.
        message = texts(language).get(f"refused.{refused.code}", refused.message)
        return render("refused.html", language, title=site.study.settings.title, message=message)

    return page
