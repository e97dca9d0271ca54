"""The explorer as a web application: its routes, its error pages, and what requests and pages are allowed to do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import HardlookError
from hardlook.extras import require
from hardlook.report.charts.palette import stylesheet
from hardlook.report.explorer.run_data import RunData
from hardlook.report.explorer.urls import (
    PageError,
    Parameters,
    describe_error,
    get_single_value,
    parse_parameters,
    split_parameters,
)
from hardlook.report.explorer.views import (
    build_compare_view,
    build_index_view,
    build_run_view,
    build_unit_view,
    find_row,
    parse_overlay,
)
from hardlook.report.pictures import encode_png
from hardlook.serving import (
    ISOLATION_HEADERS,
    Application,
    Receive,
    Scope,
    Send,
    add_headers,
    is_allowed_host,
    read_package_text,
    send_text,
    template_environment,
)

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


MAX_QUERY, MAX_PATH = 8192, 512

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    *ISOLATION_HEADERS,
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class RequestGuard:
    """Rejects requests for other hosts, other methods and overlong URLs, and sets the headers of every response."""

    def __init__(self, app: Application, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or reject it with a line of text."""
        if scope["type"] != "http":
            return
        sending = add_headers(send, HEADERS)
        status, message = self._reject(scope)
        if status:
            allow = [(b"allow", b"GET, HEAD")] if status == 405 else []
            await send_text(sending, status, message, head=scope["method"] == "HEAD", headers=allow)
        else:
            await self.app(scope, receive, sending)

    def _reject(self, scope: Scope) -> tuple[int, str]:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
        if len(hosts) != 1 or not is_allowed_host(hosts[0], self.host):
            return 421, "This server answers to its own address only."
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "Only GET and HEAD are allowed."
        if len(scope["query_string"]) > MAX_QUERY or len(scope["path"]) > MAX_PATH:
            return 414, f"The address is too long: at most {MAX_QUERY} bytes after the question mark."
        return 0, ""


def render_template(template: str, **values: object) -> str:
    """A page; texts are escaped, `Markup` is not.

    >>> "&lt;script&gt;" in render_template("refused.html", title="No", message="<script>")
    True
    """
    return template_environment("hardlook.report.explorer").get_template(template).render(**values)


@lru_cache(maxsize=1)
def load_stylesheet() -> str:
    """The stylesheet of reports, and the explorer's additions."""
    return (
        stylesheet()
        + read_package_text("hardlook.report", "style.css")
        + read_package_text("hardlook.report.explorer", "static/explorer.css")
    )


@lru_cache(maxsize=1)
def load_script() -> str:
    """The script for copying and moving by keys; every page works without it."""
    return read_package_text("hardlook.report.explorer", "static/explorer.js")


View = Callable[[RunData, str, Parameters], dict[str, Any]]


def make_app(root: Path, *, host: str = "127.0.0.1", benchmarks: Collection[str] = ()) -> Application:
    """The application over the runs below `root`, for a server on `host`.

    `benchmarks` are those named as `package.module:attribute` that may be loaded.
    """
    require("starlette", extra="web")
    from starlette.applications import Starlette
    from starlette.routing import Route

    data = RunData(root, benchmarks)
    routes = [
        Route("/", _make_page(data, "index.html", lambda data, key, rest: build_index_view(data))),
        Route("/run/{key}", _make_page(data, "run.html", build_run_view)),
        Route("/run/{key}/unit", _make_page(data, "unit.html", build_unit_view)),
        Route("/run/{key}/picture", _make_endpoint(data, _render_picture)),
        Route("/compare", _make_page(data, "compare.html", lambda data, key, rest: build_compare_view(data, rest))),
        Route("/style.css", _make_text_endpoint(load_stylesheet, "text/css")),
        Route("/explorer.js", _make_text_endpoint(load_script, "text/javascript")),
        Route("/{path:path}", _make_endpoint(data, _reject_unknown)),
    ]
    return RequestGuard(Starlette(routes=routes), host)


def _make_page(data: RunData, template: str, view: View) -> Callable[[Request], Response]:
    def respond(data: RunData, key: str, parameters: Parameters) -> Response:
        from starlette.responses import HTMLResponse

        return HTMLResponse(render_template(template, **view(data, key, parameters)))

    return _make_endpoint(data, respond)


def _make_endpoint(
    data: RunData, respond: Callable[[RunData, str, Parameters], Response]
) -> Callable[[Request], Response]:
    """An endpoint with error pages; plain functions run in threads, so that a slow page does not block others."""

    def endpoint(request: Request) -> Response:
        key = str(request.path_params.get("key", ""))
        try:
            return respond(data, key, parse_parameters(request.scope["query_string"]))
        except PageError as refused:
            return _render_error(refused.message, refused.status)
        except Exception as error:
            if not isinstance(error, HardlookError | OSError):
                logging.getLogger(__name__).exception("a page could not be rendered")
            return _render_error(f"This cannot be shown: {describe_error(error, data.root)}.", 500)

    return endpoint


def _render_picture(data: RunData, key: str, parameters: Parameters) -> Response:
    from starlette.responses import Response

    named, rest = split_parameters(parameters, ("id", "number", "overlay"))
    if rest:
        raise PageError("A picture has the parameters id, number and overlay, and no others.")
    run = data.run(key)
    table = data.table(run)
    row = table.frame.row(find_row(table, get_single_value(named["id"], "id")), named=True)
    number, overlay = get_single_value(named["number"], "number"), parse_overlay(named["overlay"])
    pictures = data.pictures(run, row)
    known = number.isascii() and number.isdigit() and len(number) < 6 and int(number) < len(pictures)
    if not known:
        raise PageError(f"There is no such picture: the unit has {len(pictures)}, counted from 0.", 404)
    return Response(encode_png(pictures[int(number)], overlay=overlay), media_type="image/png")


def _reject_unknown(data: RunData, key: str, parameters: Parameters) -> Response:
    raise PageError("There is no such page.", 404)


def _render_error(message: str, status: int) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(render_template("refused.html", title="Nothing to show", message=message), status_code=status)


def _make_text_endpoint(content: Callable[[], str], kind: str) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        from starlette.responses import Response

        return Response(content(), media_type=kind)

    return endpoint
