"""Which image goes where: concepts to splits, images to contexts, with a dial for how the two go together.

Counts are exact, not drawn: a training concept of n images has round(correlation x n) of them in its favourite
context, and the rest is dealt evenly over all contexts. Test and validation concepts are dealt evenly throughout.

>>> folders = {f"class {i}": tuple(f"class {i}/{j}.jpg" for j in range(20)) for i in range(10)}
>>> plan = plan_contexts(folders, ("snow", "dusk"), correlation=1.0, seed=0)
>>> len({(one.concept, one.context) for one in plan if one.split == "train"}), len(plan)
(6, 200)
>>> sorted({one.split for one in plan})
['test', 'train', 'val']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hardlook.errors import OptionError
from hardlook.randomness import generator

SplitBy = Literal["concept", "image"]
SHARES = {"train": 0.64, "test": 0.20, "val": 0.16}
"""As the paper splits its 100 concepts: 64, 20 and 16."""


@dataclass(frozen=True)
class PlannedImage:
    """One image to make: its source's name, and where it goes; `place` has no suffix yet."""

    source: str
    concept: str
    context: str
    split: str
    place: str


def plan_contexts(
    folders: Mapping[str, Sequence[str]],
    contexts: Sequence[str],
    *,
    correlation: float,
    seed: int,
    split_by: SplitBy = "concept",
) -> tuple[PlannedImage, ...]:
    """All images of class folders, each in one split and one context, sorted by place.

    `split_by` "concept" gives each concept to one split, as few-shot learning asks: 64 % train, 20 % test, 16 % val,
    drawn by seed. "image" gives 64 % of each concept's images to train and the rest to test, as ordinary training
    asks. `correlation` in [0, 1] holds in train. A concept's plan depends on its own images and, for its split and
    favourite, on the list of concepts.
    """
    if not contexts or len(set(contexts)) < len(contexts):
        raise OptionError(f"contexts {', '.join(contexts) or '(none)'}", remedy="name one or more, each once")
    if not 0 <= correlation <= 1:
        raise OptionError(f"correlation {correlation}", remedy="a number from 0 to 1")
    favourites = _favourites(sorted(folders), contexts, seed)
    splits = _splits(sorted(folders), seed) if split_by == "concept" else {}
    planned = []
    for concept, names in folders.items():
        numbers = {name: number for number, name in enumerate(names, start=1)}
        order = [names[i] for i in generator(seed, "planting", "order", concept).permutation(len(names))]
        if split_by == "concept":
            parts = {splits[concept]: order}
        else:
            kept = round(SHARES["train"] * len(order))
            parts = {"train": order[:kept], "test": order[kept:]}
        for split, part in parts.items():
            favoured = round(correlation * len(part)) if split == "train" else 0
            dealt = _dealt(len(part) - favoured, contexts, generator(seed, "planting", "contexts", concept, split))
            for source, context in zip(part, [favourites[concept]] * favoured + dealt, strict=True):
                place = f"{split}/{concept}/{context}/{numbers[source]:06d}"
                planned.append(PlannedImage(source, concept, context, split, place))
    return tuple(sorted(planned, key=lambda one: one.place))


def _dealt(count: int, contexts: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Contexts for `count` images, each as often as any other or once more; which come once more is drawn."""
    order = [contexts[i] for i in rng.permutation(len(contexts))]
    return [order[i % len(order)] for i in range(count)]


def _favourites(concepts: Sequence[str], contexts: Sequence[str], seed: int) -> dict[str, str]:
    """A favourite context a concept, each context as often as any other or once more."""
    order = generator(seed, "planting", "favourites").permutation(len(concepts))
    return {concepts[i]: contexts[place % len(contexts)] for place, i in enumerate(order)}


def _splits(concepts: Sequence[str], seed: int) -> dict[str, str]:
    order = generator(seed, "planting", "splits").permutation(len(concepts))
    train = round(SHARES["train"] * len(concepts))
    test = train + round(SHARES["test"] * len(concepts))
    names = ["train"] * train + ["test"] * (test - train) + ["val"] * (len(concepts) - test)
    return {concepts[i]: names[place] for place, i in enumerate(order)}
