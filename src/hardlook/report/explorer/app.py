"""The explorer as a web application with its server: routes, error pages, what requests and pages are allowed to do."""

from __future__ import annotations

import html
import logging
import threading
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook import serving
from hardlook.errors import HardlookError
from hardlook.extras import require
from hardlook.fingerprints import hash_value
from hardlook.report.charts.palette import stylesheet
from hardlook.report.explorer import display, urls, views
from hardlook.report.explorer.run_data import RunData, StillListing
from hardlook.report.explorer.run_index import RunIndex
from hardlook.report.explorer.thumbnails import draw_message
from hardlook.report.pictures import encode_png

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
    *serving.ISOLATION_HEADERS,
    (b"referrer-policy", b"no-referrer"),
)

# A thumbnail's address changes with the run's records. Its image could still be replaced, so it is not kept for ever.
THUMBNAIL_SECONDS = 600
RETRY_SECONDS = 2


class RequestGuard:
    """Rejects requests for other hosts, other methods and overlong URLs, and sets the headers of every response."""

    def __init__(self, app: serving.Application, host: str) -> None:
        self.app, self.host = app, host

    async def __call__(self, scope: serving.Scope, receive: serving.Receive, send: serving.Send) -> None:
        """Answer a request, or reject it with a line of text."""
        if scope["type"] != "http":
            return
        sending = serving.add_headers(_forbid_storing(send), HEADERS)
        status, message = self._reject(scope)
        if status:
            allow = [(b"allow", b"GET, HEAD")] if status == 405 else []
            await serving.send_text(sending, status, message, head=scope["method"] == "HEAD", headers=allow)
        else:
            await self.app(scope, receive, sending)

    def _reject(self, scope: serving.Scope) -> tuple[int, str]:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
        if len(hosts) != 1 or not serving.is_allowed_host(hosts[0], self.host):
            return 421, "This server answers to its own address only."
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "Only GET and HEAD are allowed."
        if len(scope["query_string"]) > MAX_QUERY or len(scope["path"]) > MAX_PATH:
            return 414, f"The address is too long: at most {MAX_QUERY} bytes after the question mark."
        return 0, ""


def _forbid_storing(send: serving.Send) -> serving.Send:
    """A `send` that forbids browsers to keep a response, unless the response says for how long."""

    async def send_unstored(message: serving.Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            if not any(name.lower() == b"cache-control" for name, _ in given):
                message = {**message, "headers": [*given, (b"cache-control", b"no-store")]}
        await send(message)

    return send_unstored


def render_template(template: str, **values: object) -> str:
    """A page; texts are escaped, `Markup` is not.

    >>> "&lt;script&gt;" in render_template("refused.html", title="No", message="<script>")
    True
    """
    return serving.template_environment("hardlook.report.explorer").get_template(template).render(**values)


def make_app(root: Path, *, host: str = "127.0.0.1", benchmarks: Collection[str] = ()) -> serving.Application:
    """The application over the runs below `root`; `benchmarks` are the `package.module:attribute` it may load."""
    require("starlette", extra="web")
    from starlette.applications import Starlette
    from starlette.routing import Route

    data, own = RunData(root, benchmarks), "hardlook.report.explorer"
    style = stylesheet() + serving.read_package_text("hardlook.report", "style.css")
    style += serving.read_package_text(own, "static/explorer.css")
    # The script is for copying and moving by keys; every page works without it.
    script = serving.read_package_text(own, "static/explorer.js")
    routes = [
        Route("/", _make_page(data, "index.html", lambda data, *_: views.build_index_view(data))),
        Route("/run/{key}", _make_page(data, "run.html", views.build_run_view)),
        Route("/run/{key}/unit", _make_page(data, "unit.html", views.build_unit_view)),
        Route("/run/{key}/picture", _make_endpoint(data, _render_picture)),
        Route("/run/{key}/thumbnail", _make_thumbnail_endpoint(data)),
        Route("/compare", _make_page(data, "compare.html", lambda data, _, rest: views.build_compare_view(data, rest))),
        Route("/style.css", _make_text_endpoint(style, "text/css")),
        Route("/explorer.js", _make_text_endpoint(script, "text/javascript")),
        Route("/{path:path}", _make_endpoint(data, _reject_unknown)),
    ]
    return RequestGuard(Starlette(routes=routes), host)


def _make_page(
    data: RunData, template: str, view: Callable[[RunData, str, urls.Parameters], dict[str, Any]]
) -> Callable[[Request], Response]:
    def respond(data: RunData, key: str, parameters: urls.Parameters) -> Response:
        from starlette.responses import HTMLResponse

        return HTMLResponse(render_template(template, **view(data, key, parameters)))

    return _make_endpoint(data, respond)


def _make_endpoint(
    data: RunData, respond: Callable[[RunData, str, urls.Parameters], Response]
) -> Callable[[Request], Response]:
    """An endpoint with error pages; plain functions run in threads, so that a slow page does not block others."""

    def endpoint(request: Request) -> Response:
        key = str(request.path_params.get("key", ""))
        try:
            return respond(data, key, urls.parse_parameters(request.scope["query_string"]))
        except urls.PageError as refused:
            return _render_error(refused.message, refused.status)
        except Exception as error:
            if not isinstance(error, HardlookError | OSError):
                logging.getLogger(__name__).exception("a page could not be rendered")
            return _render_error(f"This cannot be shown: {urls.describe_error(error, data.root)}.", 500)

    return endpoint


def _render_picture(data: RunData, key: str, parameters: urls.Parameters) -> Response:
    from starlette.responses import Response

    named, rest = urls.split_parameters(parameters, ("id", "number", "overlay"))
    if rest:
        raise urls.PageError("A picture has the parameters id, number and overlay, and no others.")
    run = data.run(key)
    table = data.table(run)
    row = table.row(views.find_row(table, urls.get_single_value(named["id"], "id")))
    number, overlay = urls.get_single_value(named["number"], "number"), views.parse_overlay(named["overlay"])
    pictures = data.pictures(run, row)
    known = number.isascii() and number.isdigit() and len(number) < 6 and int(number) < len(pictures)
    if not known:
        raise urls.PageError(f"There is no such picture: the unit has {len(pictures)}, counted from 0.", 404)
    return Response(encode_png(pictures[int(number)], overlay=overlay), media_type="image/png")


def _make_thumbnail_endpoint(data: RunData) -> Callable[[Request], Response]:
    """Thumbnails, with an ETag that is known without drawing; browsers keep them for some minutes."""

    def respond(data: RunData, key: str, parameters: urls.Parameters, known: str) -> Response:
        from starlette.responses import Response

        named, rest = urls.split_parameters(parameters, ("id", "overlay", "v"))
        if rest:
            raise urls.PageError("A thumbnail has the parameters id, overlay and v, and no others.")
        overlay = display.parse_display({"view": [], "overlay": named["overlay"]}).overlay
        run = data.run(key)
        table = data.table(run)
        unit = urls.get_single_value(named["id"], "id")
        row = table.row(views.find_row(table, unit))
        tag = f'"{hash_value([data.state(run).fingerprint, unit, overlay])}"'
        headers = {"etag": tag, "cache-control": f"private, max-age={THUMBNAIL_SECONDS}"}
        if tag in (one.strip().removeprefix("W/") for one in known.split(",")):
            return Response(status_code=304, headers=headers)
        try:
            return Response(data.thumbnail(run, row, overlay), media_type="image/jpeg", headers=headers)
        except StillListing as error:
            return Response(str(error.what), 503, {"retry-after": str(RETRY_SECONDS)}, "text/plain")
        except Exception as error:
            # A benchmark reads files of any kind. A picture with the reason is shown where a page would not be.
            if not isinstance(error, HardlookError | OSError):
                logging.getLogger(__name__).exception("no thumbnail of %r", unit)
            message = draw_message(f"No picture: {urls.describe_error(error, data.root)}.")
            return Response(message, 500, media_type="image/svg+xml")

    def endpoint(request: Request) -> Response:
        known = request.headers.get("if-none-match", "")
        return _make_endpoint(data, lambda data, key, parameters: respond(data, key, parameters, known))(request)

    return endpoint


def _reject_unknown(data: RunData, key: str, parameters: urls.Parameters) -> Response:
    raise urls.PageError("There is no such page.", 404)


def _render_error(message: str, status: int) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(render_template("refused.html", title="Nothing to show", message=message), status_code=status)


def _make_text_endpoint(content: str, kind: str) -> Callable[[Request], Response]:
    from starlette.responses import Response

    return lambda request: Response(content, media_type=kind)


class Explorer:
    """The explorer of the runs below a folder, at `address`; it listens from the beginning and serves from `start` on.

    `notes` say that there is no run yet, `warnings` that other machines can read them.
    """

    def __init__(
        self, folder: Path, *, port: int = 0, host: str = "127.0.0.1", benchmarks: Collection[str] = ()
    ) -> None:
        require("uvicorn", extra="web")
        self.folder = folder
        self.app = make_app(folder, host=host, benchmarks=benchmarks)
        self.listening = serving.listen(host, port)
        self._running = ExitStack()
        self._stopped = threading.Event()
        self.address = serving.server_url(host, self.listening)
        self.notes: list[str] = []
        self.warnings: list[str] = []
        if not RunIndex(folder).runs():
            self.notes.append(f"{folder}: there is no run below this folder yet; reload the page when there is one")
        if host not in serving.LOOPBACK:
            who = f"{host} can be reached from other machines; anyone there"
            self.warnings.append(f"{who} can read every run and its pictures without a password")

    def start(self) -> None:
        """Serve in a thread until `stop`, or until the process ends."""
        self._running.enter_context(serving.serve_in_background(self.app, self.listening))

    def wait(self) -> None:
        """Wait until Ctrl-C, then stop; for scripts, which would end and take the server with them."""
        try:
            self._stopped.wait()
        except KeyboardInterrupt:
            self.stop()

    def stop(self) -> None:
        """End the server and free its port; a second call does nothing."""
        self._running.close()
        self.listening.close()
        self._stopped.set()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Explorer of {self.folder} at {self.address}"

    def _repr_html_(self) -> str:
        folder, address = html.escape(str(self.folder)), html.escape(self.address, quote=True)
        return f'<p>Explorer of {folder}: <a href="{address}" target="_blank">{address}</a></p>'
