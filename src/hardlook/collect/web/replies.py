"""What the API answers, field by field: types for this code, and schemas for whoever writes a client.

>>> from pydantic import TypeAdapter
>>> TypeAdapter(Stored).json_schema()["required"]
['stored', 'repeated', 'batch_complete', 'answered', 'of']
"""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict


class Progress(TypedDict):
    """How much the participant did: answers, and batches that are complete."""

    answered: int
    batches: int
    most_batches: int
    batch_size: int


class State(TypedDict):
    """All that a page needs to go on; `timings` in seconds, `csrf` for the header of every POST.

    `study` tells studies on one host apart. `languages` are those of the study, each by its own name. `click_types`
    are what is clicked on: first (objects), fn (missing parts), fp (parts too much).
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
    """That the training round is over."""

    trained: bool


class Paused(TypedDict):
    """That the sign of life was noted."""

    paused: bool


class TrialOfBatch(TypedDict):
    """A trial, in the order of `position`, from 0."""

    id: str
    position: int
    answered: bool


class Batch(TypedDict):
    """Trials handed out together; `number` counts the participant's batches from 1."""

    id: str
    number: int
    trials: list[TrialOfBatch]


class BatchReply(TypedDict, total=False):
    """A batch, or that nothing is left and the completion code."""

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
    """That an answer is on disk, and how far its batch is; not whether it was right."""

    stored: bool
    repeated: bool
    batch_complete: bool
    answered: int
    of: int


class Training(TypedDict):
    """How an answer of the training round was, and the address of a picture that shows the region."""

    right: bool
    inside: bool
    near: bool
    feedback: str | None


class Failure(TypedDict):
    """Why a request was not done: a code for programs, a sentence for people."""

    error: str
    message: str
