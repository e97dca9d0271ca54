"""The study as a web application: which path is handled by what, and how a refusal is sent."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hardlook.collect.research.dashboard import research_routes
from hardlook.collect.study.folder import Study
from hardlook.collect.study.validity import ClickValidator
from hardlook.collect.web import joining
from hardlook.collect.web.api import OPERATIONS, Operation, openapi
from hardlook.collect.web.guard import BODY_TIMEOUT_SECONDS, Guard, PublicAddress, RateLimiter, client_key
from hardlook.collect.web.pages import load_texts, render_page, serve_static_file
from hardlook.collect.web.refusals import RequestRefused, expects_json, internal_error, to_request_refused
from hardlook.collect.web.sessions import RESEARCH_HOME, ResearcherGate, Sessions
from hardlook.collect.web.site import Site, check_origin, choose_language, parse_body, read_visit
from hardlook.collect.web.trials import serve_picture
from hardlook.extras import require
from hardlook.serving import Application

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from hardlook.collect.store.store import Store

# Handles a request, given its body; it may wait for the database, since it is called in a thread.
Respond = Callable[["Request", bytes], "Response"]

_NOT_FOUND = {404: ("nowhere", "There is no such page."), 405: ("method", "This cannot be done here.")}


def make_app(
    study: Study,
    store: Store,
    *,
    host: str = "127.0.0.1",
    public_url: str = "",
    trusted_proxy: str = "",
    research_key: str,
    clock: Callable[[], float] = time.time,
    body_timeout: float = BODY_TIMEOUT_SECONDS,
) -> Application:
    """The application of a study whose `store` is prepared, for a server on `host`.

    `public_url` is the address that participants type where a proxy stands before this server; `trusted_proxy` is
    that proxy's own address, which is believed about the client's address. `clock` gives seconds since 1970,
    `body_timeout` is the seconds that a request's body may take to arrive.
    """
    require("starlette", extra="web")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException

    address, limits = PublicAddress(host, public_url, trusted_proxy), study.settings.limits
    sessions = Sessions(study.secret, address.secure)
    limiter = RateLimiter(limits.per_address)
    site = Site(
        study, store, ClickValidator(study), clock, address, sessions, RateLimiter(limits.per_participant), limiter
    )
    gate = ResearcherGate(
        sessions,
        research_key,
        public_origin=address.origin,
        client_of=lambda request: client_key(request.scope, address),
        clock=clock,
    )

    async def refuse_route(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        headers = error.headers if isinstance(error, HTTPException) else None
        code, message = _NOT_FOUND.get(status, ("refused", "This cannot be answered."))
        return _refuse(site, request, RequestRefused(status, code, message), headers)

    async def report_failure(request: Request, error: Exception) -> Response:
        # An error that no endpoint caught; the server logs it.
        return _refuse(site, request, internal_error())

    app = Starlette(
        routes=[*_participant_routes(site), *_researcher_routes(site, gate)],
        exception_handlers={HTTPException: refuse_route, Exception: report_failure},
    )
    app.router.redirect_slashes = False
    return Guard(app, address, limiter, clock, max_bytes=limits.body_bytes, body_timeout=body_timeout)


def _participant_routes(site: Site) -> list[Route]:
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    document = openapi(site.study.settings.title)

    def check_health(request: Request) -> Response:
        # Nobody has this id; the question is whether the database answers.
        site.store.participant("nobody")
        return JSONResponse({"ok": True})

    pages: dict[str, Callable[[Request], Response]] = {
        "/": partial(joining.welcome, site),
        "/join/{token}": partial(joining.welcome, site),
        "/work": partial(joining.work, site),
        "/done": partial(joining.done, site),
        "/privacy": partial(joining.privacy, site),
        "/static/{name}": serve_static_file,
        "/health": check_health,
        "/api/openapi.json": lambda request: JSONResponse(document),
        "/pictures/{trial}/{what}": lambda request: serve_picture(read_visit(site, request), **request.path_params),
    }
    routes = [Route(path, _get(site, respond), methods=["GET"]) for path, respond in pages.items()]
    routes.append(Route("/join", _endpoint(site, partial(joining.join, site)), methods=["POST"]))
    for operation in OPERATIONS:
        endpoint = _endpoint(site, partial(_run_operation, site, operation))
        routes.append(Route(operation.path, endpoint, methods=[operation.method]))
    return routes


def _researcher_routes(site: Site, gate: ResearcherGate) -> list[Route]:
    """The researchers' pages, and the link with the key that the server prints."""
    from starlette.routing import Route

    log_in = _get(site, lambda request: gate.log_in(request, request.path_params["key"]))
    dashboard = research_routes(site.study, site.store, gate, site.clock, public_url=site.address.origin)
    return [Route(f"{RESEARCH_HOME}/key/{{key}}", log_in, methods=["GET"]), *dashboard]


def _run_operation(site: Site, operation: Operation, request: Request, content: bytes) -> Response:
    """An operation of the API: sender and body are checked before anything is done."""
    from starlette.responses import JSONResponse

    arguments: list[Any] = []
    if operation.body:
        check_origin(site, request)
        arguments = [parse_body(request, content, operation.body)]
    arguments += request.path_params.values()
    return JSONResponse(operation.run(read_visit(site, request), *arguments))


def _get(site: Site, respond: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    return _endpoint(site, lambda request, content: respond(request))


def _endpoint(site: Site, respond: Respond) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint in which every error becomes a refusal."""

    async def endpoint(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        try:
            # The guard has read the body, whole and small, only for POST.
            content = await request.body() if request.method == "POST" else b""
            return await run_in_threadpool(respond, request, content)
        except Exception as error:
            return _refuse(site, request, to_request_refused(error))

    return endpoint


def _refuse(
    site: Site, request: Request, refused: RequestRefused, headers: Mapping[str, str] | None = None
) -> Response:
    """A refusal as JSON or as a page, in the language of the sender where its code has a text there."""
    from starlette.responses import HTMLResponse, Response

    language = choose_language(site, request.query_params.get("lang", getattr(request.state, "language", "")))
    message = load_texts(language).get(f"refused.{refused.code}", refused.message)
    headers = {**refused.headers, **(headers or {})}
    if expects_json(request.scope["path"]):
        return Response(refused.to_json(message), refused.status, headers, "application/json")
    page = render_page("refused.html", language, title=site.study.settings.title, message=message)
    return HTMLResponse(page, refused.status, headers)
