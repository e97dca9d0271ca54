"""How somebody becomes a participant: the page of consent and its form; and the pages around the work."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from hardlook.collect.store.records import Participant
from hardlook.collect.study.settings import ANY_DEVICE
from hardlook.collect.web.codes import completion_code
from hardlook.collect.web.csrf import from_our_page
from hardlook.collect.web.guard import address_of
from hardlook.collect.web.invitations import invitation_in
from hardlook.collect.web.pages import render
from hardlook.collect.web.refusals import Refused
from hardlook.collect.web.sessions import FORM_HOURS, SESSION_DAYS
from hardlook.collect.web.site import Site, language_of, session_of
from hardlook.collect.web.tokens import sign

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

# A participant costs a row that stays, so that a join counts as so many requests of its address.
JOIN_COSTS = 10
FORM = "application/x-www-form-urlencoded"


def welcome(site: Site, request: Request) -> Response:
    """The page of consent, for the open link and for invitations; whoever has a session goes on at once."""
    from starlette.responses import HTMLResponse, RedirectResponse

    settings, token, now = site.study.settings, str(request.path_params.get("token", "")), site.clock()
    here = _known(site, request)
    if here and _is_theirs(site, here, token):
        return RedirectResponse("/work", 303)
    _check_invited(site, token, invitation_in(site.study.secret, token, now))
    language = language_of(site, request.query_params.get("lang", ""))
    cookie = sign(site.study.secret, "form", {"n": secrets.token_hex(16)}, now + FORM_HOURS * 3600)
    page = render(
        "welcome.html",
        language,
        title=settings.title,
        kind=settings.kind,
        consent=settings.consent.get(language, ""),
        contact=settings.contact,
        token=token,
        csrf=site.sessions.form_token(cookie),
        language=language,
        languages=settings.languages,
        notice="",
    )
    response = HTMLResponse(page)
    site.sessions.keep(response, site.sessions.form_name, cookie, FORM_HOURS * 3600)
    return response


def join(site: Site, request: Request, content: bytes) -> Response:
    """Take the form of consent: a new participant, or the one that this invitation or this browser is already."""
    from starlette.responses import RedirectResponse

    now, fields = site.clock(), _form(request, content)
    language = language_of(site, fields.get("language", ""))
    # For the page that says no, if it comes to that.
    request.state.language = language
    if not from_our_page(request.headers, site.address.origin):
        raise Refused(403, "other-origin", "This must come from the study's own page.")
    if not site.sessions.form_ok(request.cookies, fields.get("csrf", ""), now):
        raise Refused(403, "form", "The form is too old, or cookies are not allowed. Open your link again.")
    token = fields.get("token", "")
    here, invitation = _known(site, request), invitation_in(site.study.secret, token, now)
    if here is None or not _is_theirs(site, here, token):
        _check_invited(site, token, invitation)
        if fields.get("agree") != "yes":
            raise Refused(422, "no-consent", "Without your consent nothing can start. Go back and tick the box.")
        wait = site.addresses.take(address_of(request.scope, site.address), now, JOIN_COSTS)
        if wait:
            raise Refused(429, "too-many", "Too many people start from this address. Please wait.", wait=wait)
        here = site.store.join(invitation, language, now)
        if site.study.settings.kind != "clicks":
            site.store.set_device(here.id, ANY_DEVICE, now)
    response = RedirectResponse("/work", 303)
    cookie = site.sessions.made(here.id, now)
    site.sessions.keep(response, site.sessions.name, cookie, SESSION_DAYS * 86_400)
    return response


def work(site: Site, request: Request) -> Response:
    """The page that runs everything by its modules.

    It is the same without a session: a browser that comes from another site's link sends its cookie only with what
    the page itself asks, and that is told there.
    """
    return _page(site, request, "work.html", shown_language=True)


def privacy(site: Site, request: Request) -> Response:
    """What is stored of a person."""
    return _page(site, request, "privacy.html", contact=site.study.settings.contact)


def done(site: Site, request: Request) -> Response:
    """The last page; its code is for those who completed a batch."""
    here = _known(site, request)
    return _page(site, request, "done.html", code=code_of(site, here.id) if here else None)


def code_of(site: Site, participant: str) -> str | None:
    """The completion code of a participant who completed a batch at least."""
    earned = site.store.tally(participant).complete > 0
    return completion_code(site.study.secret, participant) if earned else None


def _page(site: Site, request: Request, template: str, *, shown_language: bool = False, **values: object) -> Response:
    from starlette.responses import HTMLResponse

    here = _known(site, request)
    language = language_of(site, request.query_params.get("lang", here.language if here else ""))
    if shown_language:
        values = {**values, "language": language}
    return HTMLResponse(render(template, language, title=site.study.settings.title, **values))


def _known(site: Site, request: Request) -> Participant | None:
    session = session_of(site, request)
    return site.store.participant(session.participant) if session else None


def _is_theirs(site: Site, here: Participant, token: str) -> bool:
    """Whether a link is the one that a known participant came by, be it too old for others; the bare address is."""
    whenever = 0.0
    return not token or (here.invitation or "") == invitation_in(site.study.secret, token, whenever)


def _check_invited(site: Site, token: str, invitation: str | None) -> None:
    if token and invitation is None:
        raise Refused(403, "invitation", "This link is not valid, or too old.")
    if not token and not site.study.settings.open_link:
        raise Refused(403, "invitation-needed", "This study is for people with a link of their own.")


def _form(request: Request, content: bytes) -> dict[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise Refused(415, "content-type", "A form was expected.")
    try:
        pairs = parse_qsl(content.decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="replace")
    except ValueError:
        raise Refused(400, "not-a-form", "The form cannot be read.") from None
    return dict(pairs)
