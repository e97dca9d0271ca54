"""`hl.models`: the models that can be run, as a list that a notebook shows as a table."""

from __future__ import annotations

import html
from difflib import get_close_matches
from fnmatch import fnmatchcase

from hardlook.errors import ModelError, OptionError
from hardlook.models.families import PREFIXES, load_family
from hardlook.models.registry import PROJECTION, ModelCard, find, list_models
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


def find_trained_role(name: str) -> str:
    """The role of the method or network of that name, once it is trained; an error with similar names for none.

    >>> [find_trained_role(name) for name in ("protonet", "pfenet", "ritm")]
    ['few-shot-learner', 'one-shot-segmenter', 'promptable-segmenter']
    """
    cards = {card.name: card for card in list_trainable()}
    if name not in cards:
        near = get_close_matches(name, cards, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise OptionError(f"there is nothing to train named {name!r}", remedy=f"{hint}`hardlook models` lists them")
    return cards[name].roles[0]


def list_trainable(pattern: str = "*") -> ModelList:
    """Cards of what `hardlook train` trains; each runs from the folder that it was trained into.

    >>> list_trainable("protonet")[0].marks, list_trainable("pfenet")[0].roles
    (('LL', 'trained', 'checked'), ('one-shot-segmenter',))
    """
    found = [_list_few_shot, _list_one_shot, _list_interactive, _list_projections]
    return ModelList(card for listed in found for card in listed(pattern))


def _list_interactive(pattern: str) -> ModelList:
    summary = "Sofiiuk et al., Reviving Iterative Training with Mask Guidance, ICIP 2022"
    marks = ("trained", "checked")
    card = ModelCard("ritm", ("promptable-segmenter",), summary, "MIT", "train", origin="hardlook train", marks=marks)
    return ModelList([card] if fnmatchcase(card.name, pattern) else [])


def _list_projections(pattern: str) -> ModelList:
    summary = "pixel features projected into a space of word vectors (Xian et al., CVPR 2019): any words are labels"
    card = ModelCard(
        PROJECTION, ("semantic-segmenter",), summary, "MIT", "train", origin="hardlook train", marks=("trained",)
    )
    return ModelList([card] if fnmatchcase(PROJECTION, pattern) else [])


def _list_one_shot(pattern: str) -> ModelList:
    from hardlook.networks.one_shot.catalogue import list_networks

    return ModelList(
        ModelCard(
            entry.name,
            ("one-shot-segmenter",),
            entry.citation,
            "MIT",
            "train",
            origin="hardlook train",
            marks=("trained", *(("checked",) if entry.golden else ())),
        )
        for entry in list_networks()
        if fnmatchcase(entry.name, pattern)
    )


def _list_few_shot(pattern: str) -> ModelList:
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
