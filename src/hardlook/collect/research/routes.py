"""Which address of the dashboard is answered by what, behind the researchers' gate."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from hardlook.collect.research import pages
from hardlook.collect.research.dashboard import Asking, Dashboard
from hardlook.collect.research.export_view import archive_name
from hardlook.collect.research.login import FORM_TOKEN, Gate, login_routes, turned_away
from hardlook.collect.research.parameters import Pairs, read_pairs
from hardlook.collect.research.refusals import Refused
from hardlook.collect.research.snapshot import NotYet
from hardlook.collect.study.folder import Study
from hardlook.errors import HardlookError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from hardlook.collect.store.store import Store

_PIECE = 1 << 18


def research_routes(
    study: Study, store: Store, gate: Gate, clock: Callable[[], float], *, public_url: str = ""
) -> list[Route]:
    """The routes below /research; `public_url` is the address that participants type, where a proxy stands there.

    Style, script, icon and login page are open to anybody; all else needs a researcher's cookie, and what changes
    something a form's token as well.
    """
    from starlette.routing import Route

    board = Dashboard(study, store, clock)
    door = _Door(gate, study.settings.title, public_url)
    shown = {
        "": board.overview,
        "/participants": board.participants,
        "/images": board.images,
        "/images/{task}": board.image,
        "/rules": board.rules,
        "/export": board.export,
        "/links": board.links,
    }
    routes = [Route(f"/research{path}", door.page(make)) for path, make in shown.items()]
    routes += [
        Route("/research/pictures/{task}/{size}", door.inside(lambda request: _picture(board, request))),
        Route("/research/export/files.zip", door.inside(lambda request: _archive(board))),
        Route("/research/rules", door.change(board.save_rules, moves=True), methods=["POST"]),
        Route("/research/export", door.change(board.start_export, moves=True), methods=["POST"]),
        Route("/research/links", door.change(board.make_links), methods=["POST"]),
    ]
    routes += login_routes(gate, study.settings.title)
    files = {"style.css": (pages.style, "text/css"), "research.js": (pages.script, "text/javascript")}
    files["icon.svg"] = (pages.icon, "image/svg+xml")
    return routes + [Route(f"/research/{name}", _text(*file)) for name, file in files.items()]


class _Door:
    """Endpoints that look at the cookie first; the store is read in a thread, so that a slow page holds up nobody."""

    def __init__(self, gate: Gate, title: str, public_url: str) -> None:
        self.gate, self.title, self.public_url = gate, title, public_url.rstrip("/")

    def page(self, make: Callable[[Asking], str]) -> Callable[[Request], Response]:
        """A page that is read."""

        def respond(request: Request) -> Response:
            from starlette.responses import HTMLResponse

            return HTMLResponse(make(self._asking(request, read_pairs(request.scope["query_string"]))))

        return self.inside(respond)

    def change(self, do: Callable[[Asking], str], *, moves: bool = False) -> Callable[[Request], object]:
        """A form that changes something; what `do` returns is a page, or the address to go to if it `moves`."""

        async def endpoint(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool

            body = await request.body()
            return await run_in_threadpool(
                self.inside(lambda request: self._changed(request, body, do, moves)), request
            )

        return endpoint

    def inside(self, respond: Callable[[Request], Response]) -> Callable[[Request], Response]:
        """Whatever goes wrong becomes a page that says so."""

        def endpoint(request: Request) -> Response:
            try:
                if not self.gate.researcher(request):
                    return turned_away(self.title)
                return respond(request)
            except Refused as refused:
                return _refusal(refused.message, refused.status)
            except NotYet:
                return _waiting(str(request.url.path))
            except (HardlookError, OSError) as error:
                logging.getLogger(__name__).error("a page could not be made", exc_info=error)
                said = error.what if isinstance(error, HardlookError) else type(error).__name__
                return _refusal(f"This cannot be shown right now: {said}.", 503)

        return endpoint

    def _changed(self, request: Request, body: bytes, do: Callable[[Asking], str], moves: bool) -> Response:
        from starlette.responses import HTMLResponse, RedirectResponse

        pairs = read_pairs(body)
        if not self.gate.form_ok(request, dict(pairs).get(FORM_TOKEN, "")):
            raise Refused("This form is not one of ours, or too old. Load the page again.", 403)
        made = do(self._asking(request, [pair for pair in pairs if pair[0] != FORM_TOKEN]))
        return RedirectResponse(made, 303) if moves else HTMLResponse(made)

    def _asking(self, request: Request, pairs: Pairs) -> Asking:
        base = self.public_url or f"{request.url.scheme}://{request.headers.get('host', '')}"
        return Asking(pairs, self.gate.form_token(request), base, str(request.path_params.get("task", "")))


def _picture(board: Dashboard, request: Request) -> Response:
    from starlette.responses import Response

    task, size = str(request.path_params["task"]), str(request.path_params["size"])
    if size == "small":
        return Response(board.pictures.small(task), media_type="image/jpeg")
    if size != "whole":
        raise Refused("A picture is small or whole.", 404)
    content, media = board.pictures.whole(task)
    return Response(content, media_type=media)


def _archive(board: Dashboard) -> Response:
    from starlette.responses import StreamingResponse

    state = board.job.state
    try:
        # Opened here: a newer export may remove it at any moment, and what is open stays readable.
        stream = state.archive.open("rb") if state.archive else None
    except FileNotFoundError:
        stream = None
    if stream is None:
        raise Refused("No files were made yet.", 404)
    headers = {
        "content-disposition": f'attachment; filename="{archive_name(board.study, state)}"',
        "content-length": str(stream.seek(0, 2)),
    }
    stream.seek(0)
    return StreamingResponse(_pieces(stream), media_type="application/zip", headers=headers)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    with stream:
        while piece := stream.read(_PIECE):
            yield piece


def _waiting(address: str) -> Response:
    from starlette.responses import HTMLResponse

    message = "The answers are being read. With many of them this takes some seconds."
    page = pages.render("waiting.html", title="One moment", message=message, address=address)
    return HTMLResponse(page, 503, {"retry-after": "2"})


def _refusal(message: str, status: int) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(pages.render("refused.html", title="Nothing to show", message=message), status)


def _text(content: Callable[[], str], kind: str) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        from starlette.responses import Response

        return Response(content(), media_type=kind)

    return endpoint
