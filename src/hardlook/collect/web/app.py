"""The web application of a study: its routes, the participants' API, and how errors become responses.

Routes and the OpenAPI 3.1 description of the API are made from one table of operations. What an operation takes and
returns is read from the annotations of its function, so the description uses the very records that check requests; it
is served at /api/openapi.json.

>>> document = build_openapi("Cups")
>>> document["openapi"], sorted(document["paths"])[:2]
('3.1.0', ['/api/answers', '/api/batch'])
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from pydantic import BaseModel, TypeAdapter

from hardlook import __version__
from hardlook.collect.research.dashboard import list_research_routes, render_entering_page
from hardlook.collect.study.folder import Study
from hardlook.collect.study.settings import StudySettings
from hardlook.collect.study.validity import ClickValidator
from hardlook.collect.web import joining, messages, trials
from hardlook.collect.web.guard import (
    BODY_TIMEOUT_SECONDS,
    SECURITY_HEADERS,
    Guard,
    PublicAddress,
    RateLimiter,
    make_framed_headers,
)
from hardlook.collect.web.pages import load_texts, render_page, serve_static_file
from hardlook.collect.web.refusals import JSON_PATHS, RequestRefused, make_internal_error, to_request_refused
from hardlook.collect.web.sessions import RESEARCH_HOME, ResearcherGate, Sessions
from hardlook.collect.web.site import Site, check_origin, choose_language, parse_body, read_visit
from hardlook.collect.web.trials import serve_picture
from hardlook.errors import OptionError
from hardlook.extras import require
from hardlook.serving import LOOPBACK, Application

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from hardlook.collect.store.store import Store

# Handles a request, given its body; it may wait for the database, since it is called in a thread.
Respond = Callable[["Request", bytes], "Response"]
_ROUTING_ERRORS = {404: ("nowhere", "There is no such page."), 405: ("method", "This cannot be done here.")}
_REFERENCE = "#/components/schemas/{model}"
_READ_REFUSALS = (401, 404, 405, 414, 421, 429, 503)
_WRITE_REFUSALS = (400, 401, 403, 404, 405, 408, 409, 413, 414, 415, 421, 422, 429, 503)


@dataclass(frozen=True)
class Operation:
    """One operation; `run` is called with the visit, the body if it takes one, and the parameters of the path."""

    name: str
    path: str
    summary: str
    run: Callable[..., Mapping[str, Any]]

    @cached_property
    def body(self) -> type[BaseModel] | None:
        """The type of the request's body; None for an operation that only reads."""
        return get_type_hints(self.run).get("body")

    @property
    def method(self) -> str:
        """GET or POST."""
        return "POST" if self.body else "GET"

    @property
    def replies(self) -> tuple[Any, ...]:
        """The types of the possible replies."""
        reply = get_type_hints(self.run)["return"]
        return get_args(reply) or (reply,)


OPERATIONS = (
    Operation("state", "/api/state", "Get the participant's state", trials.get_state),
    Operation("language", "/api/language", "Change the language", trials.set_language),
    Operation("device", "/api/device", "Set the device", trials.set_device),
    Operation("trained", "/api/trained", "End the training round", trials.end_training),
    Operation("pause", "/api/pause", "Keep the open batch", trials.keep_alive),
    Operation("batch", "/api/batch", "Get the open batch or a new one", trials.get_batch),
    Operation("show", "/api/trials/{trial}/show", "Begin a trial", trials.show_trial),
    Operation("answer", "/api/answers", "Store an answer", trials.store_answer),
    Operation("training", "/api/training", "Judge a training answer", trials.check_training_answer),
)


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
    sessions = Sessions(study.secret, address.secure, framed=bool(study.settings.frame_origins))
    _check_framing(study, address)
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
    framed_headers = _choose_framed_headers(study.settings)
    max_bytes = limits.body_bytes
    return Guard(
        app, address, limiter, clock, max_bytes=max_bytes, body_timeout=body_timeout, framed_headers=framed_headers
    )


def _check_framing(study: Study, address: PublicAddress) -> None:
    """Browsers keep the cookies of a framed page over https only, and on this machine."""
    if study.settings.frame_origins and not address.secure and (address.url or address.host not in LOOPBACK):
        raise OptionError(
            "frame_origins: the pages can be shown in a frame over https only",
            file=study.path / "study.json",
            remedy="pass --public-url https://..., or serve it on this machine alone to try it",
        )


def _choose_framed_headers(settings: StudySettings) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of the participants' pages."""
    if not settings.frame_origins:
        return SECURITY_HEADERS
    return make_framed_headers(settings.frame_origins, settings.submit_origin)


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


def build_openapi(title: str) -> dict[str, Any]:
    """The OpenAPI document."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths[operation.path] = {operation.method.lower(): _describe_operation(operation, schemas)}
    paths["/pictures/{trial}/{what}"] = {"get": _describe_picture(schemas)}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"{title}: the participants' API", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token", "description": "from /api/state"}
            },
        },
    }


def _describe_operation(operation: Operation, schemas: dict[str, Any]) -> dict[str, Any]:
    replies = [_schema(reply, schemas) for reply in operation.replies]
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {
            "200": _json("done", replies[0] if len(replies) == 1 else {"anyOf": replies}),
            **_describe_refusals(schemas, _WRITE_REFUSALS if operation.body else _READ_REFUSALS),
        },
    }
    if operation.body:
        described["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _schema(operation.body, schemas)}},
        }
        described["security"] = [{"csrf": []}]
    if "{trial}" in operation.path:
        described["parameters"] = [_parameter("trial", {"type": "string"})]
    return described


def _describe_picture(schemas: dict[str, Any]) -> dict[str, Any]:
    image = {"schema": {"type": "string", "contentMediaType": "image/*"}}
    return {
        "operationId": "picture",
        "summary": "A picture, from the show of its trial to its answer",
        "parameters": [
            _parameter("trial", {"type": "string"}),
            _parameter("what", {"enum": ["image", "target", "feedback"]}),
        ],
        "responses": {
            "200": {"description": "the picture", "content": {"image/png": image, "image/jpeg": image}},
            **_describe_refusals(schemas, _READ_REFUSALS),
        },
    }


def _describe_refusals(schemas: dict[str, Any], statuses: tuple[int, ...]) -> dict[str, Any]:
    failure = _schema(messages.Failure, schemas)
    return {str(status): _json(HTTPStatus(status).phrase, failure) for status in statuses}


def _json(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _schema(record: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """A reference to a record's schema, which is added to `schemas` with all that it needs."""
    made = TypeAdapter(record).json_schema(ref_template=_REFERENCE)
    schemas.update(made.pop("$defs", {}))
    schemas[record.__name__] = made
    return {"$ref": _REFERENCE.format(model=record.__name__)}
