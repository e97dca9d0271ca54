"""The web application of a study: its routes, and how errors become responses."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hardlook.collect.research.dashboard import list_research_routes, render_entering_page
from hardlook.collect.study.folder import Study
from hardlook.collect.study.validity import ClickValidator
from hardlook.collect.web import joining
from hardlook.collect.web.api import OPERATIONS, Operation, build_openapi
from hardlook.collect.web.guard import BODY_TIMEOUT_SECONDS, Guard, PublicAddress, RateLimiter
from hardlook.collect.web.pages import load_texts, render_page, serve_static_file
from hardlook.collect.web.refusals import JSON_PATHS, RequestRefused, make_internal_error, to_request_refused
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
_ROUTING_ERRORS = {404: ("nowhere", "There is no such page."), 405: ("method", "This cannot be done here.")}


def make_app(
    study: Study,
    store: Store,
    address: PublicAddress | None = None,
    *,
    research_key: str,
    clock: Callable[[], float] = time.time,
    body_timeout: float = BODY_TIMEOUT_SECONDS,
) -> Application:
    """The app of a prepared study, served at `address`; `clock` gives seconds since 1970, `body_timeout` is seconds."""
    require("starlette", extra="web")
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    address, limits = address or PublicAddress(), study.settings.limits
    sessions = Sessions(study.secret, address.secure)
    limiter = RateLimiter(limits.per_address)
    own_limiter = RateLimiter(limits.per_participant)
    site = Site(study, store, ClickValidator(study), clock, address, sessions, own_limiter, limiter)
    gate = ResearcherGate(sessions, research_key, address, clock)
    # The server prints a link with the key, which logs a researcher in.
    entering = render_entering_page(study.settings.title, RESEARCH_HOME)
    log_in = _make_get_endpoint(site, lambda request: gate.log_in(request, request.path_params["key"], entering))

    async def refuse_route(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code, message = _ROUTING_ERRORS.get(error.status_code, ("refused", "This cannot be answered."))
        return _refuse(site, request, RequestRefused(error.status_code, code, message), error.headers)

    async def report_failure(request: Request, error: Exception) -> Response:
        # An error that no endpoint caught; the server logs it.
        return _refuse(site, request, make_internal_error())

    app = Starlette(
        routes=[
            *_list_participant_routes(site),
            Route(f"{RESEARCH_HOME}/key/{{key}}", log_in, methods=["GET"]),
            *list_research_routes(study, store, gate, clock, public_url=address.origin),
        ],
        exception_handlers={HTTPException: refuse_route, Exception: report_failure},
    )
    app.router.redirect_slashes = False
    return Guard(app, address, limiter, clock, max_bytes=limits.body_bytes, body_timeout=body_timeout)


def _list_participant_routes(site: Site) -> list[Route]:
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    document = build_openapi(site.study.settings.title)

    def check_health(request: Request) -> Response:
        # No participant has this id; this only checks that the database answers.
        site.store.participant("none")
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
    routes = [Route(path, _make_get_endpoint(site, respond), methods=["GET"]) for path, respond in pages.items()]
    routes.append(Route("/join", _make_endpoint(site, partial(joining.join, site)), methods=["POST"]))
    for operation in OPERATIONS:
        endpoint = _make_endpoint(site, partial(_run_operation, site, operation))
        routes.append(Route(operation.path, endpoint, methods=[operation.method]))
    return routes


def _run_operation(site: Site, operation: Operation, request: Request, content: bytes) -> Response:
    """Check the sender and the body of a request, then run the operation of the API."""
    from starlette.responses import JSONResponse

    arguments: list[Any] = []
    if operation.body:
        check_origin(site, request)
        arguments = [parse_body(request, content, operation.body)]
    arguments += request.path_params.values()
    return JSONResponse(operation.run(read_visit(site, request), *arguments))


def _make_get_endpoint(site: Site, respond: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    return _make_endpoint(site, lambda request, content: respond(request))


def _make_endpoint(site: Site, respond: Respond) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that calls `respond` in a thread and answers every error with a refusal."""

    async def endpoint(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        try:
            # The guard reads the whole body and limits its size for POST only.
            content = await request.body() if request.method == "POST" else b""
            return await run_in_threadpool(respond, request, content)
        except Exception as error:
            return _refuse(site, request, to_request_refused(error))

    return endpoint


def _refuse(
    site: Site, request: Request, refused: RequestRefused, headers: Mapping[str, str] | None = None
) -> Response:
    """A refusal as JSON or as a page, in the sender's language where that language has a text for its code."""
    from starlette.responses import HTMLResponse, Response

    language = choose_language(site, request.query_params.get("lang", getattr(request.state, "language", "")))
    message = load_texts(language).get(f"refused.{refused.code}", refused.message)
    headers = {**refused.headers, **(headers or {})}
    if request.scope["path"].startswith(JSON_PATHS):
        return Response(refused.to_json(message), refused.status, headers, "application/json")
    page = render_page("refused.html", language, title=site.study.settings.title, message=message)
    return HTMLResponse(page, refused.status, headers)
