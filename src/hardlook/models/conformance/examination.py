"""One model under examination: it is asked as seldom as the checks allow, since networks are slow.

>>> from hardlook.models.conformance.exercises import EXERCISES
>>> from hardlook.models.planted.clicks import PlantedClicks
>>> [finding.check for finding in Examination(EXERCISES["click-model"], PlantedClicks(), None).findings()][-3:]
['order', 'inputs untouched', 'answers kept']
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from hardlook.models.conformance.exercise import Exercise
from hardlook.models.conformance.finding import Finding, Unanswered

NO_DEVICE = "no-such-device"
Trial = Callable[[], list[str]]


@dataclass(frozen=True)
class Asked:
    """A call on all probes: whether it `changed` them, its answers, and copies made before any other call."""

    changed: bool
    answers: list[Any]
    copies: list[Any]


class Examination:
    """The shared checks of a role on one model; `builder` makes another like it, where there is one."""

    def __init__(self, exercise: Exercise, model: Any, builder: Callable[..., Any] | None) -> None:
        self.exercise = exercise
        self.model = model
        self.builder = builder
        self._alone: dict[int, Any] = {}

    def findings(self) -> Iterator[Finding]:
        """All findings, in the order of the checks."""
        for check, trial, tried in self._trials():
            try:
                faults = trial()
            except Unanswered as fault:
                faults = [str(fault)]
            except Exception as error:
                faults = [f"expected an answer, got {raised(error)}"]
            yield Finding(check, not faults, "; ".join(dict.fromkeys(faults)) or tried)

    def _trials(self) -> Iterator[tuple[str, Trial, str]]:
        what, builder = self.exercise.what, self.builder
        yield "attributes", lambda: self.exercise.attributes(self.model), "the attributes are as the role says"
        checks = [probe.check for probe in self.exercise.probes(self.model)]
        for name in dict.fromkeys(checks):
            places = [index for index, check in enumerate(checks) if check == name]
            yield name, functools.partial(self._probed, places), "kind, shape, type and range as the role says"
        if self.exercise.batched:
            yield f"different {what} in one call", self._together, f"one right answer for each of the {what}"
            yield "one by one", self._one_by_one, f"{what} asked alone and together give the same"
            yield "empty batch", self._none_for_none, "no answer to no question"
        yield "same again", lambda: self._as_before(self.model), "the same question gives the same answer"
        if builder is not None:
            yield "fresh instance", lambda: self._as_before(builder()), "a second instance gives the same answers"
        yield "order", self._reordered, "answers follow their questions"
        yield "inputs untouched", self._untouched, "no input was changed"
        yield "answers kept", self._kept, "later calls leave earlier answers alone"
        for check, further in self.exercise.further:
            yield check, functools.partial(further, self.model), "as the role says"
        if builder is not None and "device" in inspect.signature(builder).parameters:
            yield "device", functools.partial(_device_faults, builder), "a device that is none is named in the error"

    def _values(self) -> list[Any]:
        return [probe.value for probe in self.exercise.probes(self.model)]

    @functools.cached_property
    def _asked(self) -> Asked:
        values = self._values()
        before = [array.copy() for array in _arrays(values)]
        answers = self.exercise.ask(self.model, values)
        changed = any(not np.array_equal(a, b) for a, b in zip(before, _arrays(values), strict=True))
        return Asked(changed, answers, copy.deepcopy(answers))

    def _answer_alone(self, place: int) -> Any:
        if place not in self._alone:
            self._alone[place] = copy.deepcopy(self.exercise.ask(self.model, [self._values()[place]])[0])
        return self._alone[place]

    def _probed(self, places: Sequence[int]) -> list[str]:
        values = self._values()
        return [
            fault
            for place in places
            for fault in self.exercise.judge(self.model, values[place], self._answer_alone(place))
        ]

    def _together(self) -> list[str]:
        judged = [
            self.exercise.judge(self.model, v, a) for v, a in zip(self._values(), self._asked.copies, strict=True)
        ]
        return [f"answer {place}: {fault}" for place, faults in enumerate(judged) for fault in faults]

    def _one_by_one(self) -> list[str]:
        return self._differences([self._answer_alone(place) for place in range(len(self._asked.copies))])

    def _none_for_none(self) -> list[str]:
        answers = self.exercise.ask(self.model, [])
        return [f"expected no answers to an empty list, got {len(answers)}"] if answers else []

    def _as_before(self, model: Any) -> list[str]:
        return self._differences(self.exercise.ask(model, self._values()))

    def _reordered(self) -> list[str]:
        values = self._values()
        order = [*range(1, len(values), 2), *range(0, len(values), 2)][::-1]
        answers = self.exercise.ask(self.model, [values[place] for place in order])
        return self._differences([answers[order.index(place)] for place in range(len(order))])

    def _untouched(self) -> list[str]:
        return ["expected the inputs as they were, got them changed by the call"] if self._asked.changed else []

    def _kept(self) -> list[str]:
        values = self._values()
        self.exercise.ask(self.model, values[:2])
        return self._differences(self._asked.answers)

    def _differences(self, answers: Sequence[Any]) -> list[str]:
        found = [self.exercise.differ(one, two) for one, two in zip(self._asked.copies, answers, strict=True)]
        return [
            f"expected the same answer for question {place}, but {words}" for place, words in enumerate(found) if words
        ]


def raised(error: Exception) -> str:
    """An exception in words."""
    return f"{type(error).__name__}: {error}"


def _device_faults(builder: Callable[..., Any]) -> list[str]:
    try:
        builder(device=NO_DEVICE)
    except Exception as error:
        if NO_DEVICE in str(error):
            return []
        return [f"expected an error that names the device {NO_DEVICE!r}, got {raised(error)}"]
    return [f"expected an error for the device {NO_DEVICE!r}, got a model"]


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _arrays(getattr(value, field.name))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _arrays(part)
