"""What all request handlers share: the study, its store and limits, and checks of sessions, origins and bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from hardlook.collect.store.records import BatchRules, Participant
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.study.validity import ClickValidator
from hardlook.collect.web.guard import PublicAddress, RateLimiter, client_key
from hardlook.collect.web.refusals import RequestRefused
from hardlook.collect.web.sessions import Session, Sessions, is_csrf_token, is_own_origin

if TYPE_CHECKING:
    from starlette.requests import Request

    from hardlook.collect.store.store import Store

Body = TypeVar("Body", bound=BaseModel)
_MAX_FIELD_LENGTH = 80


@dataclass(frozen=True)
class Site:
    """One study as it is served; `clock` gives seconds since 1970, the limiters count by participant and by client."""

    study: Study
    store: Store
    validator: ClickValidator
    clock: Callable[[], float]
    address: PublicAddress
    sessions: Sessions
    participant_limiter: RateLimiter
    client_limiter: RateLimiter
    # Feedback pictures of the training round, by task id; cached, since drawing one takes a fifth of a second.
    feedback: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def rules(self) -> BatchRules:
        """The rules for assigning batches to participants."""
        return BatchRules.of(self.study.settings)

    @cached_property
    def click_types(self) -> tuple[str, ...]:
        """What is clicked on in this study, sorted: first (objects), fn and fp (errors); empty without clicks."""
        return tuple(sorted({task.click_type for task in self.study.tasks if isinstance(task, ClickTask)}))


@dataclass(frozen=True)
class Visit:
    """A request by a participant, with its session; `now` is its time in seconds since 1970.

    `address` is the client's, as the rate limits count it.
    """

    site: Site
    session: Session
    participant: Participant
    now: float
    address: str


def choose_language(site: Site, requested: str) -> str:
    """The requested language if the study has it, else the study's first."""
    languages = site.study.settings.languages
    return requested if requested in languages else languages[0]


def find_participant(site: Site, request: Request) -> Participant | None:
    """The participant whose session a request carries, if any."""
    session = site.sessions.read(request.cookies, site.clock())
    return site.store.participant(session.participant) if session else None


def read_visit(site: Site, request: Request) -> Visit:
    """The request's session and participant; refused with 401 without a session, with 429 after too many requests."""
    now = site.clock()
    session = _require_session(site, request)
    wait = site.participant_limiter.take(session.participant, now)
    if wait:
        raise RequestRefused(429, "too-many", "Too many requests. Please wait a little.", wait=wait)
    participant = site.store.participant(session.participant)
    if participant is None:
        raise _no_session()
    # If the request is refused later, the refusal is in this language.
    request.state.language = participant.language
    return Visit(site, session, participant, now, client_key(request.scope, site.address))


def check_origin(site: Site, request: Request) -> None:
    """Refuse requests that do not come from our own page, by the browser's headers and the session's token."""
    if not is_own_origin(request.headers, site.address.origin):
        raise RequestRefused(403, "other-origin", "This must come from the study's own page.")
    session = _require_session(site, request)
    if not is_csrf_token(site.study.secret, session.cookie, request.headers.get("x-csrf-token", "")):
        message = "The header X-CSRF-Token is missing or not this session's. Load the page again."
        raise RequestRefused(403, "csrf", message)


def parse_body(request: Request, content: bytes, model: type[Body]) -> Body:
    """The JSON body as an instance of `model`; refused with 415 (content type), 400 (not JSON) or 422 (a field)."""
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower()
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise RequestRefused(415, "content-type", "The body must be application/json.")
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise RequestRefused(400, "not-json", "The body is not readable as JSON.") from None
        name = ".".join(map(str, first["loc"]))[:_MAX_FIELD_LENGTH] or "the body"
        raise RequestRefused(422, "field", f"{name}: {first['msg']}") from None


def _require_session(site: Site, request: Request) -> Session:
    session = site.sessions.read(request.cookies, site.clock())
    if session is None:
        raise _no_session()
    return session


def _no_session() -> RequestRefused:
    return RequestRefused(401, "no-session", "This browser has no session here. Open your link again.")
