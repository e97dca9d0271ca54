"""Check any model, or what a class or factory makes, against its role; an exception in the model becomes a finding.

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

from hardlook.models.answer_checks import AnswerError
from hardlook.models.arguments import convert_arguments
from hardlook.models.conformance.contracts import CONTRACTS, Finding, RoleContract
from hardlook.models.registry import check_roles, find, missing_members

NO_DEVICE = "no-such-device"

Trial = Callable[[], list[str]]


def check_named(name: str, role: str, args: Mapping[str, Any] | None = None) -> list[Finding]:
    """Check the model that the registry knows as `name`, made with `args`; an impossible device is tried too."""
    factory = find(name).factory()
    return check_model(functools.partial(factory, **convert_arguments(name, factory, args or {})), role)


def check_model(model_or_builder: Any, role: str) -> list[Finding]:
    """All findings on a model, or on what a class or factory makes; of these a second instance is compared too."""
    check_roles(role)
    is_builder = isinstance(model_or_builder, type) or (
        callable(model_or_builder) and bool(missing_members(model_or_builder, role))
    )
    builder: Callable[..., Any] | None = model_or_builder if is_builder else None
    try:
        model = builder() if builder is not None else model_or_builder
    except (Exception, SystemExit) as error:
        return [Finding("construction", False, f"expected a model, got {describe_exception(error)}")]
    if lacking := missing_members(model, role):
        expected = f"expected `{'`, `'.join(lacking)}`, which a {role} has"
        return [Finding("members", False, f"{expected}; {type(model).__qualname__} has not")]
    members = Finding("members", True, f"has all that a {role} has")
    return [members, *ContractChecks(CONTRACTS[role], model, builder).findings()]


class ContractChecks:
    """The shared checks of a role on one model; `builder` makes another like it, where there is one."""

    def __init__(self, contract: RoleContract, model: Any, builder: Callable[..., Any] | None) -> None:
        self.contract = contract
        self.model = model
        self.builder = builder
        self._alone: dict[int, Any] = {}

    def findings(self) -> Iterator[Finding]:
        """All findings, in the order of the checks."""
        for check, trial, tried in self._trials():
            try:
                faults = trial()
            except AnswerError as fault:
                faults = [str(fault)]
            except (Exception, SystemExit) as error:
                faults = [f"expected an answer, got {describe_exception(error)}"]
            yield Finding(check, not faults, "; ".join(dict.fromkeys(faults)) or tried)

    def _trials(self) -> Iterator[tuple[str, Trial, str]]:
        what, builder = self.contract.input_name, self.builder
        yield "attributes", lambda: self.contract.attribute_faults(self.model), "the attributes are as the role says"
        checks = [probe.check for probe in self.contract.probes(self.model)]
        for name in dict.fromkeys(checks):
            places = [index for index, check in enumerate(checks) if check == name]
            yield name, functools.partial(self._check_probes, places), "kind, shape, type and range as the role says"
        if self.contract.batched:
            yield f"different {what} in one call", self._check_batch, f"one right answer for each of the {what}"
            yield "one by one", self._check_one_by_one, f"{what} answered alone and together give the same"
            yield "empty batch", self._check_empty_batch, "no answer to no question"
        yield "same again", lambda: self._check_repeated(self.model), "the same question gives the same answer"
        if builder is not None:
            yield "fresh instance", lambda: self._check_repeated(builder()), "a second instance gives the same answers"
        yield "order", self._check_order, "answers follow their questions"
        yield "inputs untouched", self._check_inputs, "no input was changed"
        yield "answers kept", self._check_answers_kept, "later calls leave earlier answers alone"
        for check, further in self.contract.extra_checks:
            yield check, functools.partial(further, self.model), "as the role says"
        for attribute, (check, further) in self.contract.optional_checks.items():
            if hasattr(self.model, attribute):
                yield check, functools.partial(further, self.model), "as the role says"
        if builder is not None and "device" in inspect.signature(builder).parameters:
            yield "device", functools.partial(_device_faults, builder), "a device that is none is named in the error"

    def _values(self) -> list[Any]:
        return [probe.value for probe in self.contract.probes(self.model)]

    @functools.cached_property
    def _first_call(self) -> tuple[bool, list[Any], list[Any]]:
        """Whether a call with all probes changed them, its answers, and copies made before any other call."""
        values = self._values()
        before = [array.copy() for array in _arrays(values)]
        answers = self.contract.call(self.model, values)
        changed = any(not np.array_equal(a, b) for a, b in zip(before, _arrays(values), strict=True))
        return changed, answers, copy.deepcopy(answers)

    def _answer_alone(self, place: int) -> Any:
        if place not in self._alone:
            self._alone[place] = copy.deepcopy(self.contract.call(self.model, [self._values()[place]])[0])
        return self._alone[place]

    def _check_probes(self, places: Sequence[int]) -> list[str]:
        values = self._values()
        return [
            fault
            for place in places
            for fault in self.contract.find_faults(self.model, values[place], self._answer_alone(place))
        ]

    def _check_batch(self) -> list[str]:
        _, _, answers = self._first_call
        return [
            f"answer {place}: {fault}"
            for place, (value, answer) in enumerate(zip(self._values(), answers, strict=True))
            for fault in self.contract.find_faults(self.model, value, answer)
        ]

    def _check_one_by_one(self) -> list[str]:
        return self._differences([self._answer_alone(place) for place in range(len(self._values()))])

    def _check_empty_batch(self) -> list[str]:
        answers = self.contract.call(self.model, [])
        return [f"expected no answers to an empty list, got {len(answers)}"] if answers else []

    def _check_repeated(self, model: Any) -> list[str]:
        return self._differences(self.contract.call(model, self._values()))

    def _check_order(self) -> list[str]:
        values = self._values()
        order = [*range(1, len(values), 2), *range(0, len(values), 2)][::-1]
        answers = self.contract.call(self.model, [values[place] for place in order])
        return self._differences([answers[order.index(place)] for place in range(len(order))])

    def _check_inputs(self) -> list[str]:
        changed, *_ = self._first_call
        return ["expected the inputs as they were, got them changed by the call"] if changed else []

    def _check_answers_kept(self) -> list[str]:
        self.contract.call(self.model, self._values()[:2])
        _, answers, _ = self._first_call
        return self._differences(answers)

    def _differences(self, answers: Sequence[Any]) -> list[str]:
        _, _, first = self._first_call
        found = [self.contract.compare(one, two) for one, two in zip(first, answers, strict=True)]
        return [
            f"expected the same answer for question {place}, but {words}" for place, words in enumerate(found) if words
        ]


def describe_exception(error: BaseException) -> str:
    """An exception as text."""
    return f"{type(error).__name__}: {error}"


def _device_faults(builder: Callable[..., Any]) -> list[str]:
    try:
        builder(device=NO_DEVICE)
    except (Exception, SystemExit) as error:
        if NO_DEVICE in str(error):
            return []
        return [f"expected an error that names the device {NO_DEVICE!r}, got {describe_exception(error)}"]
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
