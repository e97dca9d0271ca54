"""All that an answer needs: the study, its answers, the clock, the limits; and who asks, checked once for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from hardlook.collect.store.records import BatchRules, Participant
from hardlook.collect.study.folder import Study
from hardlook.collect.study.tasks import ClickTask
from hardlook.collect.study.validity import Judge
from hardlook.collect.web.csrf import from_our_page, token_fits
from hardlook.collect.web.limits import Buckets
from hardlook.collect.web.public_address import PublicAddress
from hardlook.collect.web.refusals import Refused
from hardlook.collect.web.sessions import Session, Sessions

if TYPE_CHECKING:
    from starlette.requests import Request

    from hardlook.collect.store.store import Store

Body = TypeVar("Body", bound=BaseModel)
_FIELD = 80


@dataclass(frozen=True)
class Site:
    """What all answers share; `clock` gives seconds since 1970."""

    study: Study
    store: Store
    judge: Judge
    clock: Callable[[], float]
    address: PublicAddress
    sessions: Sessions
    participants: Buckets
    addresses: Buckets
    # Pictures of feedback by task: as many as the training round has, and each costs a fifth of a second to make.
    feedback: dict[str, bytes] = field(default_factory=dict)

    @property
    def rules(self) -> BatchRules:
        """How batches are handed out; where there is nothing to lie inside of, every batch counts."""
        rules = BatchRules.of(self.study.settings)
        return rules if self.study.settings.kind == "clicks" else replace(rules, needed=lambda clicks: 0)

    @cached_property
    def click_types(self) -> tuple[str, ...]:
        """What is clicked on in this study, sorted: first (objects), fn and fp (errors); none where nothing is."""
        return tuple(sorted({task.click_type for task in self.study.tasks if isinstance(task, ClickTask)}))


@dataclass(frozen=True)
class Visit:
    """One request of one participant, at one time."""

    site: Site
    session: Session
    participant: Participant
    now: float


def language_of(site: Site, asked: str) -> str:
    """The language asked for, if the study has it, else its first."""
    languages = site.study.settings.languages
    return asked if asked in languages else languages[0]


def session_of(site: Site, request: Request) -> Session | None:
    """The session that a request carries, if it is ours and still holds."""
    return site.sessions.read(request.cookies, site.clock())


def visiting(site: Site, request: Request) -> Visit:
    """Who asks; `Refused` with 401 without a session, with 429 after too many requests."""
    now = site.clock()
    session = session_of(site, request)
    if session is None:
        raise _unknown()
    wait = site.participants.take(session.participant, now)
    if wait:
        raise Refused(429, "too-many", "Too many requests. Please wait a little.", wait=wait)
    participant = site.store.participant(session.participant)
    if participant is None:
        raise _unknown()
    # For the words of a refusal, if it comes to that.
    request.state.language = participant.language
    return Visit(site, session, participant, now)


def check_origin(site: Site, request: Request) -> None:
    """Refuse what does not come from our own page, by the browser's word and by the session's token."""
    if not from_our_page(request.headers, site.address.origin):
        raise Refused(403, "other-origin", "This must come from the study's own page.")
    session = session_of(site, request)
    if session is None:
        raise _unknown()
    if not token_fits(site.study.secret, session.cookie, request.headers.get("x-csrf-token", "")):
        raise Refused(403, "csrf", "The header X-CSRF-Token is missing or not this session's. Load the page again.")


def read_body(request: Request, content: bytes, model: type[Body]) -> Body:
    """The body as a record; `Refused` with 415, 400 or 422, naming the field."""
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower()
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise Refused(415, "content-type", "The body must be application/json.")
    try:
        return model.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise Refused(400, "not-json", "The body is not readable as JSON.") from None
        named = ".".join(map(str, first["loc"]))[:_FIELD] or "the body"
        raise Refused(422, "field", f"{named}: {first['msg']}") from None


def _unknown() -> Refused:
    return Refused(401, "no-session", "This browser has no session here. Open your link again.")
