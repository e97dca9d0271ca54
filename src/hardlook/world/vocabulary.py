"""The classes and contexts of the planted world: concepts in pairs of siblings, stuff classes, and contexts.

Every name is a WordNet 3.0 noun, so label similarities exist for it: high for siblings, low for other concepts.

>>> CONCEPTS[0].name, sibling_of("cat"), context_of_ground("sand")
('cat', 'dog', 'beach')
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Label:
    """A class of the world: its code in the signature, name, synset, whether it is countable, and its family."""

    code: int
    name: str
    synset: str
    thing: bool
    family: str


@dataclass(frozen=True)
class Context:
    """Where a scene takes place; no two contexts share a ground class."""

    name: str
    ground: str


_CONCEPTS = (
    ("cat", "pet"), ("dog", "pet"),
    ("car", "vehicle"), ("bus", "vehicle"),
    ("house", "building"), ("barn", "building"),
    ("apple", "fruit"), ("pear", "fruit"),
    ("cup", "vessel"), ("bottle", "vessel"),
    ("duck", "bird"), ("owl", "bird"),
)  # fmt: skip

_STUFF = (
    ("sky", "sky.n.01"), ("sea", "sea.n.01"),
    ("grass", "grass.n.01"), ("sand", "sand.n.01"), ("snow", "snow.n.02"), ("road", "road.n.01"),
    ("soil", "soil.n.02"), ("pavement", "pavement.n.01"), ("lake", "lake.n.01"), ("foliage", "foliage.n.01"),
)  # fmt: skip

VOID = 0
CONCEPTS = tuple(Label(1 + i, name, f"{name}.n.01", True, family) for i, (name, family) in enumerate(_CONCEPTS))
STUFF = tuple(Label(1 + len(CONCEPTS) + i, name, synset, False, "stuff") for i, (name, synset) in enumerate(_STUFF))
LABELS = CONCEPTS + STUFF

CONTEXTS = (
    Context("meadow", "grass"), Context("beach", "sand"), Context("winter", "snow"), Context("street", "road"),
    Context("dusk", "soil"), Context("night", "pavement"), Context("fog", "lake"), Context("autumn", "foliage"),
)  # fmt: skip

BY_NAME = {label.name: label for label in LABELS}
BY_CODE = {label.code: label for label in LABELS}


def sibling_of(name: str) -> str:
    """The other concept of the same family."""
    family = BY_NAME[name].family
    return next(label.name for label in CONCEPTS if label.family == family and label.name != name)


def unrelated_to(name: str) -> str:
    """A fixed concept of the next family; like siblings, these form a permutation of the concepts."""
    position = next(i for i, label in enumerate(CONCEPTS) if label.name == name)
    return CONCEPTS[(position + 2) % len(CONCEPTS)].name


def context_of_ground(ground: str) -> str:
    """The context that a ground class belongs to."""
    return next(context.name for context in CONTEXTS if context.ground == ground)
