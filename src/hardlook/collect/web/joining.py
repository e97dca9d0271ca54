"""How people join a study: the page of consent and its form; and the pages around the trials."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from hardlook.collect.store.records import Participant
from hardlook.collect.study.settings import ANY_DEVICE
from hardlook.collect.web.guard import client_key
from hardlook.collect.web.pages import render_page
from hardlook.collect.web.refusals import RequestRefused
from hardlook.collect.web.sessions import FORM_SECONDS, SESSION_SECONDS, is_own_origin
from hardlook.collect.web.site import Site, choose_language, find_participant
from hardlook.collect.web.tokens import derive_completion_code, read_invitation

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

# A participant is a row that stays, so joining counts as this many requests of its address.
JOIN_COST = 10
FORM = "application/x-www-form-urlencoded"


def welcome(site: Site, request: Request) -> Response:
    """The page of consent, for the open link and for invitations; redirects to the trials where a session exists."""
    from starlette.responses import HTMLResponse, RedirectResponse

    settings, token, now = site.study.settings, str(request.path_params.get("token", "")), site.clock()
    participant = find_participant(site, request)
    if participant and _is_own_link(site, participant, token):
        return RedirectResponse("/work", 303)
    _check_invitation(site, token, read_invitation(site.study.secret, token, now))
    language = choose_language(site, request.query_params.get("lang", ""))
    cookie = site.sessions.make_form_cookie(now)
    page = render_page(
        "welcome.html",
        language,
        title=settings.title,
        kind=settings.kind,
        consent=settings.consent.get(language, ""),
        contact=settings.contact,
        token=token,
        csrf=site.sessions.make_form_token(cookie),
        languages=settings.languages,
    )
    response = HTMLResponse(page)
    site.sessions.set_cookie(response, site.sessions.form_name, cookie, FORM_SECONDS)
    return response


def join(site: Site, request: Request, content: bytes) -> Response:
    """Accept the form of consent: a new participant, or the one that this invitation or browser already belongs to."""
    from starlette.responses import RedirectResponse

    now, fields = site.clock(), _parse_form(request, content)
    language = choose_language(site, fields.get("language", ""))
    # For the text of a refusal, should there be one.
    request.state.language = language
    if not is_own_origin(request.headers, site.address.origin):
        raise RequestRefused(403, "other-origin", "This must come from the study's own page.")
    if not site.sessions.is_valid_form(request.cookies, fields.get("csrf", ""), now):
        raise RequestRefused(403, "form", "The form is too old, or cookies are not allowed. Open your link again.")
    token = fields.get("token", "")
    participant, invitation = find_participant(site, request), read_invitation(site.study.secret, token, now)
    if participant is None or not _is_own_link(site, participant, token):
        _check_invitation(site, token, invitation)
        if fields.get("agree") != "yes":
            message = "Without your consent nothing can start. Go back and tick the box."
            raise RequestRefused(422, "no-consent", message)
        wait = site.client_limiter.take(client_key(request.scope, site.address), now, JOIN_COST)
        if wait:
            message = "Too many people start from this address. Please wait."
            raise RequestRefused(429, "too-many", message, wait=wait)
        participant = site.store.join(invitation, language, now)
        if site.study.settings.kind != "clicks":
            site.store.set_device(participant.id, ANY_DEVICE, now)
    response = RedirectResponse("/work", 303)
    cookie = site.sessions.make_cookie(participant.id, now)
    site.sessions.set_cookie(response, site.sessions.name, cookie, SESSION_SECONDS)
    return response


def work(site: Site, request: Request) -> Response:
    """The page whose scripts run the trials.

    It is the same without a session: a browser that follows another site's link sends its cookie only with the
    requests that the page makes itself, and those report a missing session.
    """
    return _page(site, request, find_participant(site, request), "work.html")


def privacy(site: Site, request: Request) -> Response:
    """What is stored about a person."""
    return _page(site, request, find_participant(site, request), "privacy.html", contact=site.study.settings.contact)


def done(site: Site, request: Request) -> Response:
    """The last page; it shows the completion code to those who completed a batch."""
    participant = find_participant(site, request)
    code = find_completion_code(site, participant.id) if participant else None
    return _page(site, request, participant, "done.html", code=code)


def find_completion_code(site: Site, participant: str) -> str | None:
    """The completion code of a participant who completed at least one batch."""
    earned = site.store.tally(participant).complete > 0
    return derive_completion_code(site.study.secret, participant) if earned else None


def _page(site: Site, request: Request, participant: Participant | None, template: str, **values: object) -> Response:
    from starlette.responses import HTMLResponse

    language = choose_language(site, request.query_params.get("lang", participant.language if participant else ""))
    return HTMLResponse(render_page(template, language, title=site.study.settings.title, **values))


def _is_own_link(site: Site, participant: Participant, token: str) -> bool:
    """Whether a participant joined by this link, expired or not; an open link is everyone's."""
    return not token or (participant.invitation or "") == read_invitation(site.study.secret, token, now=0.0)


def _check_invitation(site: Site, token: str, invitation: str | None) -> None:
    if token and invitation is None:
        raise RequestRefused(403, "invitation", "This link is not valid, or too old.")
    if not token and not site.study.settings.open_link:
        raise RequestRefused(403, "invitation-needed", "This study is for people with a link of their own.")


def _parse_form(request: Request, content: bytes) -> dict[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise RequestRefused(415, "content-type", "A form was expected.")
    try:
        pairs = parse_qsl(content.decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="replace")
    except ValueError:
        raise RequestRefused(400, "not-a-form", "The form cannot be read.") from None
    return dict(pairs)
