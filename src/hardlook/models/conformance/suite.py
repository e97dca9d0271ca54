"""The suite: any model or builder against its role; what the model raises becomes a finding.

>>> from hardlook.models.planted.saliency import PlantedSaliency
>>> {finding.passed for finding in check_model(PlantedSaliency, "saliency")}
{True}
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from hardlook.errors import ModelError
from hardlook.models.arguments import convert
from hardlook.models.conformance.examination import Examination, raised
from hardlook.models.conformance.exercises import EXERCISES
from hardlook.models.conformance.finding import Finding
from hardlook.models.registry import find, missing_members
from hardlook.models.roles import ROLES


def check_named(name: str, role: str, args: Mapping[str, Any] | None = None) -> list[Finding]:
    """Check the model that the registry knows as `name`, made with `args`; an impossible device is tried too."""
    factory = find(name).factory()
    return check_model(functools.partial(factory, **convert(name, factory, args or {})), role)


def check_model(model_or_builder: Any, role: str) -> list[Finding]:
    """All findings on a model, or on what a class or factory makes when called without arguments.

    With a class or factory a second instance is compared with the first, and where it takes a `device` an impossible
    one is tried.
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
        return [Finding("construction", False, f"expected a model, got {raised(error)}")]
    lacking = missing_members(model, role)
    if lacking:
        expected = f"expected `{'`, `'.join(lacking)}`, which a {role} has"
        return [Finding("members", False, f"{expected}; {type(model).__qualname__} has not")]
    members = Finding("members", True, f"has all that a {role} has")
    return [members, *Examination(EXERCISES[role], model, builder).findings()]
