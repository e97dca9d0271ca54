"""Instances, and the courses of clicks on them: by the centre rule, or drawn by a clicking group.

A course is one sequence of clicks on an instance. A group draws from one share of the click model's mass.

>>> [course.name for course in (BASE, *make_clicking_groups(3))]
['base', 'G1', 'G2', 'G3']
>>> make_clicking_groups(10)[9]
Course(name='G10', low=0.9, high=1.0)
>>> frame = np.zeros((4, 6), bool)
>>> frame[1:3, 2:5] = True
>>> Instance("mine", "cat_1", np.zeros((4, 6, 3), np.uint8), frame, ~frame & False).shape
(4, 6)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from hardlook.errors import DataError, OptionError
from hardlook.models.roles import Image, Mask


@dataclass(frozen=True)
class Course:
    """One sequence of clicks: by the centre rule without bounds, else drawn from the mass between `low` and `high`.

    The bounds are shares of the probability, in [0, 1], counted from the least probable pixel. The name keys the
    random numbers.
    """

    name: str
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            return
        if self.low is None or self.high is None or not 0 <= self.low < self.high <= 1:
            raise OptionError(
                f"the course {self.name!r} cannot draw between {self.low} and {self.high}",
                remedy="0 <= low < high <= 1, or neither for the centre rule",
            )

    @property
    def draws(self) -> bool:
        """Whether it draws its clicks from the click model."""
        return self.low is not None


BASE = Course("base")

HALVES = (Course("lower", 0.0, 0.5), Course("upper", 0.5, 1.0))


def make_clicking_groups(count: int = 10) -> tuple[Course, ...]:
    """G1 to G`count`, each an equal share of the mass; G1 is the least probable."""
    if count < 1:
        raise OptionError(f"{count} clicking groups", remedy="at least 1")
    return tuple(Course(f"G{one + 1}", one / count, (one + 1) / count) for one in range(count))


DRAW_MARK = "#"  # between the name of a course and the number of its draw, from 2


def repeat_courses(courses: Sequence[Course], draw: int) -> tuple[Course, ...]:
    """The courses of a further draw, from 2: those that draw their clicks, with names that key other random numbers.

    >>> [course.name for course in repeat_courses((BASE, *make_clicking_groups(2)), 2)]
    ['G1#2', 'G2#2']
    """
    return tuple(replace(course, name=f"{course.name}{DRAW_MARK}{draw}") for course in courses if course.draws)


def split_draws(courses: Sequence[str]) -> list[dict[str, int]]:
    """The courses of each draw, by their names in the first draw: their indices among all courses.

    The centre rule draws nothing, so that it belongs to every draw.

    >>> split_draws(["base", "G1", "G2", "G1#2", "G2#2"])
    [{'base': 0, 'G1': 1, 'G2': 2}, {'base': 0, 'G1': 3, 'G2': 4}]
    """
    draws: dict[str, dict[str, int]] = {}
    for place, course in enumerate(courses):
        name, _, draw = course.partition(DRAW_MARK)
        draws.setdefault(draw, {})[name] = place
    first = draws[""]
    base = {BASE.name: first[BASE.name]} if BASE.name in first else {}
    return [first, *({**base, **later} for draw, later in draws.items() if draw)]


def find_groups(courses: Sequence[str]) -> list[int]:
    """The indices of the clicking groups of the first draw among courses by name.

    >>> find_groups(["base", "G1", "G2", "lower", "upper", "G1#2", "G2#2"])
    [1, 2]
    """
    others = {course.name for course in (BASE, *HALVES)}
    return [place for place, name in enumerate(courses) if name not in others and DRAW_MARK not in name]


GroupRule = Literal["threshold", "exact"]

PerfectRule = Literal["ours", "released"]


@dataclass(frozen=True)
class Rules:
    """How many clicks a course has and how they are chosen.

    `rounds`: clicks per course. `groups`: `threshold` (pixels between two probabilities, ties shared) or `exact` (the
    mass between two bounds to the pixel). `perfect`: where there is nothing left to click, a course stops and its
    last IoU is repeated (`ours`), or it continues with negative clicks at (0, 0) (`released`). That holds for a
    perfect mask and, which is rarer, for one whose wrong pixels have all been clicked. `seed` keys the draws.
    `boundary`: whether pixels of boundaries are counted too. `first_prompt`: a click, or the box of the object, which
    stays part of all later prompts; it takes the place of the first click.
    """

    rounds: int = 20
    groups: GroupRule = "threshold"
    perfect: PerfectRule = "ours"
    seed: int = 0
    boundary: bool = False
    first_prompt: Literal["click", "box"] = "click"

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise OptionError(f"{self.rounds} rounds", remedy="at least 1")
        if self.groups not in ("threshold", "exact") or self.perfect not in ("ours", "released"):
            raise OptionError(
                f"there are no rules groups={self.groups!r}, perfect={self.perfect!r}",
                remedy="groups is threshold or exact, perfect is ours or released",
            )


@dataclass(frozen=True)
class Instance:
    """An object to be segmented.

    `image` (H, W, 3) uint8 RGB; `target` (H, W) bool, the object; `ignore` (H, W) bool, pixels that count neither
    way. `dataset` and `name` key its random numbers, so `name` is unique within the dataset.
    """

    dataset: str
    name: str
    image: Image = field(repr=False)
    target: Mask = field(repr=False)
    ignore: Mask = field(repr=False)

    def __post_init__(self) -> None:
        sizes = {"image": self.image.shape[:2], "target": self.target.shape, "ignore": self.ignore.shape}
        if len(set(sizes.values())) != 1:
            listed = ", ".join(f"{part} {size}" for part, size in sizes.items())
            raise DataError(f"expected image, target and ignore of one size, got {listed}", unit=self.name)
        if self.target.dtype != np.bool_ or self.ignore.dtype != np.bool_:
            raise DataError(
                f"expected bool masks, got target {self.target.dtype} and ignore {self.ignore.dtype}", unit=self.name
            )
        if not (self.target & ~self.ignore).any():
            raise DataError("the target has no pixel that counts", unit=self.name, remedy="leave the instance out")

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width in pixels."""
        height, width = self.target.shape
        return height, width
