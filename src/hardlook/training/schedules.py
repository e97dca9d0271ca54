"""Learning rates as functions of the step: constant, step, multi-step, cosine and polynomial, after a linear warm-up.

>>> halving = Schedule("step", gamma=0.5, every=2)
>>> [compute_rate(halving, 0.1, step, steps=4, epochs=4) for step in range(4)]
[0.1, 0.1, 0.05, 0.05]
>>> [round(compute_rate(Schedule("cosine"), 0.1, step, steps=4, epochs=4), 4) for step in range(4)]
[0.1, 0.0854, 0.05, 0.0146]
>>> [round(compute_rate(Schedule("polynomial", gamma=0.9), 1.0, step, steps=2, epochs=1), 4) for step in range(2)]
[1.0, 0.5359]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from hardlook.errors import OptionError

Kind = Literal["constant", "step", "multi-step", "cosine", "polynomial"]


@dataclass(frozen=True)
class Schedule:
    """How the learning rate falls.

    `step` multiplies it by `gamma` every `every` epochs, `multi-step` at each of `milestones` (epochs); `cosine` lets
    it fall to 0, `polynomial` too, as the share of steps that are left to the power `gamma`. `warm_up` epochs raise it
    linearly first.
    """

    kind: Kind = "constant"
    gamma: float = 1.0
    every: int = 0
    milestones: tuple[int, ...] = ()
    warm_up: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise OptionError(f"there is no schedule {self.kind!r}", remedy=f"one of {', '.join(get_args(Kind))}")
        if self.kind == "step" and self.every < 1:
            raise OptionError("the schedule step needs the number of epochs between two steps", remedy="every=20")
        checks = {
            "gamma": (0 <= self.gamma < math.inf, "at least 0 and finite"),
            "every": (self.every >= 0, "at least 0"),
            "milestones": (min(self.milestones, default=0) >= 0, "epochs, at least 0"),
            "warm_up": (0 <= self.warm_up < math.inf, "a number of epochs, at least 0"),
        }
        for name, (is_valid, expected) in checks.items():
            if not is_valid:
                raise OptionError(f"{name} {getattr(self, name)!r}", remedy=f"{name} is {expected}")


def compute_rate(schedule: Schedule, rate: float, step: int, *, steps: int, epochs: int) -> float:
    """The learning rate at a step (from 0) of a stage of `steps` steps that stand for `epochs` epochs.

    A budget changes the steps and not the epochs, so that the rate falls at the same shares of the stage.
    """
    epoch = step * epochs // steps
    warm_up = int(schedule.warm_up * steps / epochs)
    if schedule.kind == "cosine" or step < warm_up:
        return compute_cosine(rate, step, steps, warm_up)
    if schedule.kind == "polynomial":
        left: float = (1 - (step - warm_up) / (steps - warm_up)) ** schedule.gamma
        return rate * left
    if schedule.kind == "step":
        return rate * schedule.gamma ** (epoch // schedule.every)
    return rate * schedule.gamma ** sum(epoch >= milestone for milestone in schedule.milestones)


def compute_cosine(rate: float, step: int, steps: int, warm_up: int) -> float:
    """A linear rise over `warm_up` steps, then half a cosine down to 0.

    >>> [compute_cosine(1.0, step, 4, 2) for step in range(3)]
    [0.5, 1.0, 1.0]
    """
    if step < warm_up:
        return rate * ((step + 1) / warm_up)
    return rate * 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up)))
