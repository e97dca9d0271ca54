"""What the store takes and gives back: participants, batches, trials, answers, and refusals.

>>> BatchRules(size=10, target=25, most_batches=20, return_after=1800.0).needed(10)
7
>>> raise Refusal("already-answered", "this trial has an answer")
Traceback (most recent call last):
...
hardlook.collect.store.records.Refusal: this trial has an answer
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from hardlook.collect.study.tasks import Item

TrialState = Literal["assigned", "answered", "returned"]
BatchState = Literal["open", "complete", "returned"]
Needed = Callable[[int], int]


class Refusal(Exception):
    """What a participant asked cannot be done; `code` is for programs, the message for people.

    Codes: unknown-participant, unknown-trial, unknown-device, no-device, already-answered, returned, key-used,
    bad-value.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(code, message)

    def __str__(self) -> str:
        return self.message


def seven_of_ten(clicks: int) -> int:
    """How many clicks of a batch of `clicks` must lie inside by RClicks' rule, a shorter batch in the same share.

    >>> [seven_of_ten(clicks) for clicks in (10, 5, 1)]
    [7, 4, 1]
    """
    return math.ceil(0.7 * clicks - 1e-9)


@dataclass(frozen=True)
class Participant:
    """Somebody who takes part, known by a random id alone; times are seconds since 1970.

    `finished` is when they were first told that nothing is left for them.
    """

    id: str
    invitation: str | None
    language: str
    device: str | None
    joined: float
    trained: float | None
    seen: float
    finished: float | None


@dataclass(frozen=True)
class Trial:
    """One item handed to one participant, the `position`-th (from 0) of its batch.

    Its pictures were asked for `shows` times, the first time at `shown` (seconds since 1970).
    """

    id: str
    position: int
    item: Item
    state: TrialState
    shows: int
    shown: float | None = None


@dataclass(frozen=True)
class Batch:
    """Trials handed out together; `number` counts a participant's batches from 1."""

    id: str
    number: int
    device: str
    state: BatchState
    trials: tuple[Trial, ...]


class _Settings(Protocol):
    @property
    def batch_size(self) -> int: ...
    @property
    def target_answers(self) -> int: ...
    @property
    def most_batches(self) -> int: ...
    @property
    def return_after_minutes(self) -> float: ...
    def inside_needed(self, clicks: int, /) -> int: ...


@dataclass(frozen=True)
class BatchRules:
    """How batches are handed out.

    `size` trials a batch, `target` valid answers of each item and device, at most `most_batches` a participant.
    After `return_after` seconds without a sign of life a batch goes back. `needed(n)` clicks of n must lie inside.
    """

    size: int
    target: int
    most_batches: int
    return_after: float
    needed: Needed = seven_of_ten

    @classmethod
    def of(cls, settings: _Settings) -> BatchRules:
        """The rules that a study's settings state."""
        return cls(
            settings.batch_size,
            settings.target_answers,
            settings.most_batches,
            settings.return_after_minutes * 60.0,
            settings.inside_needed,
        )


@dataclass(frozen=True)
class NewAnswer:
    """An answer as it came: `key` made by the browser, `x` and `y` in pixels of the task's image, `early` a count.

    `inside` and `near` judge a click and are None for anything else; `value` is a review's or a rating's.
    """

    key: str
    trial: str
    x: float | None = None
    y: float | None = None
    inside: bool | None = None
    near: bool | None = None
    value: int | None = None
    early: int = 0
    reaction_ms: float | None = None
    durations: Mapping[str, Any] = field(default_factory=dict)
    circumstances: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """That an answer is on disk: `repeated` when it was before, and `answered` of its batch's `of` trials are."""

    repeated: bool
    batch_complete: bool
    batch_valid: bool | None
    answered: int
    of: int


@dataclass(frozen=True)
class Tally:
    """What one participant did so far: answers, batches that were completed, batches that were handed out."""

    answered: int
    complete: int
    batches: int
