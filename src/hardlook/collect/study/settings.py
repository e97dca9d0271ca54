"""`study.json`: everything that a researcher may decide about a study, with a sentence on each field.

>>> settings = StudySettings(kind="clicks", title="Cups")
>>> settings.timings.target_of("text"), settings.timings.target_of("cut-out"), settings.devices
(2.5, 2.0, ('pc', 'mobile'))
>>> settings.inside_needed(10), settings.inside_needed(4)
(7, 3)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

SCHEMA: Literal["hardlook.study/1"] = "hardlook.study/1"
Kind = Literal["clicks", "review", "ratings"]
DisplayMode = Literal["text", "cut-out", "shifted", "silhouette", "highlighted"]
DISPLAY_MODES: tuple[DisplayMode, ...] = ("text", "cut-out", "shifted", "silhouette", "highlighted")
Question = Literal["fit", "likeness"]
ANY_DEVICE = "any"
Platform = Literal["", "prolific", "mturk", "sona"]

# The id parameters that a platform adds to its link; the first is the person's own.
PLATFORM_PARAMETERS: Mapping[Platform, tuple[str, ...]] = MappingProxyType(
    {
        "": (),
        "prolific": ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"),
        "mturk": ("workerId", "assignmentId", "hitId"),
        "sona": ("survey_code",),
    }
)
CODE_FIELD = "code"
# Where MTurk takes the answer to an external question.
_EXTERNAL_SUBMIT = "/mturk/externalSubmit"
# As browsers write one, so that it can stand in a policy; http only for trying it out on this machine.
_ORIGIN = re.compile(r"(https://[a-z0-9-]+(\.[a-z0-9-]+)*|http://(localhost|127\.0\.0\.1))(:[0-9]{1,5})?")
Seconds = Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
# Share of the planned seconds by which clocks, and frames of a screen, may differ from the plan.
TOLERANCE = 0.05
_LONGEST_VALUE = 60  # characters of a wrong value that an error still quotes
Texts = dict[str, Annotated[str, Field(max_length=20_000)]]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Timings(_Part):
    """Seconds of each phase before a click is taken: the image, its target, the image again."""

    image: Seconds = Field(1.5, description="the image alone")
    target: Seconds = Field(2.0, description="the target, in every display mode but text")
    target_text: Seconds = Field(2.5, description="the target as text, which takes longer to read")
    again: Seconds = Field(1.5, description="the image again, before clicks count")

    def target_of(self, mode: str) -> float:
        """Seconds that the target is shown in a display mode."""
        return self.target_text if mode == "text" else self.target


class Limits(_Part):
    """How many requests one participant, or one address, may send."""

    per_participant: Count = Field(240, description="requests per minute of one participant")
    per_address: Count = Field(6000, description="requests per minute of one address; a university may share one")
    body_bytes: Count = Field(16_384, description="bytes of one request's body")
    open_batches_per_address: Count = Field(
        5, description="batches that people without an invitation may have open at one address at the same time"
    )


class StudySettings(_Part):
    """All settings; an unknown field or an invalid value is an error that names the field."""

    schema_name: Literal["hardlook.study/1"] = Field(SCHEMA, alias="schema", description="the format of this file")
    kind: Kind = Field(description="what is collected: clicks, review or ratings")
    title: str = Field(min_length=1, max_length=200, description="shown on every page")
    modes: tuple[DisplayMode, ...] = Field(("cut-out",), min_length=1, description="display modes of a clicks study")
    timings: Timings = Timings()
    batch_size: Annotated[int, Field(ge=1, le=100)] = Field(10, description="tasks of a batch")
    least_inside: Annotated[float, Field(gt=0, le=1)] = Field(
        0.7, description="share of a batch's clicks that must lie inside for the batch to count"
    )
    click_radius: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = Field(
        5.0, description="pixels from the mask's border within which a click outside is valid too"
    )
    target_answers: Count = Field(25, description="valid answers wanted of each task, mode and device")
    devices: tuple[Literal["pc", "mobile", "any"], ...] = Field(
        ("pc", "mobile"), min_length=1, description="devices to balance over; any in a review or rating"
    )
    most_batches: Count = Field(20, description="batches per participant at most")
    return_after_minutes: Annotated[float, Field(gt=0, le=100_000)] = Field(
        30.0, description="minutes of inactivity after which a batch is returned"
    )
    return_unanswered_minutes: Annotated[float, Field(gt=0, le=100_000)] = Field(
        5.0, description="minutes after which a batch without any answer is returned, active or not"
    )
    least_answer_seconds: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = Field(
        0.5, description="least mean seconds of an answer over a batch, in a review or rating"
    )
    quick_batches: Literal["drop", "keep"] = Field(
        "drop",
        description="a batch done in less time than it takes: drop (it does not count and earns no code) or keep",
    )
    code_for: Literal["complete", "valid"] = Field(
        "complete", description="which batches earn a completion code: complete ones, or valid ones only"
    )
    attention_checks: Annotated[int, Field(ge=0, le=5)] = Field(
        0, description="tasks with a known answer that are added to each batch"
    )
    training_tasks: Annotated[int, Field(ge=0, le=20)] = Field(3, description="tasks of the training round")
    question: Question = Field(
        "fit",
        description="ratings: fit asks how well the shown value fits, likeness shows none and asks how alike they are",
    )
    open_link: bool = Field(False, description="whether people can join without an invitation")
    platform: Platform = Field("", description="where participants come from: prolific, mturk, sona, or none")
    completion_url: str = Field(
        "", max_length=1000, description="where the last page leads; {code} and the platform's parameters are filled in"
    )
    frame_origins: tuple[str, ...] = Field(
        (),
        max_length=10,
        description="origins whose pages may show the participants' pages in a frame, as https://worker.mturk.com",
    )
    pay: str = Field("", max_length=200, description="the pay, shown before the consent")
    minutes: Annotated[float, Field(gt=0, le=10_000)] | None = Field(
        None, description="about how many minutes a batch takes, shown before the consent"
    )
    languages: tuple[str, ...] = Field(
        ("en", "de"), min_length=1, description="languages to choose from; first: default"
    )
    consent: Texts = Field({}, description="text of consent by language, in place of the built-in one")
    instructions: Texts = Field({}, description="instructions by language, added to the built-in ones")
    contact: str = Field(
        "", max_length=500, description="contact for questions of participants, shown with the consent"
    )
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _agree(self) -> StudySettings:
        if (ANY_DEVICE in self.devices) != (self.kind != "clicks") or (ANY_DEVICE in self.devices[1:]):
            raise ValueError("devices are pc and mobile in a clicks study, and any in a review or rating")
        for name in ("modes", "devices", "languages", "frame_origins"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} names one thing twice")
        for origin in self.frame_origins:
            if not _ORIGIN.fullmatch(origin):
                raise ValueError(f"frame_origins: expected origins as https://worker.mturk.com, not {origin!r}")
        self._check_completion_url()
        return self

    def _check_completion_url(self) -> None:
        if not self.completion_url:
            return
        parts = urlsplit(self.completion_url)
        if parts.scheme != "https" or not parts.hostname or not self.completion_url.isprintable():
            raise ValueError("completion_url: expected an address that starts with https://")
        known = (CODE_FIELD, *self.id_parameters)
        unknown = set(re.findall(r"\{([^{}]*)\}", self.completion_url)) - set(known)
        if unknown or "{" in parts.netloc:
            fields = ", ".join(f"{{{name}}}" for name in known)
            raise ValueError(f"completion_url: {fields} can be filled in, after the host name")
        if parts.path == _EXTERNAL_SUBMIT and not (self.submit_origin and self.frame_origins):
            what = "is for the platform mturk and pages in its frame (frame_origins), and has no parameters"
            raise ValueError(f"completion_url: externalSubmit {what}")

    @property
    def id_parameters(self) -> tuple[str, ...]:
        """The parameters of the platform's link that are stored; the first is the person's own id.

        >>> StudySettings(kind="clicks", title="Cups", platform="sona").id_parameters
        ('survey_code',)
        """
        return PLATFORM_PARAMETERS[self.platform]

    @property
    def submit_origin(self) -> str:
        """MTurk's origin, where the last page posts the assignment back to it as external questions do; else empty.

        >>> url = "https://www.mturk.com/mturk/externalSubmit"
        >>> mturk = {"platform": "mturk", "frame_origins": ("https://worker.mturk.com",), "completion_url": url}
        >>> StudySettings(kind="clicks", title="Cups", **mturk).submit_origin
        'https://www.mturk.com'
        """
        origin = self.completion_url.removesuffix(_EXTERNAL_SUBMIT)
        is_submit = self.platform == "mturk" and self.completion_url.endswith(_EXTERNAL_SUBMIT)
        return origin if is_submit and _ORIGIN.fullmatch(origin) else ""

    def inside_needed(self, clicks: int) -> int:
        """How many clicks of a batch of `clicks` must lie inside; 7 of 10, and the same share of a shorter one."""
        return math.ceil(self.least_inside * clicks - 1e-9)

    def least_seconds(self, mode: str) -> float:
        """Seconds before an item of a display mode can be answered: the phases of a click, 0 for anything else.

        >>> StudySettings(kind="clicks", title="Cups").least_seconds("text")
        5.5
        """
        timings = self.timings
        return timings.image + timings.target_of(mode) + timings.again if self.kind == "clicks" else 0.0

    def is_too_quick(self, answers: Iterable[tuple[str, float | None, float]]) -> bool:
        """Whether the answers of a batch came in less time than they take; (mode, shown, received) of each."""
        timed = [TimedAnswer(self.least_seconds(mode), shown, received) for mode, shown, received in answers]
        return is_too_quick(timed, 0.0 if self.kind == "clicks" else self.least_answer_seconds)


def describe_validation_error(error: ValidationError) -> str:
    """The first error: the field, what was expected and what was given; an unknown field with the closest known one.

    >>> def find_error(**values):
    ...     try:
    ...         StudySettings.model_validate({"kind": "clicks", "title": "Cups", **values})
    ...     except ValidationError as error:
    ...         return describe_validation_error(error)
    >>> find_error(batchsize=4)
    "batchsize: there is no such field; is 'batch_size' meant?"
    >>> find_error(least_inside=70)
    'least_inside: Input should be less than or equal to 1, not 70'
    >>> find_error(devices=("any",))
    'devices are pc and mobile in a clicks study, and any in a review or rating'
    """
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    if first["type"] == "value_error":
        what = str(first["msg"]).removeprefix("Value error, ")
    elif first["type"] == "extra_forbidden":
        near = get_close_matches(field, StudySettings.model_fields, n=1)
        what = f"there is no such field; is {near[0]!r} meant?" if near else "there is no such field"
    else:
        value = repr(first["input"])
        shown = first["type"] != "missing" and len(value) <= _LONGEST_VALUE
        what = str(first["msg"]) + (f", not {value}" if shown else "")
    return f"{field}: {what}" if field else what


@dataclass(frozen=True)
class TimedAnswer:
    """An answer that takes `least` seconds at least; its task was first shown at `shown`, seconds since 1970."""

    least: float
    shown: float | None
    received: float


def is_too_quick(answers: Iterable[TimedAnswer], least_mean: float = 0.0) -> bool:
    """Whether one person cannot have given these answers of a batch, one after another, in this time.

    A page shows one task after another, so that the phases of all clicks of a batch follow each other. A program may
    request all tasks at once and answer all of them when the phases of one are over:

    >>> at_once = [TimedAnswer(least=5.0, shown=0.0, received=5.3) for _ in range(10)]
    >>> one_by_one = [TimedAnswer(least=5.0, shown=6.0 * i, received=6.0 * i + 5.6) for i in range(10)]
    >>> is_too_quick(at_once), is_too_quick(one_by_one)
    (True, False)

    Two criteria: between two times, the answers whose tasks were both shown and received there need more seconds than
    lie between them; or the time from the first task shown to the last answer is below `least_mean` seconds per answer.
    Answers whose task was never shown, or was shown after the answer because a clock was set back, are ignored.
    """
    known = [one for one in answers if one.shown is not None and one.shown <= one.received]
    if not known:
        return False
    by_arrival = sorted(known, key=lambda one: one.received)
    for start in {one.shown or 0.0 for one in known}:
        # An answer may wait for a connection and arrive after later ones: what was shown before `start` may be done.
        needed = planned = 0.0
        for one in by_arrival:
            planned += one.least
            needed += one.least if (one.shown or 0.0) >= start else 0.0
            if needed and one.received - start < needed - TOLERANCE * planned:
                return True
    seconds = max(one.received for one in known) - min(one.shown or 0.0 for one in known)
    return seconds < least_mean * len(known)
