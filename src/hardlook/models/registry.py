"""Models by name: one decorator line to add one, three places to look one up.

A name is looked for among the registered models, then among the entry points of the group `hardlook.models`, then
read as `package.module:attribute`.

>>> model = build("planted-segmenter", "semantic-segmenter", {"sibling": "0.3"})
>>> model.faults.sibling, find("planted-segmenter").card.roles
(0.3, ('semantic-segmenter',))
>>> [card.name for card in list_models("*segmenter", role="semantic-segmenter")]
['planted-segmenter']
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from hardlook.errors import HardlookError, ModelError
from hardlook.models import outside
from hardlook.models.arguments import convert
from hardlook.models.card import Found, ModelCard, marks_of
from hardlook.models.near_names import meant
from hardlook.models.roles import ROLES

__all__ = [
    "BUILT_IN",
    "Found",
    "ModelCard",
    "build",
    "find",
    "list_models",
    "missing_members",
    "register",
    "register_lazily",
    "resolve",
]

BUILT_IN = (
    "hardlook.models.real",
    "hardlook.models.planted.encoder",
    "hardlook.models.planted.text_encoder",
    "hardlook.models.planted.image_text_encoder",
    "hardlook.models.planted.saliency",
    "hardlook.models.planted.segmenter",
    "hardlook.models.planted.instances",
    "hardlook.models.planted.panoptic",
    "hardlook.models.planted.one_shot",
    "hardlook.models.planted.learner",
    "hardlook.models.planted.disc",
    "hardlook.models.planted.clicks",
    "hardlook.models.click_models.uniform",
    "hardlook.models.click_models.distance",
    "hardlook.models.click_models.center",
    "hardlook.models.planted.users",
    "hardlook.models.few_shot.nearest_centroid",
    "hardlook.models.few_shot.cosine_centroid",
    "hardlook.models.few_shot.nearest_neighbours",
    "hardlook.models.few_shot.matching",
    "hardlook.models.few_shot.linear_head",
    "hardlook.models.few_shot.cosine_head",
    "hardlook.models.few_shot.neg_cosine_head",
    "hardlook.models.few_shot.logistic",
    "hardlook.models.few_shot.ridge",
    "hardlook.models.few_shot.soft_k_means",
    "hardlook.models.few_shot.lp_ft",
    "hardlook.models.few_shot.dn4",
    "hardlook.models.few_shot.covamnet",
    "hardlook.models.few_shot.frn",
    "hardlook.models.few_shot.deepbdc",
    "hardlook.models.few_shot.label_propagation",
)
Factory = TypeVar("Factory", bound=Callable[..., Any])
_ROLES = f"the roles are {', '.join(ROLES)}"


_REGISTERED: dict[str, Found] = {}


def register(
    name: str,
    *,
    role: str | tuple[str, ...],
    summary: str = "",
    licence: str = "",
    extra: str = "",
    weights: tuple[str, ...] = (),
) -> Callable[[Factory], Factory]:
    """A decorator that adds a class or factory under `name`.

    >>> @register("always-empty", role="one-shot-segmenter", summary="finds nothing")
    ... class AlwaysEmpty:
    ...     def segment_queries(self, queries, supports):
    ...         return [query[..., 0] > 255 for query in queries]
    >>> find("always-empty").card.summary
    'finds nothing'
    """
    roles = (role,) if isinstance(role, str) else role

    def add(target: Factory) -> Factory:
        origin = "built-in" if target.__module__.startswith("hardlook.") else target.__module__
        _add(ModelCard(name, roles, summary, licence, extra, weights, origin, marks=marks_of(target)), target)
        return target

    return add


def register_lazily(
    name: str,
    target: str,
    *,
    role: str | tuple[str, ...],
    summary: str = "",
    licence: str = "",
    extra: str = "",
    weights: tuple[str, ...] = (),
) -> None:
    """Add the model at `package.module:attribute`, which is imported when the model is built, not before."""
    roles = (role,) if isinstance(role, str) else role
    _add(ModelCard(name, roles, summary, licence, extra, weights), target)


def find(name: str, role: str | None = None) -> Found:
    """The model of that name; a `ModelError` with near names when there is none, of `role` before others."""
    _import_built_in()
    if name in _REGISTERED:
        return _REGISTERED[name]
    points = outside.points()
    for point in points:
        if point.name == name:
            found = outside.from_entry_point(point)
            return _REGISTERED.get(name, found)  # an outside module may use the decorator, which knows more
    if ":" in name:
        return outside.from_dotted(name)
    hint = meant(name, role, (found.card for found in _REGISTERED.values()), [point.name for point in points])
    listed = f"`hardlook models --role {role}` lists those that fit" if role else "`hardlook models` lists them all"
    raise ModelError(
        f"there is no model {name!r}", remedy=f"{hint}{listed}; a class of your own is named package.module:Class"
    )


def resolve(name: str, role: str, args: Mapping[str, Any] | None = None) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The factory of the model `name` and its keyword arguments, checked without making the model.

    >>> resolve("planted-segmenter", "semantic-segmenter", {"sibling": "0.3"})[1]
    {'sibling': 0.3}
    """
    if role not in ROLES:
        raise ModelError(f"there is no role {role!r}", remedy=_ROLES)
    found = find(name, role)
    if found.card.roles and role not in found.card.roles:
        hint = meant(name, role, (one.card for one in _REGISTERED.values() if role in one.card.roles))
        raise ModelError(
            f"the model {name!r} is no {role}; it is a {' and '.join(found.card.roles)}",
            remedy=f"{hint}`hardlook models --role {role}` lists those that are",
        )
    factory = found.factory()
    return factory, convert(name, factory, args or {})


def build(name: str, role: str, args: Mapping[str, Any] | None = None) -> Any:
    """The model `name` for `role`, made with the keyword arguments `args` (strings are converted by annotation)."""
    factory, keywords = resolve(name, role, args)
    try:
        model = factory(**keywords)
    except HardlookError:
        raise
    except Exception as error:
        given = ", ".join(f"{key}={value!r}" for key, value in keywords.items()) or "no arguments"
        raise ModelError(
            f"the model {name!r} could not be made with {given}: {type(error).__name__}: {error}"
        ) from error
    lacking = missing_members(model, role)
    if lacking:
        others = [other for other in ROLES if not missing_members(model, other)]
        serves = f"it serves as {' and '.join(others)}" if others else "it has the methods of no role"
        raise ModelError(
            f"the model {name!r} cannot serve as {role}: it lacks {', '.join(lacking)}; {serves}",
            remedy=f"`hardlook check {role} {name}` says what the role asks for",
        )
    return model


def list_models(pattern: str = "*", role: str | None = None) -> list[ModelCard]:
    """Cards of all models whose name fits the pattern, sorted by name; one that cannot be loaded says why.

    Built-in models are listed without importing what they run on; entry points are loaded, since only the object
    knows its role. An outside model that names no role is listed under every role.
    """
    _import_built_in()
    cards = []
    for point in outside.points():
        card = outside.listed(point)
        registered = _REGISTERED.get(point.name)  # looked up after loading, which may have registered it
        if registered is None:
            cards.append(card)
        elif getattr(registered.target, "__module__", None) != point.module:
            hidden = f"hidden by the {registered.card.origin} model of the same name; call it {point.value}"
            cards.append(replace(card, problem=hidden))
    cards += [found.card for found in _REGISTERED.values()]
    fits = (card for card in cards if fnmatchcase(card.name, pattern))
    return sorted((card for card in fits if role is None or not card.roles or role in card.roles), key=lambda c: c.name)


def missing_members(model: object, role: str) -> list[str]:
    """Names of the attributes and methods of the role that the model does not have."""
    protocol = ROLES[role]
    members = [*inspect.get_annotations(protocol), *vars(protocol)]
    return [name for name in members if not name.startswith("_") and not hasattr(model, name)]


def _add(card: ModelCard, target: Callable[..., Any] | str) -> None:
    unknown = [role for role in card.roles if role not in ROLES]
    if unknown:
        raise ModelError(f"the model {card.name!r} is given no role there is: {', '.join(unknown)}", remedy=_ROLES)
    earlier = _REGISTERED.get(card.name)
    # A module that is run again (a reload, a notebook cell) replaces its own model, never another's.
    if earlier is not None and _place(earlier.target) != _place(target):
        raise ModelError(
            f"the model name {card.name!r} is taken by {_place(earlier.target)}",
            remedy=f"give {_place(target)} another name",
        )
    _REGISTERED[card.name] = Found(card, target)


def _place(target: Callable[..., Any] | str) -> str:
    return target if isinstance(target, str) else f"{target.__module__}:{target.__qualname__}"


def _import_built_in() -> None:
    for module in BUILT_IN:
        importlib.import_module(module)
