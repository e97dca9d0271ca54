"""The words of truth and predictions, things and stuff, in one numbering.

>>> truth, spoken = Words(("cat", "sky"), (True, False)), Words(("Sky", "kitten"), (False, True))
>>> joined, table = join_words(truth, spoken)
>>> joined.names, joined.things, table.tolist()
(('cat', 'sky', 'kitten'), (True, False, True), [1, 2])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.semantic_images.vocabulary import together
from hardlook.data.coco_panoptic import Category
from hardlook.data.misfits import Misfits
from hardlook.errors import OptionError
from hardlook.labels.label_set import plain_name
from hardlook.labels.load import load_label_set


@dataclass(frozen=True)
class Words:
    """Label names and for each whether it is a thing; segments hold indices into them."""

    names: tuple[str, ...]
    things: tuple[bool, ...]


def join_words(truth: Words, spoken: Words) -> tuple[Words, NDArray[np.int32]]:
    """All words, the truth's first, and the place of each spoken one; where both have a word, the truth says its kind.

    Names pair as in `together`: case, spaces, `_` and `-` do not count.
    """
    names, table = together(truth.names, spoken.names)
    kinds = dict(zip(table.tolist(), spoken.things, strict=True))
    known = len(truth.names)
    return Words(names, (*truth.things, *(kinds[place] for place in range(known, len(names))))), table


def words_of(categories: Iterable[Category], file: Path) -> Words:
    """The words of a JSON's categories, in its order; names that would be taken for each other are refused."""
    listed = tuple(categories)
    seen: dict[str, str] = {}
    misfits = Misfits()
    for category in listed:
        if plain_name(category.name) in seen:
            misfits.add(f"taken for {seen[plain_name(category.name)]!r}", f"{category.name!r} (category {category.id})")
        seen.setdefault(plain_name(category.name), category.name)
    misfits.refuse("two categories have one name", file=file, remedy="labels pair by name: give each its own")
    return Words(tuple(category.name for category in listed), tuple(category.thing for category in listed))


def words_of_set(labels: str) -> tuple[Words, tuple[int, ...]]:
    """The words of a label set or file, and the category ids that stand for them in its dataset's files."""
    found = load_label_set(labels)
    return Words(found.names, tuple(found.things.tolist())), tuple(found.category_ids.tolist())


def check_senses(words: Words, labels: str, file: Path | None = None) -> None:
    """Refuse words of the truth that the label set lacks, or whose kind it says otherwise, with a list of them."""
    known = load_label_set(labels)
    misfits = Misfits()
    for name, thing in zip(words.names, words.things, strict=True):
        try:
            label = known.find(name)
        except OptionError:
            misfits.add(f"categories that {labels} does not have", name)
            continue
        if label.isthing is not None and label.isthing != thing:
            misfits.add(f"things here and stuff in {labels}, or the other way", name)
    misfits.refuse("data and labels do not fit", file=file, remedy="choose other --labels, or leave the option out")
