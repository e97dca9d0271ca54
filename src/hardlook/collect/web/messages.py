"""The messages of the participants' API, field by field: what a browser may send and what it is sent.

Any other field is refused by name. The types also become the schemas of the API's description.

>>> AnswerBody.model_validate({"key": "k" * 16, "trial": "a" * 26, "x": 3.0, "y": 4.0}).early
0
>>> from pydantic import TypeAdapter
>>> TypeAdapter(Stored).json_schema()["required"]
['stored', 'repeated', 'batch_complete', 'answered', 'of']
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

Key = Annotated[str, Field(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Milliseconds = Annotated[float, Field(ge=0, le=86_400_000, allow_inf_nan=False)]
Coordinate = Annotated[float, Field(ge=-100_000, le=100_000, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
Pointer = Literal["mouse", "touch", "pen", ""]


class _Body(BaseModel):
    # Strict: "3" is not a number, and 1 is not a boolean.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Durations(_Body):
    """Measured milliseconds of each phase, by `performance.now` at the frames that began and ended it."""

    image: Milliseconds = 0.0
    target: Milliseconds = 0.0
    again: Milliseconds = 0.0
    frame: Milliseconds = Field(0.0, description="the median time between two frames")
    longest_frame: Milliseconds = 0.0


class Circumstances(_Body):
    """The screen and the page when the answer was given."""

    pointer: Pointer = ""
    ratio: Number = Field(1.0, description="device pixels per CSS pixel")
    view_width: Number = 0.0
    view_height: Number = 0.0
    shown_width: Number = Field(0.0, description="CSS pixels that the image was wide")
    shown_height: Number = 0.0
    zoom: Number = Field(1.0, description="the visual viewport's scale (pinch zoom)")
    hidden: Annotated[int, Field(ge=0, le=10_000)] = Field(0, description="times the page was out of sight")
    restarts: Annotated[int, Field(ge=0, le=10_000)] = 0
    queued_ms: Milliseconds = Field(0.0, description="how long the answer waited for a connection")


class AnswerBody(_Body):
    """An answer: a click (x and y), a review (value 0 or 1) or a rating (value 1 to 10)."""

    key: Key
    trial: Key
    x: Coordinate | None = None
    y: Coordinate | None = None
    value: Annotated[int, Field(ge=0, le=10)] | None = None
    early: Annotated[int, Field(ge=0, le=10_000)] = 0
    reaction_ms: Milliseconds | None = None
    durations: Durations = Durations()
    circumstances: Circumstances = Circumstances()


class DeviceBody(_Body):
    """The device that a participant confirmed, and the pointer that it was recognised by."""

    device: Literal["pc", "mobile"]
    pointer: Pointer = ""


class LanguageBody(_Body):
    """The language to continue in: one of the study's."""

    language: Annotated[str, Field(min_length=1, max_length=16, pattern=r"^[A-Za-z0-9-]+$")]


class TrainingBody(_Body):
    """An answer of the training round, which gets feedback and is not stored."""

    trial: Key
    x: Coordinate | None = None
    y: Coordinate | None = None
    value: Annotated[int, Field(ge=0, le=10)] | None = None


class EmptyBody(_Body):
    """No fields: the path names the operation."""


class Progress(TypedDict):
    """How much the participant did: answers, and batches that are complete."""

    answered: int
    batches: int
    most_batches: int
    batch_size: int


class State(TypedDict):
    """All that a page needs to resume; `timings` in seconds, `csrf` for the header of every POST.

    `study` distinguishes studies on one host. `languages` are those of the study, each by its own name. `click_types`
    are what is clicked on: first (objects), fn (missing parts), fp (parts too much). `full` is true where no more
    answers are needed from somebody who has not begun.
    """

    study: str
    kind: str
    title: str
    language: str
    languages: dict[str, str]
    question: str
    click_types: list[str]
    csrf: str
    device: str | None
    trained: bool
    timings: dict[str, float]
    training: list[str]
    instructions: str
    progress: Progress
    full: bool
    done: bool
    code: str | None
    texts: dict[str, str]


class Language(TypedDict):
    """The language from now on, and its texts."""

    language: str
    texts: dict[str, str]


class Device(TypedDict):
    """The device from now on."""

    device: str


class Trained(TypedDict):
    """The training round is over."""

    trained: bool


class Paused(TypedDict):
    """The time until the open batch is returned was restarted."""

    paused: bool


class TrialOfBatch(TypedDict):
    """A trial, in the order of `position`, from 0."""

    id: str
    position: int
    answered: bool


class Batch(TypedDict):
    """Trials assigned together; `number` counts the participant's batches from 1."""

    id: str
    number: int
    trials: list[TrialOfBatch]


class BatchReply(TypedDict, total=False):
    """A batch; or, where nothing is left, the completion code."""

    done: bool
    batch: Batch
    code: str | None


class ShownClick(TypedDict):
    """A trial of clicks: addresses of its pictures, the image's size in pixels; `target` is null in text mode."""

    id: str
    mode: str
    click_type: str
    width: int
    height: int
    image: str | None
    target: str | None
    description: str


class ShownReview(TypedDict):
    """A trial of a review: whether the image shows the concept in the context."""

    id: str
    image: str | None
    concept: str
    context: str


class ShownRating(TypedDict):
    """A trial of a rating: labels, and the measure's value in [0, 1] where the study shows it."""

    id: str
    form: Literal["pair", "picture"]
    labels: list[str]
    value: float | None
    image: str | None


class Stored(TypedDict):
    """An answer is on disk, with the progress of its batch; not whether it was right."""

    stored: bool
    repeated: bool
    batch_complete: bool
    answered: int
    of: int


class Training(TypedDict):
    """Whether an answer of the training round was right, and the address of a picture that shows the region."""

    right: bool
    inside: bool
    near: bool
    feedback: str | None


class Failure(TypedDict):
    """Why a request was refused: a code for programs, a sentence for people."""

    error: str
    message: str
