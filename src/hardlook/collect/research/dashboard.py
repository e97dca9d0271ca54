"""The researchers' dashboard: its routes, the login, and a page per subject, each a template filled with values.

Stylesheet, script, icon and login page need no login. Everything else needs a researcher's cookie, and a request that
changes something needs the token of a form as well.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from hardlook.collect.research.exports import ExportJob, archive_name, build_export_view, format_time, start_export
from hardlook.collect.research.images import TaskPictures, build_gallery_view, build_image_view
from hardlook.collect.research.judgements import build_ratings_view, build_review_view
from hardlook.collect.research.overview import build_overview_view
from hardlook.collect.research.participants import NUMBERS, build_participants_view, build_rules_view, parse_rules_form
from hardlook.collect.research.requests import (
    STATIC_FILES,
    Pairs,
    Parameters,
    load_static_file,
    parse_pairs,
    render_page,
)
from hardlook.collect.research.snapshot import Snapshot, SnapshotPending, Snapshots
from hardlook.collect.results.exclusion_rules import ExclusionRules, find_excluded, parse_rules
from hardlook.collect.results.status import describe_participant, find_participant
from hardlook.collect.store.records import Refusal
from hardlook.collect.study.folder import Study
from hardlook.collect.web.guard import PublicAddress
from hardlook.collect.web.refusals import RequestRefused
from hardlook.collect.web.sessions import DAY, ResearcherGate
from hardlook.collect.web.tokens import make_invitation_links
from hardlook.errors import HardlookError, OptionError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from hardlook.collect.store.store import Store

FORM_TOKEN = "token"
MAX_LINKS, DEFAULT_LINKS, MAX_DAYS, DEFAULT_DAYS = 1000, 20, 3650, 30
_LOG_IN = "Log in first."
_CHUNK_BYTES = 1 << 18

# The values of a template from a snapshot, the excluded participants with the reasons, and the parameters.
View = Callable[[Snapshot, Mapping[str, str], Pairs], dict[str, Any]]

_TASK_PAGES: Mapping[str, tuple[str, str, View]] = {
    "clicks": ("Images", "images.html", build_gallery_view),
    "review": ("Candidates", "review.html", build_review_view),
    "ratings": ("Ratings", "ratings.html", build_ratings_view),
}


def list_research_routes(
    study: Study, store: Store, gate: ResearcherGate, clock: Callable[[], float], *, public_url: str = ""
) -> list[Route]:
    """The routes below /research; `public_url` is the address that participants type, if there is a proxy."""
    from starlette.routing import Route

    board = Dashboard(study, store, clock)
    endpoints = _Endpoints(gate, study.settings.title, public_url.rstrip("/"))
    pages: dict[str, Callable[[PageRequest], str]] = {
        **{path: partial(board.show, path) for path in board.views},
        "/images/{task}": board.image,
        "/participants/{number}/delete": board.ask_deletion,
        "/rules": board.rules,
        "/export": board.export,
        "/links": board.links,
    }
    routes = [Route(f"/research{path}", endpoints.page(make)) for path, make in pages.items()]
    routes += [Route(f"/research/{name}", _static_file(name)) for name in STATIC_FILES]
    return [
        *routes,
        Route("/research/pictures/{task}/{size}", endpoints.protect(lambda request: _serve_picture(board, request))),
        Route("/research/export/files.zip", endpoints.protect(lambda request: _serve_archive(board))),
        Route("/research/payments.csv", endpoints.protect(lambda request: _serve_payments(board))),
        Route("/research/rules", endpoints.form(board.save_rules, redirect=True), methods=["POST"]),
        Route("/research/export", endpoints.form(board.start_export, redirect=True), methods=["POST"]),
        Route("/research/links", endpoints.form(board.make_links), methods=["POST"]),
        Route("/research/participants/{number}/delete", endpoints.form(board.delete, redirect=True), methods=["POST"]),
        Route("/research/login", endpoints.show_login, methods=["GET"]),
        Route("/research/login", endpoints.log_in, methods=["POST"]),
        Route("/research/logout", endpoints.log_out, methods=["POST"]),
    ]


@dataclass(frozen=True)
class PageRequest:
    """What a page needs of a request: parameters or form fields, the token for its forms, the server's address."""

    pairs: Pairs
    form_token: str
    base_url: str
    task: str = ""
    number: str = ""


class Dashboard:
    """The pages of one study as HTML, from a shared snapshot of its database; `clock` gives seconds since 1970."""

    def __init__(self, study: Study, store: Store, clock: Callable[[], float]) -> None:
        self.study, self.store, self.clock = study, store, clock
        self.snapshots = Snapshots(study, store, clock)
        self.pictures = TaskPictures(study)
        self.job = ExportJob(clock)
        self.views: Mapping[str, tuple[str, str, View]] = {
            "": ("Overview", "overview.html", build_overview_view),
            "/participants": ("Participants", "participants.html", build_participants_view),
            "/images": _TASK_PAGES[study.settings.kind],
        }
        self._titles = {path: title for path, (title, _, _) in self.views.items()}
        self._titles |= {"/rules": "Rules", "/export": "Export", "/links": "Links"}

    def show(self, path: str, request: PageRequest) -> str:
        """One of `views`."""
        _, template, view = self.views[path]
        snapshot = self.snapshots.latest()
        return self._render(template, path, request, snapshot, view(snapshot, self._excluded(snapshot), request.pairs))

    def image(self, request: PageRequest) -> str:
        """One image with its clicks."""
        snapshot = self.snapshots.latest()
        values = build_image_view(snapshot, self._excluded(snapshot), request.pairs, request.task)
        return self._render("image.html", "/images", request, snapshot, {"title": values["name"], **values})

    def rules(self, request: PageRequest) -> str:
        """The rules of exclusion, and the effect of other rules."""
        snapshot = self.snapshots.latest()
        values = {"title": "Rules of exclusion", **build_rules_view(snapshot, self._saved_rules(), request.pairs)}
        return self._render("rules.html", "/rules", request, snapshot, values)

    def save_rules(self, request: PageRequest) -> str:
        """Save the rules of a form; returns the address to go to."""
        try:
            rules = parse_rules_form(Parameters(request.pairs, (*NUMBERS, "participants")))
        except ValueError as error:
            raise RequestRefused(400, "rules", str(error)) from None
        self.store.set_rules(rules.model_dump(mode="json"))
        return "/research/rules?saved=yes"

    def ask_deletion(self, request: PageRequest) -> str:
        """What would be deleted with a participant, and the form that does so."""
        Parameters(request.pairs, ())
        found = self._find_participant(request.number)
        values = {
            "title": f"Delete participant {found['number']}?",
            "lines": describe_participant(found, self.study.settings.kind)[1:],
            "number": found["number"],
        }
        return self._render("delete.html", "/participants", request, None, values)

    def delete(self, request: PageRequest) -> str:
        """Delete a participant, and everything that was made of their answers; returns the address to go to."""
        Parameters(request.pairs, ())
        try:
            number = self.store.delete_participant(self._find_participant(request.number)["participant"])
        except Refusal as refusal:
            raise RequestRefused(404, refusal.code, str(refusal)) from None
        self.snapshots.discard()
        self.job.discard()
        return f"/research/participants?deleted={number}"

    def _find_participant(self, number: str) -> dict[str, Any]:
        try:
            return find_participant(self.study, self.store, "number", number)
        except OptionError:
            raise RequestRefused(404, "unknown", "There is no participant with this number.") from None

    def export(self, request: PageRequest) -> str:
        """The state of the export."""
        Parameters(request.pairs, ())
        return self._render("export.html", "/export", request, None, build_export_view(self.study, self.job))

    def start_export(self, request: PageRequest) -> str:
        """Start writing the files; returns the address to go to."""
        start_export(self.study, self.store, self.job, Parameters(request.pairs, ("mode", "all_clicks")))
        return "/research/export"

    def links(self, request: PageRequest) -> str:
        """The form for invitation links."""
        Parameters(request.pairs, ())
        return self._render_links(request, DEFAULT_LINKS, DEFAULT_DAYS, request.base_url, [])

    def make_links(self, request: PageRequest) -> str:
        """New links, each for one participant; they are shown once, since nothing of them is stored."""
        parameters = Parameters(request.pairs, ("count", "days", "base_url"))
        count = parameters.get_integer("count", DEFAULT_LINKS, 1, MAX_LINKS)
        days = parameters.get_integer("days", DEFAULT_DAYS, 1, MAX_DAYS)
        try:
            origin = PublicAddress(url=parameters.get_text("base_url") or request.base_url).origin
        except OptionError as error:
            raise RequestRefused(400, "address", f"{error.what}; {error.remedy}.") from None
        links = make_invitation_links(self.study.secret, origin, count=count, expires=self.clock() + days * DAY)
        return self._render_links(request, count, days, origin, links)

    def _render_links(self, request: PageRequest, count: int, days: int, base_url: str, links: list[str]) -> str:
        values = {
            "title": "Invitation links",
            "links": links,
            "chosen": {"count": count, "days": days, "base_url": base_url},
            "most": MAX_LINKS,
            "most_days": MAX_DAYS,
            "open_link": self.study.settings.open_link,
            "base_url": request.base_url,
        }
        return self._render("links.html", "/links", request, None, values)

    def _saved_rules(self) -> ExclusionRules:
        return parse_rules(self.store.rules())

    def _excluded(self, snapshot: Snapshot) -> dict[str, str]:
        """Participants by id that the saved rules exclude, with the reasons."""
        return find_excluded(snapshot.quality, self._saved_rules())

    def _render(
        self, template: str, path: str, request: PageRequest, snapshot: Snapshot | None, values: dict[str, Any]
    ) -> str:
        shared = {
            "title": self._titles[path],
            "study": self.study.settings.title,
            "kind": self.study.settings.kind,
            "navigation": [(title, f"/research{path}") for path, title in self._titles.items()],
            "current": f"/research{path}",
            "form_token": request.form_token,
            "taken": format_time(snapshot.taken) if snapshot else "",
        }
        return render_page(template, **{**shared, **values})


@dataclass(frozen=True)
class _Endpoints:
    """Endpoints that check the researcher's cookie first; pages are made in threads, so that no slow one blocks."""

    gate: ResearcherGate
    title: str
    public_url: str

    def protect(self, respond: Callable[[Request], Response]) -> Callable[[Request], Response]:
        """An endpoint for researchers only, in which every error becomes a page."""

        def endpoint(request: Request) -> Response:
            from starlette.responses import HTMLResponse

            try:
                if self.gate.is_researcher(request):
                    return respond(request)
                if request.method == "GET" and request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
                    # A link on another site led here, and the browser kept the cookie back; from our page it will not.
                    query = f"?{request.url.query}" if request.url.query else ""
                    return HTMLResponse(render_entering_page(self.title, f"{request.url.path}{query}"))
                return self._login_page(_LOG_IN, 403)
            except RequestRefused as refused:
                return _error_page(refused.message, refused.status)
            except SnapshotPending:
                message = "The answers are being read. With many of them this takes some seconds."
                page = render_page("waiting.html", title="One moment", message=message, address=request.url.path)
                return HTMLResponse(page, 503, {"retry-after": "2"})
            except (HardlookError, OSError) as error:
                logging.getLogger(__name__).error("a page could not be made", exc_info=error)
                reason = error.what if isinstance(error, HardlookError) else type(error).__name__
                return _error_page(f"This cannot be shown right now: {reason}.", 503)

        return endpoint

    def page(self, make: Callable[[PageRequest], str]) -> Callable[[Request], Response]:
        """An endpoint that shows a page."""

        def respond(request: Request) -> Response:
            from starlette.responses import HTMLResponse

            return HTMLResponse(make(self._page_request(request, parse_pairs(request.scope["query_string"]))))

        return self.protect(respond)

    def form(
        self, submit: Callable[[PageRequest], str], *, redirect: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint for a form; `submit` returns a page, or with `redirect` the address to go to."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import HTMLResponse, RedirectResponse

        async def endpoint(request: Request) -> Response:
            body = await request.body()

            def respond(request: Request) -> Response:
                pairs = parse_pairs(body)
                if not self.gate.is_valid_form(request, dict(pairs).get(FORM_TOKEN, "")):
                    message = "This form is from another site or too old. Load the page again."
                    raise RequestRefused(403, "form", message)
                fields = [pair for pair in pairs if pair[0] != FORM_TOKEN]
                result = submit(self._page_request(request, fields))
                return RedirectResponse(result, 303) if redirect else HTMLResponse(result)

            return await run_in_threadpool(self.protect(respond), request)

        return endpoint

    async def show_login(self, request: Request) -> Response:
        """The form for the key; redirects to the dashboard where the researcher is logged in."""
        from starlette.responses import RedirectResponse

        return RedirectResponse("/research", 303) if self.gate.is_researcher(request) else self._login_page()

    async def log_in(self, request: Request) -> Response:
        """Check the key."""
        try:
            return self.gate.log_in(request, _read_field(await request.body(), "key"))
        except RequestRefused as refused:
            return self._login_page(refused.message, refused.status, refused.headers)

    async def log_out(self, request: Request) -> Response:
        """Delete the cookie."""
        if not self.gate.is_valid_form(request, _read_field(await request.body(), FORM_TOKEN)):
            return self._login_page(_LOG_IN, 403)
        return self.gate.log_out()

    def _login_page(self, message: str = "", status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        from starlette.responses import HTMLResponse

        return HTMLResponse(render_page("login.html", title=self.title, message=message), status, headers)

    def _page_request(self, request: Request, pairs: Pairs) -> PageRequest:
        base_url = self.public_url or f"{request.url.scheme}://{request.headers.get('host', '')}"
        task, number = (str(request.path_params.get(name, "")) for name in ("task", "number"))
        return PageRequest(pairs, self.gate.make_form_token(request), base_url, task, number)


def render_entering_page(title: str, address: str) -> str:
    """A page that loads another page of the dashboard: a navigation of our own, with which browsers send cookies."""
    return render_page("entering.html", title=title, address=address)


def _read_field(body: bytes, name: str) -> str:
    try:
        return dict(parse_pairs(body)).get(name, "")
    except RequestRefused:
        return ""


def _serve_picture(board: Dashboard, request: Request) -> Response:
    from starlette.responses import Response

    task, size = str(request.path_params["task"]), str(request.path_params["size"])
    if size == "small":
        return Response(board.pictures.small(task), media_type="image/jpeg")
    if size != "whole":
        raise RequestRefused(404, "no-picture", "A picture is small or whole.")
    content, media_type = board.pictures.whole(task)
    return Response(content, media_type=media_type)


def _serve_archive(board: Dashboard) -> Response:
    from starlette.responses import StreamingResponse

    state = board.job.state
    try:
        # Opened here: a newer export may remove it at any moment, and what is open stays readable.
        stream = state.archive.open("rb") if state.archive else None
    except FileNotFoundError:
        stream = None
    if stream is None:
        raise RequestRefused(404, "no-export", "No files were made yet.")
    disposition = f'attachment; filename="{archive_name(board.study, state)}"'
    headers = {"content-disposition": disposition, "content-length": str(stream.seek(0, 2))}
    stream.seek(0)
    return StreamingResponse(_read_chunks(stream), media_type="application/zip", headers=headers)


def _serve_payments(board: Dashboard) -> Response:
    from starlette.responses import Response

    from hardlook.collect.results.payments import build_payments

    table = build_payments(board.study, board.store).write_csv()
    return Response(
        table, media_type="text/csv", headers={"content-disposition": 'attachment; filename="payments.csv"'}
    )


def _read_chunks(stream: BinaryIO) -> Iterator[bytes]:
    with stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk


def _error_page(message: str, status: int) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(render_page("refused.html", title="Nothing to show", message=message), status)


def _static_file(name: str) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        from starlette.responses import Response

        return Response(load_static_file(name), media_type=STATIC_FILES[name])

    return endpoint
