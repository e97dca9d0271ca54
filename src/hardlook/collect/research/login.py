"""The door of the dashboard: a form for the researchers' key, and the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hardlook.collect.research import pages
from hardlook.collect.research.parameters import read_pairs
from hardlook.collect.research.refusals import Refused
from hardlook.collect.web.refusals import Refused as RefusedAtGate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

FORM_TOKEN = "token"
_LOG_IN = "Log in first."


class Gate(Protocol):
    """Who is a researcher, and which forms are ours; a wrong key is refused by `log_in`."""

    def researcher(self, request: Request) -> bool:
        """Whether the request carries a researcher's cookie."""

    def form_token(self, request: Request) -> str:
        """What every form holds."""

    def form_ok(self, request: Request, value: str) -> bool:
        """Whether a form was made by our own page for this researcher."""

    def log_in(self, request: Request, key: str) -> Response:
        """To the dashboard with a new cookie."""

    def log_out(self, request: Request) -> Response:
        """To the login page, the cookie forgotten."""


def login_routes(gate: Gate, title: str) -> list[Route]:
    """GET and POST of /research/login, and POST of /research/logout; `title` is the study's."""
    from starlette.routing import Route

    async def ask(request: Request) -> Response:
        from starlette.responses import RedirectResponse

        return RedirectResponse("/research", 303) if gate.researcher(request) else login_page(title)

    async def enter(request: Request) -> Response:
        try:
            return gate.log_in(request, _field(await request.body(), "key"))
        except RefusedAtGate as refused:
            return login_page(title, refused.message, refused.status, refused.headers)

    async def leave(request: Request) -> Response:
        if not gate.form_ok(request, _field(await request.body(), FORM_TOKEN)):
            return login_page(title, _LOG_IN, 403)
        return gate.log_out(request)

    return [
        Route("/research/login", ask, methods=["GET"]),
        Route("/research/login", enter, methods=["POST"]),
        Route("/research/logout", leave, methods=["POST"]),
    ]


def login_page(title: str, message: str = "", status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The form; with a message where something was refused."""
    from starlette.responses import HTMLResponse

    return HTMLResponse(pages.render("login.html", title=title, message=message), status, headers)


def turned_away(title: str) -> Response:
    """What a page shows to whoever is not logged in."""
    return login_page(title, _LOG_IN, 403)


def _field(body: bytes, name: str) -> str:
    try:
        return dict(read_pairs(body)).get(name, "")
    except Refused:
        return ""
