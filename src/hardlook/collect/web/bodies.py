"""What a browser may send, field by field; anything else is refused with the field's name.

>>> AnswerBody.model_validate({"key": "k" * 16, "trial": "a" * 26, "x": 3.0, "y": 4.0}).early
0
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Key = Annotated[str, Field(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Milliseconds = Annotated[float, Field(ge=0, le=86_400_000, allow_inf_nan=False)]
Coordinate = Annotated[float, Field(ge=-100_000, le=100_000, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
Pointer = Literal["mouse", "touch", "pen", ""]


class _Body(BaseModel):
    # Strict: "3" is no number, and 1 is no truth.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Durations(_Body):
    """Measured milliseconds of each phase, by `performance.now` at the frames that began and ended it."""

    image: Milliseconds = 0.0
    target: Milliseconds = 0.0
    again: Milliseconds = 0.0
    frame: Milliseconds = Field(0.0, description="the median time between two frames")
    longest_frame: Milliseconds = 0.0


class Circumstances(_Body):
    """What the screen was like when the answer was given."""

    pointer: Pointer = ""
    ratio: Number = Field(1.0, description="device pixels a CSS pixel")
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
    """The language to go on in: one of the study's."""

    language: Annotated[str, Field(min_length=1, max_length=16, pattern=r"^[A-Za-z0-9-]+$")]


class TrainingBody(_Body):
    """An answer of the training round, which gets feedback and is not stored."""

    trial: Key
    x: Coordinate | None = None
    y: Coordinate | None = None
    value: Annotated[int, Field(ge=0, le=10)] | None = None


class EmptyBody(_Body):
    """Nothing: the address says it all."""
