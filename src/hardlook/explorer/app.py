"""The explorer as a web application: which address shows which page, and what an error looks like."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardlook.errors import HardlookError
from hardlook.explorer import pages
from hardlook.explorer.addresses import Pairs, only, read_pairs, take
from hardlook.explorer.compare_view import compare_view
from hardlook.explorer.index_view import index_view
from hardlook.explorer.library import Library
from hardlook.explorer.painting import png_of
from hardlook.explorer.refusals import Refused, in_words
from hardlook.explorer.run_view import run_view
from hardlook.explorer.safety import Guard
from hardlook.explorer.unit_view import overlay_of, row_of, unit_view
from hardlook.extras import require
from hardlook.serving.asgi import Application

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_PICTURES = 10_000
View = Callable[[Library, str, Pairs], dict[str, Any]]


def make_app(root: Path, *, host: str = "127.0.0.1", benchmarks: Collection[str] = ()) -> Application:
    """The application over the runs below `root`, for a server on `host`.

    `benchmarks` are those named as `package.module:attribute` that may be loaded.
    """
    require("starlette", extra="web")
    from starlette.applications import Starlette
    from starlette.routing import Route

    library = Library(root, benchmarks)
    routes = [
        Route("/", _page(library, "index.html", lambda library, key, pairs: index_view(library))),
        Route("/run/{key}", _page(library, "run.html", run_view)),
        Route("/run/{key}/unit", _page(library, "unit.html", unit_view)),
        Route("/run/{key}/picture", _answer(library, _picture)),
        Route("/compare", _page(library, "compare.html", lambda library, key, pairs: compare_view(library, pairs))),
        Route("/style.css", _text(pages.style, "text/css")),
        Route("/explorer.js", _text(pages.script, "text/javascript")),
        Route("/{path:path}", _answer(library, _nowhere)),
    ]
    return Guard(Starlette(routes=routes), host)


def _page(library: Library, template: str, view: View) -> Callable[[Request], Response]:
    def respond(library: Library, key: str, pairs: Pairs) -> Response:
        from starlette.responses import HTMLResponse

        return HTMLResponse(pages.render(template, **view(library, key, pairs)))

    return _answer(library, respond)


def _answer(library: Library, respond: Callable[[Library, str, Pairs], Response]) -> Callable[[Request], Response]:
    """The endpoint: plain functions run in threads, so that a slow page holds up no other."""

    def endpoint(request: Request) -> Response:
        key = str(request.path_params.get("key", ""))
        try:
            return respond(library, key, read_pairs(request.scope["query_string"]))
        except Refused as refused:
            return _refusal(refused.message, refused.status)
        except (HardlookError, OSError) as error:
            return _refusal(f"This cannot be shown: {in_words(error, library.root)}.", 500)
        except Exception as error:
            logging.getLogger(__name__).exception("a page could not be made")
            return _refusal(f"This cannot be shown: {in_words(error, library.root)}.", 500)

    return endpoint


def _picture(library: Library, key: str, pairs: Pairs) -> Response:
    from starlette.responses import Response

    named, rest = take(pairs, ("id", "number", "overlay"))
    if rest:
        raise Refused("A picture takes id, number and overlay, and nothing else.")
    run = library.run(key)
    table = library.table(run)
    row = table.frame.row(row_of(table, only(named["id"], "id")), named=True)
    number, overlay = only(named["number"], "number"), overlay_of(named["overlay"])
    pictures = library.pictures(run, row)
    known = number.isascii() and number.isdigit() and len(number) < 6 and int(number) < len(pictures)
    if not known:
        raise Refused(f"There is no such picture: the unit has {len(pictures)}, counted from 0.", 404)
    return Response(png_of(pictures[int(number)], overlay=overlay), media_type="image/png")


def _nowhere(library: Library, key: str, pairs: Pairs) -> Response:
    raise Refused("There is no such page.", 404)


def _refusal(message: str, status: int) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(pages.render("refused.html", title="Nothing to show", message=message), status_code=status)


def _text(content: Callable[[], str], kind: str) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        from starlette.responses import Response

        return Response(content(), media_type=kind)

    return endpoint
