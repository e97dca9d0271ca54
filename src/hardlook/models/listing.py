"""`hl.models`: the models that can be run, as a list that a notebook shows as a table."""

from __future__ import annotations

import html
from fnmatch import fnmatchcase

from hardlook.errors import ModelError, OptionError
from hardlook.models.families import PREFIXES, load_family
from hardlook.models.registry import ModelCard, find, list_models
from hardlook.models.roles import ROLES


class ModelList(list[ModelCard]):
    """Cards of models; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(card.name)}</td><td>{html.escape(', '.join(card.roles) or 'any role')}</td>"
            f"<td>{html.escape(card.problem or card.summary)}</td><td>{html.escape(card.licence)}</td>"
            f"<td>{html.escape(card.extra)}</td></tr>"
            for card in self
        )
        head = "".join(f"<th>{name}</th>" for name in ("model", "roles", "summary", "licence", "extra"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def models(pattern: str = "*", *, role: str | None = None, family: str | None = None) -> ModelList:
    """The models whose names fit the pattern, with * and ?; of one role where given.

    With `family` (timm, torchvision, hf, smp, zero-shot) those of that library; the pattern is one of its own names.

    >>> models("planted-seg*")[0].roles
    ('semantic-segmenter',)
    """
    if role is not None and role not in ROLES:
        raise OptionError(f"--role {role}: there is no such role", remedy=f"one of {', '.join(ROLES)}")
    return ModelList(list_models(pattern, role) if family is None else list_family(family, pattern, role))


def list_trainable(pattern: str = "*") -> ModelList:
    """Cards of the few-shot methods that `hardlook train` trains; each runs from the folder that it was trained into.

    >>> list_trainable("protonet")[0].marks
    ('LL', 'trained', 'checked')
    """
    from hardlook.networks.few_shot.catalogue import list_methods

    cards = ModelList()
    for entry in list_methods():
        if fnmatchcase(entry.name, pattern):
            adapts = entry.learner is not None and not entry.adapts and "TT" in find(entry.learner).card.marks
            held = (
                (adapts, "TT"),
                (entry.transductive, "transductive"),
                (True, "trained"),
                (bool(entry.golden), "checked"),
            )
            marks = (*entry.flags, *(mark for holds, mark in held if holds))
            summary = f"{entry.family}: {entry.citation}"
            cards.append(
                ModelCard(
                    entry.name, ("few-shot-learner",), summary, "MIT", "train", origin="hardlook train", marks=marks
                )
            )
    return cards


def list_family(prefix: str, pattern: str = "*", role: str | None = None) -> list[ModelCard]:
    """Cards of the models of a family whose names fit the pattern; nothing is built."""
    if prefix not in PREFIXES:
        raise OptionError(f"--family {prefix}: there is no such family", remedy=f"one of {', '.join(PREFIXES)}")
    family = load_family(prefix)
    cards = []
    for name in family.list_names(pattern.removeprefix(f"{prefix}:")):
        try:
            roles = family.find_roles(name)
        except ModelError as error:
            roles, problem = family.roles, error.what
        else:
            problem = ""
        if role is None or role in roles:
            full = f"{prefix}:{name}"
            cards.append(
                ModelCard(full, roles, family.summary, extra=family.extra, origin=f"family {prefix}", problem=problem)
            )
    return cards
