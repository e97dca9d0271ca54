"""A label and a set of labels: ids, names, WordNet senses, things and stuff.

>>> pets = LabelSet("pets", "file", (Label(0, "dog", ("hound",), "dog.n.01"), Label(1, "teddy-bear")))
>>> pets.find("Teddy Bear").id, pets.find("hound").name
(1, 'dog')
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError

if TYPE_CHECKING:
    from hardlook.labels.unknown import Unknown
    from hardlook.wordnet.nouns import Nouns


@dataclass(frozen=True)
class Label:
    """One label of a set.

    `synset` is its sense in WordNet 3.0 (`dog.n.01`); where WordNet has none, `hypernym` holds the nearest synset
    that covers it. `category_id` is the number that the dataset's own files use where that differs from `id`.
    `proposed` marks a sense that nobody has confirmed yet, `stated` a synset from a file that WordNet 3.0 lacks.
    """

    id: int
    name: str
    aliases: tuple[str, ...] = ()
    synset: str | None = None
    hypernym: str | None = None
    isthing: bool | None = None
    category_id: int | None = None
    proposed: bool = False
    stated: str | None = None


@dataclass(frozen=True)
class LabelSet:
    """Labels in the order of their rows; `variant` is `corrected`, `published`, or `file` for a user's own."""

    name: str
    variant: str
    labels: tuple[Label, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.labels)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, by row."""
        return tuple(label.name for label in self.labels)

    @property
    def ids(self) -> NDArray[np.int64]:
        """(K,) the ids, by row."""
        return np.array([label.id for label in self.labels], np.int64)

    @property
    def category_ids(self) -> NDArray[np.int64]:
        """(K,) the numbers that the dataset's own files use, by row; the ids where it has no others."""
        return np.array([label.id if label.category_id is None else label.category_id for label in self], np.int64)

    @property
    def things(self) -> NDArray[np.bool_]:
        """(K,) True for things, False for stuff; a `DataError` where a label does not say."""
        silent = [label.name for label in self if label.isthing is None]
        if silent:
            remedy = "use a label set or file whose column isthing says 1 (thing) or 0 (stuff) for every label"
            raise DataError(
                f"{len(silent)} labels of {self.name} do not say thing or stuff: {silent[0]}", remedy=remedy
            )
        return np.array([label.isthing for label in self], np.bool_)

    def find(self, name: str) -> Label:
        """The label of a name or an alias; case, spaces, `_` and `-` do not count.

        A name goes before an alias. An alias of several labels, or no match, is an `OptionError` that lists them.
        """
        for keys in (self._by_name, self._by_alias):
            found = keys.get(plain_name(name), ())
            if len(found) == 1:
                return found[0]
            if found:
                several = ", ".join(label.name for label in found)
                raise OptionError(f"{name!r} is an alias of several labels of {self.name}", remedy=f"say {several}")
        from difflib import get_close_matches

        known = {plain_name(label.name): label.name for label in self}
        near = [known[key] for key in get_close_matches(plain_name(name), list(known), n=4)] or list(self.names[:4])
        raise OptionError(f"no label {name!r} in {self.name}", remedy=f"names like {', '.join(near)}")

    def nodes(self, nouns: Nouns, unknown: Unknown = "hypernym") -> NDArray[np.int64]:
        """(K,) each label's synset as its number in `nouns`, -1 for none; `unknown` as in `hardlook.labels.place`."""
        from hardlook.labels.unknown import place

        return place(self, nouns, unknown).nodes

    def shared_synsets(self) -> dict[str, tuple[str, ...]]:
        """Synsets that stand for several labels, with their names; such labels have similarity 1."""
        owners: dict[str, list[str]] = {}
        for label in self:
            if synset := label.synset or label.hypernym:
                owners.setdefault(synset, []).append(label.name)
        return {synset: tuple(names) for synset, names in owners.items() if len(names) > 1}

    @cached_property
    def _by_name(self) -> dict[str, tuple[Label, ...]]:
        return _collect((key, label) for label in self for key in {plain_name(label.name), plain_name(_whole(label))})

    @cached_property
    def _by_alias(self) -> dict[str, tuple[Label, ...]]:
        return _collect((key, label) for label in self for key in {plain_name(alias) for alias in label.aliases})


def plain_name(name: str) -> str:
    """A name for comparing: case, spaces, `_` and `-` do not count."""
    return re.sub(r"[\s_-]+", "", name).casefold()


def _whole(label: Label) -> str:
    # ADE20K's own lists write a label with all its aliases: "building, edifice".
    return ", ".join((label.name, *label.aliases))


def _collect(pairs: Iterator[tuple[str, Label]]) -> dict[str, tuple[Label, ...]]:
    found: dict[str, tuple[Label, ...]] = {}
    for key, label in pairs:
        found[key] = (*found.get(key, ()), label)
    return found
