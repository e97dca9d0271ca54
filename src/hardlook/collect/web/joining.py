"""How people join a study: the page of consent and its form; and the pages around the trials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode

from hardlook.collect.store.records import PERSON, Participant
from hardlook.collect.study.settings import ANY_DEVICE, CODE_FIELD, Platform, StudySettings
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

PLATFORM_NAMES: Mapping[Platform, str] = {"prolific": "Prolific", "mturk": "Mechanical Turk", "sona": "SONA"}

# What a platform's id looks like; a field that the platform did not fill in, such as {{%PROLIFIC_PID%}}, does not.
_PLATFORM_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_ASSIGNMENT, _MTURK_PREVIEW = "assignmentId", "ASSIGNMENT_ID_NOT_AVAILABLE"


def welcome(site: Site, request: Request) -> Response:
    """The page of consent, for invitations, platforms and the open link; redirects to the trials with a session.

    A study that needs no more answers says so here, before anybody consents and practises for nothing. In MTurk's
    preview the page is only to be read: consent is not possible, and no cookie is set.
    """
    from starlette.responses import HTMLResponse, RedirectResponse

    settings, token, now = site.study.settings, str(request.path_params.get("token", "")), site.clock()
    participant = find_participant(site, request)
    language = choose_language(site, request.query_params.get("lang", ""))
    request.state.language = language
    fields = read_fields(settings, request.query_params.multi_items())
    preview = is_preview(settings, fields)
    ids = {} if preview else read_platform_ids(settings, fields)
    if participant and not preview and _is_own_link(site, participant, token, ids):
        if ids and ids != site.store.platform_ids_of(participant.id):
            site.store.update_platform_ids(participant.id, ids)
        return RedirectResponse("/work", 303)
    invitation = read_invitation(site.study.secret, token, now)
    if not preview:
        _check_link(site, token, invitation, ids)
    devices = list_open_devices(site, invitation, ids, now)
    if not devices:
        texts = {"title": settings.title, "wanted": site.store.wants_answers(site.rules), "contact": settings.contact}
        return HTMLResponse(render_page("full.html", language, **texts))
    cookie = "" if preview else site.sessions.make_form_cookie(now)
    page = render_page(
        "welcome.html",
        language,
        title=settings.title,
        kind=settings.kind,
        consent=settings.consent.get(language, ""),
        contact=settings.contact,
        only_device=next(iter(devices)) if settings.kind == "clicks" and len(devices) == 1 else "",
        pay=settings.pay,
        minutes=settings.minutes,
        size=site.study.full_batch + settings.attention_checks,
        sets=site.study.most_per_person,
        platform_ids={_ASSIGNMENT: _MTURK_PREVIEW} if preview else ids,
        preview=preview,
        token=token,
        csrf=site.sessions.make_form_token(cookie),
        languages=settings.languages,
    )
    response = HTMLResponse(page)
    if cookie:
        site.sessions.set_participant_cookie(response, site.sessions.form_name, cookie, FORM_SECONDS)
    return response


def join(site: Site, request: Request, content: bytes) -> Response:
    """Accept the form of consent: a new participant, or the one that this invitation or browser already belongs to."""
    from starlette.responses import RedirectResponse

    now, fields = site.clock(), _parse_form(site.study.settings, request, content)
    language = choose_language(site, fields.get("language", ""))
    # For the text of a refusal, should there be one.
    request.state.language = language
    if not is_own_origin(request.headers, site.address.origin):
        raise RequestRefused(403, "other-origin", "This must come from the study's own page.")
    if site.sessions.framed and is_framed(request) and not site.sessions.has_form_cookie(request.cookies):
        return _offer_window(site, fields, language, now)
    if not site.sessions.is_valid_form(request.cookies, fields.get("csrf", ""), now):
        raise RequestRefused(403, "form", "The form is too old, or cookies are not allowed. Open your link again.")
    token = fields.get("token", "")
    participant, invitation = find_participant(site, request), read_invitation(site.study.secret, token, now)
    ids = read_platform_ids(site.study.settings, fields)
    if participant is None or not _is_own_link(site, participant, token, ids):
        _check_link(site, token, invitation, ids)
        if fields.get("agree") != "yes":
            message = "Without your consent nothing can start. Go back and tick the box."
            raise RequestRefused(422, "no-consent", message)
        wait = site.client_limiter.take(client_key(request.scope, site.address), now, JOIN_COST)
        if wait:
            message = "Too many people start from this address. Please wait."
            raise RequestRefused(429, "too-many", message, wait=wait)
        if not list_open_devices(site, invitation, ids, now):
            raise RequestRefused(409, "full", "No more answers are needed right now. Thank you.")
        participant = site.store.join(invitation, language, now, ids)
        if site.study.settings.kind != "clicks":
            site.store.set_device(participant.id, ANY_DEVICE, now)
    response = RedirectResponse("/work", 303)
    cookie = site.sessions.make_cookie(participant.id, now)
    site.sessions.set_participant_cookie(response, site.sessions.name, cookie, SESSION_SECONDS)
    return response


def work(site: Site, request: Request) -> Response:
    """The page whose scripts run the trials.

    It is the same without a session: a browser that follows another site's link sends its cookie only with the
    requests that the page makes itself, and those report a missing session.
    """
    return _page(site, request, find_participant(site, request), "work.html")


def privacy(site: Site, request: Request) -> Response:
    """What is stored about a person, and the reference by which they can have it deleted."""
    participant = find_participant(site, request)
    values = {"contact": site.study.settings.contact, "reference": participant.id if participant else ""}
    return _page(site, request, participant, "privacy.html", **values)


def done(site: Site, request: Request) -> Response:
    """The last page; it shows the completion code to those who completed a batch."""
    participant, settings = find_participant(site, request), site.study.settings
    code = find_completion_code(site, participant.id) if participant else None
    ids = site.store.platform_ids_of(participant.id) if participant else {}
    values: dict[str, object] = {"code": code, "code_for": settings.code_for, "submit_url": settings.completion_url}
    values["platform"] = PLATFORM_NAMES.get(settings.platform, "")
    url = fill_completion_url(settings, code, ids) if code else ""
    # Posted from its frame alone: from a window of its own, the worker takes the code back to the task.
    values["assignment"] = ids.get(_ASSIGNMENT, "") if settings.submit_origin and is_framed(request) else ""
    full = find_full_text(site, participant, site.clock())
    return _page(site, request, participant, "done.html", completion_url=url, full=full, **values)


def is_full(site: Site, participant: Participant | None, now: float) -> bool:
    """Whether no participant, or none on this participant's device, could get a new batch."""
    devices = site.store.devices_with_work(site.rules, now, participant.id if participant else "")
    return participant.device not in devices if participant and participant.device else not devices


def find_full_text(site: Site, participant: Participant | None, now: float) -> str:
    """The key of the text that says why no participant could get a new batch on this device; empty if one could."""
    device = participant.device if participant and participant.device else ""
    if not is_full(site, participant, now):
        return ""
    if site.store.wants_answers(site.rules, device):
        return "full.wait"
    return f"refused.full-{device}" if site.store.wants_answers(site.rules) else "full.done"


def find_completion_code(site: Site, participant: str) -> str | None:
    """The completion code of a participant with at least one batch that earns it by the study's rules."""
    earned = site.store.count_earned(participant, site.rules) > 0
    return derive_completion_code(site.study.secret, participant) if earned else None


def fill_completion_url(settings: StudySettings, code: str, platform_ids: Mapping[str, str]) -> str:
    """The address that the last page leads to; empty where the study has none, posts to it, or lacks an id for it.

    >>> url = "https://school.sona-systems.com/webstudy_credit.aspx?survey_code={survey_code}"
    >>> settings = StudySettings(kind="clicks", title="Cups", platform="sona", completion_url=url)
    >>> fill_completion_url(settings, "CODE", {"survey_code": "17"})
    'https://school.sona-systems.com/webstudy_credit.aspx?survey_code=17'
    >>> fill_completion_url(settings, "CODE", {})
    ''
    """
    values = {CODE_FIELD: code, **platform_ids}
    if settings.submit_origin or set(re.findall(r"\{(\w+)\}", settings.completion_url)) - set(values):
        return ""
    return re.sub(r"\{(\w+)\}", lambda match: quote(values[match[1]], safe=""), settings.completion_url)


def is_framed(request: Request) -> bool:
    """Whether a page is loaded into a frame, by the browser's header; True where it sends none."""
    return request.headers.get("sec-fetch-dest", "iframe") in ("iframe", "frame")


def is_preview(settings: StudySettings, fields: Mapping[str, str]) -> bool:
    """Whether MTurk shows the page to somebody who has not accepted the task.

    >>> settings = StudySettings(kind="clicks", title="Cups", platform="mturk")
    >>> is_preview(settings, {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}), is_preview(settings, {})
    (True, False)
    """
    return settings.platform == "mturk" and fields.get(_ASSIGNMENT) == _MTURK_PREVIEW


def read_fields(settings: StudySettings, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The parameters of a link or the fields of a form by name, the last of each.

    A platform's parameter with two values is refused: whose work it is, and who is paid, would be a guess.

    >>> settings = StudySettings(kind="clicks", title="Cups", platform="sona")
    >>> read_fields(settings, [("survey_code", "17"), ("lang", "de"), ("survey_code", "17")])
    {'survey_code': '17', 'lang': 'de'}
    """
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in settings.id_parameters and value != fields.get(name, value):
            raise RequestRefused(422, "platform-id", f"The platform's link has two values of its parameter {name}.")
        fields[name] = value
    return fields


def read_platform_ids(settings: StudySettings, fields: Mapping[str, str]) -> dict[str, str]:
    """The platform's id parameters in a link or form, by name, the person's own first; empty without that one.

    A value that cannot be an id is refused: the link on the platform is wrong, or it is only a preview.

    >>> settings = StudySettings(kind="clicks", title="Cups", platform="prolific")
    >>> read_platform_ids(settings, {"PROLIFIC_PID": "5f1a", "STUDY_ID": "6b", "other": "x"})
    {'PROLIFIC_PID': '5f1a', 'STUDY_ID': '6b'}
    """
    given = {name: fields[name] for name in settings.id_parameters if fields.get(name)}
    if is_preview(settings, fields):
        raise RequestRefused(403, "preview", "This is a preview. Accept the task on the platform first.")
    for name, value in given.items():
        if len(value) > PERSON or not _PLATFORM_ID.fullmatch(value):
            raise RequestRefused(422, "platform-id", f"The platform's link has no id in its parameter {name}.")
    return given if settings.id_parameters[:1] == tuple(given)[:1] else {}


def list_open_devices(site: Site, invitation: str | None, platform_ids: Mapping[str, str], now: float) -> set[str]:
    """The devices on which somebody may begin; all for those who have begun before."""
    person = next(iter(platform_ids.values()), "")
    if (invitation and site.store.invited(invitation)) or (person and site.store.person(person)):
        return set(site.study.settings.devices)
    return site.store.devices_with_work(site.rules, now)


def _offer_window(site: Site, fields: Mapping[str, str], language: str, now: float) -> Response:
    """The page for a browser that keeps no cookies in a frame: a link to a window, and a field for its code."""
    from starlette.responses import HTMLResponse

    settings, token = site.study.settings, fields.get("token", "")
    ids = read_platform_ids(settings, fields)
    path = f"/join/{token}" if read_invitation(site.study.secret, token, now) else "/"
    values = {
        "title": settings.title,
        "link": f"{path}?{urlencode({'lang': language, **ids})}",
        "assignment": ids.get(_ASSIGNMENT, "") if settings.submit_origin else "",
        "submit_url": settings.completion_url,
        "platform": PLATFORM_NAMES.get(settings.platform, ""),
    }
    return HTMLResponse(render_page("window.html", language, **values))


def _page(site: Site, request: Request, participant: Participant | None, template: str, **values: object) -> Response:
    from starlette.responses import HTMLResponse

    language = choose_language(site, request.query_params.get("lang", participant.language if participant else ""))
    return HTMLResponse(render_page(template, language, title=site.study.settings.title, **values))


def _is_own_link(site: Site, participant: Participant, token: str, platform_ids: Mapping[str, str]) -> bool:
    """Whether a participant joined by this link, expired or not; an open link is everyone's."""
    if token:
        return (participant.invitation or "") == read_invitation(site.study.secret, token, now=0.0)
    person = next(iter(platform_ids.values()), "")
    return not person or person in site.store.platform_ids_of(participant.id).values()


def _check_link(site: Site, token: str, invitation: str | None, platform_ids: Mapping[str, str]) -> None:
    if token and invitation is None:
        raise RequestRefused(403, "invitation", "This link is not valid, or too old.")
    if token or platform_ids or site.study.settings.open_link:
        return
    if site.study.settings.platform:
        raise RequestRefused(403, "platform-needed", "Open this study from the platform that offers it.")
    raise RequestRefused(403, "invitation-needed", "This study is for people with a link of their own.")


def _parse_form(settings: StudySettings, request: Request, content: bytes) -> dict[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise RequestRefused(415, "content-type", "A form was expected.")
    try:
        pairs = parse_qsl(content.decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="replace")
    except ValueError:
        raise RequestRefused(400, "not-a-form", "The form cannot be read.") from None
    return read_fields(settings, pairs)
