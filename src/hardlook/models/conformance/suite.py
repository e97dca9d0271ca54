"""The checks that every role shares; what the model raises becomes a finding.

>>> from hardlook.models.planted.saliency import PlantedSaliency
>>> {finding.passed for finding in check_model(PlantedSaliency, "saliency")}
{True}
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from hardlook.errors import ModelError
from hardlook.models.arguments import convert
from hardlook.models.conformance.exercise import Exercise
from hardlook.models.conformance.exercises import EXERCISES
from hardlook.models.conformance.finding import Finding, Unanswered
from hardlook.models.registry import build, find, missing_members
from hardlook.models.roles import ROLES

NO_DEVICE = "no-such-device"


def check_named(name: str, role: str, args: Mapping[str, Any] | None = None) -> list[Finding]:
    """Check the model that the registry knows as `name`, made with `args`."""
    build(name, role, args)
    factory = find(name).factory()
    return check_model(functools.partial(factory, **convert(name, factory, args or {})), role)


def check_model(model_or_builder: Any, role: str) -> list[Finding]:
    """All findings on a model, or on what a class or factory makes when called without arguments.

    With a class or factory a second instance is compared with the first, and an impossible device is tried.
    """
    if role not in ROLES:
        raise ModelError(f"there is no role {role!r}", remedy=f"the roles are {', '.join(ROLES)}")
    makes = isinstance(model_or_builder, type) or (
        callable(model_or_builder) and bool(missing_members(model_or_builder, role))
    )
    builder: Callable[..., Any] | None = model_or_builder if makes else None
    try:
        model = builder() if builder is not None else model_or_builder
    except Exception as error:
        return [Finding("construction", False, f"expected a model, got {_raised(error)}")]
    lacking = missing_members(model, role)
    if lacking:
        expected = f"expected `{'`, `'.join(lacking)}`, which a {role} has"
        return [Finding("members", False, f"{expected}; {type(model).__qualname__} has not")]
    findings = [Finding("members", True, f"has all that a {role} has")]
    for check, trial, tried in _trials(EXERCISES[role], model, builder):
        findings.append(_finding(check, trial, tried))
    return findings


Trial = Callable[[], list[str]]


def _trials(exercise: Exercise, model: Any, builder: Callable[..., Any] | None) -> Iterator[tuple[str, Trial, str]]:
    def ask(asked: Any, order: Sequence[int] | None = None) -> list[Any]:
        values = [probe.value for probe in exercise.probes(model)]
        return exercise.ask(asked, values if order is None else [values[i] for i in order])

    def together() -> list[str]:
        values = [probe.value for probe in exercise.probes(model)]
        answers = exercise.ask(model, values)
        return _numbered(exercise.judge(model, v, a) for v, a in zip(values, answers, strict=True))

    def again(other: Any) -> list[str]:
        return _differences(exercise, ask(model), ask(other))

    def one_by_one() -> list[str]:
        values = [probe.value for probe in exercise.probes(model)]
        return _differences(exercise, ask(model), [exercise.ask(model, [value])[0] for value in values])

    def reordered() -> list[str]:
        first = ask(model)
        order = [*range(1, len(first), 2), *range(0, len(first), 2)][::-1]
        return _differences(exercise, [first[i] for i in order], ask(model, order))

    def untouched() -> list[str]:
        values = [probe.value for probe in exercise.probes(model)]
        before = [array.copy() for array in _arrays(values)]
        exercise.ask(model, values)
        changed = [not np.array_equal(a, b) for a, b in zip(before, _arrays(values), strict=True)]
        return ["expected the inputs as they were, got them changed by the call"] if any(changed) else []

    def kept() -> list[str]:
        first = ask(model)
        copies = copy.deepcopy(first)
        order = list(range(len(first)))[::-1]
        ask(model, order)
        return _differences(exercise, copies, first)

    yield "attributes", lambda: exercise.attributes(model), "the attributes are as the role says"
    for name in dict.fromkeys(probe.check for probe in exercise.probes(model)):
        yield name, functools.partial(_alone, exercise, model, name), "kind, shape, type and range as the role says"
    if exercise.batched:
        yield f"different {exercise.what} in one call", together, f"one right answer for each of the {exercise.what}"
        yield "one by one", one_by_one, f"{exercise.what} asked alone and together give the same"
        yield "empty batch", lambda: _none_for_none(exercise, model), "no answer to no question"
    yield "same again", lambda: again(model), "the same question gives the same answer"
    if builder is not None:
        yield "fresh instance", lambda: again(builder()), "a second instance gives the same answers"
    yield "order", reordered, "answers follow their questions"
    yield "inputs untouched", untouched, "no input was changed"
    yield "answers kept", kept, "later calls leave earlier answers alone"
    for check, further in exercise.further:
        yield check, functools.partial(further, model), "as the role says"
    if builder is not None and "device" in inspect.signature(builder).parameters:
        yield "device", functools.partial(_device_faults, builder), "a device that does not exist is named in the error"


def _alone(exercise: Exercise, model: Any, name: str) -> list[str]:
    values = [probe.value for probe in exercise.probes(model) if probe.check == name]
    return [fault for value in values for fault in exercise.judge(model, value, exercise.ask(model, [value])[0])]


def _none_for_none(exercise: Exercise, model: Any) -> list[str]:
    answers = exercise.ask(model, [])
    return [f"expected no answers to an empty list, got {len(answers)}"] if answers else []


def _device_faults(builder: Callable[..., Any]) -> list[str]:
    try:
        builder(device=NO_DEVICE)
    except Exception as error:
        if NO_DEVICE in str(error):
            return []
        return [f"expected an error that names the device {NO_DEVICE!r}, got {_raised(error)}"]
    return [f"expected an error for the device {NO_DEVICE!r}, got a model"]


def _finding(check: str, trial: Trial, tried: str) -> Finding:
    try:
        faults = trial()
    except Unanswered as fault:
        faults = [str(fault)]
    except Exception as error:
        faults = [f"expected an answer, got {_raised(error)}"]
    return Finding(check, not faults, "; ".join(dict.fromkeys(faults)) or tried)


def _raised(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _numbered(faults: Iterator[list[str]]) -> list[str]:
    return [f"answer {index}: {fault}" for index, found in enumerate(faults) for fault in found]


def _differences(exercise: Exercise, first: Sequence[Any], second: Sequence[Any]) -> list[str]:
    found = [exercise.differ(one, two) for one, two in zip(first, second, strict=True)]
    return [f"expected the same answer for question {index}, but {words}" for index, words in enumerate(found) if words]


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _arrays(getattr(value, field.name))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _arrays(part)
