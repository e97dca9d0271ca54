r"""What the store takes and returns: participants, batches, trials, answers, refusals; and which values it accepts.

>>> BatchRules(size=10, target=25, most_batches=20, return_after=1800.0).needed(10)
7

Text and numbers are checked so that both databases hold them as they are: PostgreSQL refuses a NUL and counts
characters, SQLite would turn NaN into NULL. Anything else is refused by name.

>>> check_text("language", "de", 16)
'de'
>>> check_text("language", "d\0e", 16)
Traceback (most recent call last):
...
hardlook.collect.store.records.Refusal: language: a NUL cannot be stored
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hardlook.collect.study.tasks import Item

if TYPE_CHECKING:
    from hardlook.collect.study.settings import StudySettings

TrialState = Literal["assigned", "answered", "returned"]
BatchState = Literal["open", "complete", "returned"]
Needed = Callable[[int], int]
IsTooQuick = Callable[[Iterable[tuple[str, float | None, float]]], bool]


class Refusal(Exception):
    """A request of a participant that cannot be done; `code` is for programs, the message for people.

    Codes: unknown-participant, unknown-trial, unknown-device, no-device, already-answered, returned, key-used,
    address-busy, bad-value.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(code, message)

    def __str__(self) -> str:
        return self.message


def seven_of_ten(clicks: int) -> int:
    """How many of `clicks` clicks must lie inside by RClicks' rule: 7 of 10, a shorter batch in proportion.

    >>> [seven_of_ten(clicks) for clicks in (10, 5, 1)]
    [7, 4, 1]
    """
    return math.ceil(0.7 * clicks - 1e-9)


def never_too_quick(answers: Iterable[tuple[str, float | None, float]]) -> bool:
    """False: no batch is too quick."""
    return False


@dataclass(frozen=True)
class Participant:
    """One known by a random id alone; times in seconds since 1970, `finished` when first nothing was left for them."""

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
    """The `position`-th item (from 0) of a batch; shown `shows` times, first at `shown` (seconds since 1970)."""

    id: str
    position: int
    item: Item
    state: TrialState
    shows: int
    shown: float | None = None


@dataclass(frozen=True)
class Batch:
    """Trials assigned together; `number` counts a participant's batches from 1."""

    id: str
    number: int
    device: str
    trials: tuple[Trial, ...]


# A place is kept for who is in the practice until they were inactive for so long.
RESERVE_SECONDS = 5 * 60.0


@dataclass(frozen=True)
class BatchRules:
    """How batches are assigned.

    `size` trials per batch and `checks` attention checks in addition, `target` valid answers per item and device, at
    most `most_batches` per participant. After `return_after` seconds of inactivity a batch is returned, one without an
    answer `return_unanswered` seconds after it was assigned. `needed(n)` clicks of n must lie inside.
    `is_too_quick` judges the (mode, shown, received) of a batch's answers; a quick batch does not count and earns no
    code. With `code_for_valid` only batches that count earn one. A place is kept for who is in the practice until they
    were inactive for `reserve_after` seconds; 0 keeps none. At most `most_per_address` batches that were requested from
    one address are open at the same time.
    """

    size: int
    target: int
    most_batches: int
    return_after: float
    needed: Needed = seven_of_ten
    return_unanswered: float = math.inf
    checks: int = 0
    is_too_quick: IsTooQuick = never_too_quick
    code_for_valid: bool = False
    reserve_after: float = 0.0
    most_per_address: int = sys.maxsize

    @classmethod
    def of(cls, settings: StudySettings) -> BatchRules:
        """The rules that a study's settings state."""
        return cls(
            settings.batch_size,
            settings.target_answers,
            settings.most_batches,
            settings.return_after_minutes * 60.0,
            settings.inside_needed,
            settings.return_unanswered_minutes * 60.0,
            settings.attention_checks,
            settings.is_too_quick if settings.quick_batches == "drop" else never_too_quick,
            settings.code_for == "valid",
            RESERVE_SECONDS,
            settings.limits.open_batches_per_address,
        )


@dataclass(frozen=True)
class NewAnswer:
    """An answer as it arrives: `key` made by the browser, `x` and `y` in pixels of the task's image, `early` a count.

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
    """An answer is on disk: `repeated` when it was before; `answered` of the `of` trials of its batch are."""

    repeated: bool
    batch_complete: bool
    batch_valid: bool | None
    answered: int
    of: int


@dataclass(frozen=True)
class Practice:
    """One trial of a participant's training round: when it was last shown, and how it was answered so far."""

    trial: str
    shown: float
    tries: int
    passed: bool


@dataclass(frozen=True)
class Tally:
    """Counts of one participant: answers, completed batches, batches assigned."""

    answered: int
    complete: int
    batches: int


# Longest texts, in characters.
KEY, LANGUAGE, INVITATION, DEVICE, ID, PERSON, ADDRESS = 64, 16, 64, 8, 32, 128, 8
_MAX_JSON_LENGTH = 10_000
_MAX_INTEGER = 2**31 - 1


def check_text(name: str, value: object, most: int) -> str:
    """`value` as text of 1 to `most` characters that UTF-8 can hold, without NUL; else a `Refusal` bad-value."""
    if not isinstance(value, str):
        raise _make_refusal(name, f"expected text, not {type(value).__name__}")
    if not 0 < len(value) <= most:
        raise _make_refusal(name, f"expected 1 to {most} characters, not {len(value)}")
    if "\0" in value:
        raise _make_refusal(name, "a NUL cannot be stored")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise _make_refusal(name, "half a surrogate pair cannot be stored")
    return value


def is_storable(value: object, most: int) -> bool:
    r"""Whether `value` could be in the database at all; anything else need not be looked up.

    >>> is_storable("a1", 32), is_storable("a\0", 32), is_storable("a" * 33, 32)
    (True, False, False)
    """
    try:
        check_text("", value, most)
    except Refusal:
        return False
    return True


def check_number(name: str, value: object) -> float:
    """`value` as a finite float; else a `Refusal` bad-value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300 or math.isnan(value):
        raise _make_refusal(name, "expected a finite number")
    return float(value)


def check_integer(name: str, value: object) -> int:
    """`value` as an integer of 32 bits; else a `Refusal` bad-value."""
    if isinstance(value, bool) or not isinstance(value, int) or not -_MAX_INTEGER <= value <= _MAX_INTEGER:
        raise _make_refusal(name, "expected a whole number of 32 bits")
    return value


def answer_row(answer: NewAnswer) -> dict[str, Any]:
    """The columns of `answers` that an answer itself fills, checked.

    >>> answer_row(NewAnswer("key-1", "trial-1", value=3))["value"]
    3
    """
    return {
        "key": check_text("key", answer.key, KEY),
        "x": None if answer.x is None else check_number("x", answer.x),
        "y": None if answer.y is None else check_number("y", answer.y),
        "inside": None if answer.inside is None else int(bool(answer.inside)),
        "near": None if answer.near is None else int(bool(answer.near)),
        "value": None if answer.value is None else check_integer("value", answer.value),
        "early": check_integer("early", answer.early),
        "reaction_ms": None if answer.reaction_ms is None else check_number("reaction_ms", answer.reaction_ms),
        "durations": _json_of("durations", answer.durations),
        "circumstances": _json_of("circumstances", answer.circumstances),
    }


def _json_of(name: str, value: Mapping[str, Any]) -> str:
    try:
        # ASCII: a NUL or half a pair inside becomes an escape, which any database holds.
        text = json.dumps(dict(value), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise _make_refusal(name, "expected plain JSON values") from None
    if len(text) > _MAX_JSON_LENGTH:
        raise _make_refusal(name, f"expected at most {_MAX_JSON_LENGTH} characters of JSON, not {len(text)}")
    return text


def _make_refusal(name: str, why: str) -> Refusal:
    return Refusal("bad-value", f"{name}: {why}")
