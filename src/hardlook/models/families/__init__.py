"""Families of models that other libraries hold: `timm:resnet50.a1_in1k`, `hf:facebook/dinov2-small`.

A name with a family's prefix means that family's model; `hardlook models --family timm` lists the names. Each family is
one file, imported when one of its models is asked for.

>>> split_name("timm:resnet50.a1_in1k"), split_name("mine.nets:Net")
(('timm', 'resnet50.a1_in1k'), None)
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PREFIXES = {
    "timm": "hardlook.models.families.timm_encoders",
    "torchvision": "hardlook.models.families.torchvision_models",
    "hf": "hardlook.models.families.transformers_models",
    "smp": "hardlook.models.families.smp_segmenters",
    "zero-shot": "hardlook.models.families.zero_shot",
}


@dataclass(frozen=True)
class Family:
    """A family of models: what it holds, and three functions on names without the prefix.

    `list_names(pattern)` returns names that fit a pattern with * and ?, `find_roles(name)` the roles of a model without
    building it, and `build(name, **arguments)` builds it; the parameters of `build` after the first are the model's
    arguments, with types, since the command line converts texts by them.
    """

    prefix: str
    summary: str
    extra: str
    roles: tuple[str, ...]
    list_names: Callable[[str], list[str]]
    find_roles: Callable[[str], tuple[str, ...]]
    build: Callable[..., Any]


def split_name(name: str) -> tuple[str, str] | None:
    """The family's prefix and the model's name in it; None where the name is of no family."""
    prefix, colon, rest = name.partition(":")
    return (prefix, rest) if colon and prefix in PREFIXES else None


def load_family(prefix: str) -> Family:
    """The family of that prefix, its file imported."""
    family: Family = importlib.import_module(PREFIXES[prefix]).FAMILY
    return family
