"""Models of other packages: found by entry point or by dotted name, and described by what they say of themselves.

An entry point of the group `hardlook.models` has the model's name and points to a class or factory. The object may
carry `hardlook_card`, a mapping with any of `role`, `summary`, `licence`, `extra` and `weights`.

>>> class Mine:
...     'Colours by hand.'
...     hardlook_card = {"role": "saliency", "licence": "MIT"}
>>> card_of(Mine, "mine").roles, card_of(Mine, "mine").summary
(('saliency',), 'Colours by hand.')
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from hardlook.errors import HardlookError, ModelError
from hardlook.models.card import Found, ModelCard, import_dotted, marks_of
from hardlook.models.roles import ROLES

GROUP = "hardlook.models"


def points() -> list[EntryPoint]:
    """The entry points of all installed packages, in the order of their names."""
    return sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))


def from_dotted(name: str) -> Found:
    """The model at `package.module:attribute`."""
    return Found(replace(card_of(import_dotted(name), name), origin="dotted name"), name)


def from_entry_point(point: EntryPoint) -> Found:
    """The model that an entry point leads to."""
    return Found(replace(card_of(import_dotted(point.value), point.name), origin=_origin(point)), point.value)


def listed(point: EntryPoint) -> ModelCard:
    """The card of an entry point's model; when it does not load, a card that says why."""
    try:
        return from_entry_point(point).card
    except HardlookError as error:
        return ModelCard(point.name, origin=_origin(point), problem=error.what)


def card_of(target: Callable[..., Any], name: str) -> ModelCard:
    """The card a class or factory carries in `hardlook_card`; its docstring's first line where it has no summary."""
    said = getattr(target, "hardlook_card", {})
    fields = ("role", "summary", "licence", "extra", "weights")
    given = said if isinstance(said, Mapping) else {key: getattr(said, key) for key in fields if hasattr(said, key)}
    role, weights = given.get("role", ()), given.get("weights", ())
    roles = (role,) if isinstance(role, str) else tuple(role)
    unknown = [role for role in roles if role not in ROLES]
    if unknown:
        raise ModelError(
            f"the hardlook_card of {name!r} names a role that does not exist: {', '.join(map(repr, unknown))}",
            remedy=f"the roles are {', '.join(ROLES)}",
        )
    first_line = (inspect.getdoc(target) or "").partition("\n")[0]
    return ModelCard(
        name,
        roles,
        summary=str(given.get("summary", first_line)),
        licence=str(given.get("licence", "")),
        extra=str(given.get("extra", "")),
        weights=(weights,) if isinstance(weights, str) else tuple(weights),
        marks=marks_of(target),
    )


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "entry point"
