"""The study as a web application: which address is answered by what, and how a refusal looks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
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
from hardlook.collect.web.picture_routes import picture
from hardlook.collect.web.public_address import PublicAddress
from hardlook.collect.web.refusals import Refused, failed
from hardlook.collect.web.sessions import Sessions
from hardlook.collect.web.site import Site, check_origin, read_body, visiting
from hardlook.collect.web.static_routes import static
from hardlook.collect.web.telling import answering, reading, refusal
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
        return refusal(site, request, Refused(status, code, words), headers)

    async def unforeseen(request: Request, error: Exception) -> Response:
        # What no endpoint caught; the server logs it.
        return refusal(site, request, failed())

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

    def health() -> Response:
        # Nobody has this id; what is asked is whether the database answers.
        site.store.participant("nobody")
        return JSONResponse({"ok": True})

    read: dict[str, Callable[[Request], Response]] = {
        "/": lambda request: joining.welcome(site, request),
        "/join/{token}": lambda request: joining.welcome(site, request),
        "/work": lambda request: joining.work(site, request),
        "/done": lambda request: joining.done(site, request),
        "/privacy": lambda request: joining.privacy(site, request),
        "/static/{name}": static,
        "/health": lambda request: health(),
        "/api/openapi.json": lambda request: JSONResponse(document),
        "/pictures/{trial}/{what}": lambda request: picture(visiting(site, request), **request.path_params),
    }
    routes = [Route(path, answering(site, reading(respond)), methods=["GET"]) for path, respond in read.items()]
    routes.append(Route("/join", answering(site, partial(joining.join, site)), methods=["POST"]))
    operations = [(one, answering(site, partial(_operate, site, one))) for one in OPERATIONS]
    return routes + [Route(one.path, endpoint, methods=[one.method]) for one, endpoint in operations]


def _operate(site: Site, operation: Operation, request: Request, content: bytes) -> Response:
    """An operation of the API: who asks and what is said are checked before anything is done."""
    from starlette.responses import JSONResponse

    words: list[Any] = []
    if operation.body:
        check_origin(site, request)
        words = [read_body(request, content, operation.body)]
    words += request.path_params.values()
    return JSONResponse(operation.act(visiting(site, request), *words))


def _research(site: Site, gate: Gate) -> list[Route]:
    """The researchers' pages, and the link with the key that the server prints."""
    from starlette.routing import Route

    by_key = reading(lambda request: gate.log_in(request, request.path_params["key"]))
    dashboard = research_routes(site.study, site.store, gate, site.clock, public_url=site.address.origin)
    return [Route(f"{HOME}/key/{{key}}", answering(site, by_key), methods=["GET"]), *dashboard]
