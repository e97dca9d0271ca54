"""A label and a set of labels: ids, names, aliases, WordNet senses, things and stuff.

>>> pets = LabelSet("pets", "file", (Label(0, "dog", ("hound",), "dog.n.01"), Label(1, "teddy-bear")))
>>> pets.find("Teddy Bear").id, pets.find("hound").name
(1, 'dog')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError, OptionError

VOID_NAMES = frozenset({"background", "void", "unlabeled", "unlabelled", "ignore"})
"""Names of pixels without a label: similarity 0 to every other label under every measure."""


@dataclass(frozen=True)
class Label:
    """One label of a set.

    `synset` is its sense in WordNet 3.0 (`dog.n.01`); where WordNet has none, `hypernym` holds the nearest synset
    that covers it. `category_id` is the number that the dataset's own files use where that differs from `id`.
    `proposed` marks a sense that is not confirmed yet, `stated` a synset from a file that WordNet 3.0 lacks.
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

    @property
    def sense(self) -> str | None:
        """The synset, else the hypernym, else None."""
        return self.synset or self.hypernym


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
        """(K,) True for things, False for stuff; a `DataError` where it is unknown for a label."""
        if unknown := [label.name for label in self if label.isthing is None]:
            what = f"{len(unknown)} labels of {self.name} do not say thing or stuff: {unknown[0]}"
            remedy = "use a label set or file whose column isthing has 1 (thing) or 0 (stuff) for every label"
            raise DataError(what, remedy=remedy)
        return np.array([label.isthing for label in self], np.bool_)

    def find(self, name: str) -> Label:
        """The label of a name or alias, without case, spaces, `_` and `-`; an `OptionError` lists candidates."""
        key = normalise_name(name)
        for index in (self._by_name, self._by_alias):
            matches = index.get(key, [])
            if len(matches) == 1:
                return matches[0]
            if matches:
                names = ", ".join(label.name for label in matches)
                raise OptionError(f"{name!r} is an alias of several labels of {self.name}", remedy=f"one of {names}")
        from difflib import get_close_matches

        known = {normalise_name(label.name): label.name for label in self}
        close = [known[one] for one in get_close_matches(key, list(known), n=4)] or list(self.names[:4])
        raise OptionError(f"no label {name!r} in {self.name}", remedy=f"names like {', '.join(close)}")

    def shared_synsets(self) -> dict[str, tuple[str, ...]]:
        """Synsets of several labels, with the labels' names; such labels have similarity 1."""
        owners: dict[str, list[str]] = {}
        for label in self:
            if label.sense:
                owners.setdefault(label.sense, []).append(label.name)
        return {synset: tuple(names) for synset, names in owners.items() if len(names) > 1}

    @cached_property
    def _by_name(self) -> dict[str, list[Label]]:
        # ADE20K's own lists write a label with all its aliases: "building, edifice".
        return self._index(lambda label: (label.name, ", ".join((label.name, *label.aliases))))

    @cached_property
    def _by_alias(self) -> dict[str, list[Label]]:
        return self._index(lambda label: label.aliases)

    def _index(self, names: Callable[[Label], Iterable[str]]) -> dict[str, list[Label]]:
        index: dict[str, list[Label]] = {}
        for label in self:
            for key in {normalise_name(name) for name in names(label)}:
                index.setdefault(key, []).append(label)
        return index


def normalise_name(name: str) -> str:
    """A name for comparison: without case, spaces, `_` and `-`."""
    return re.sub(r"[\s_-]+", "", name).casefold()


def label_text(label: Label) -> str:
    """The label as text, for measures on words: its name with spaces for underscores, with two exceptions.

    An alias that is the name with its words separated (`diningtable`, `dining table`) replaces it. So does the first
    alias of a name with a hyphen and no space, which is how COCO writes stuff (`sky-other-merged`, `sky`).

    >>> [label_text(Label(0, *one)) for one in [("tvmonitor", ("tv", "tv monitor")), ("wall-brick", ("brick wall",))]]
    ['tv monitor', 'brick wall']
    >>> label_text(Label(0, "aerosol_can", ("spray can",))), label_text(Label(0, "hot-air balloon"))
    ('aerosol can', 'hot-air balloon')
    """
    name = normalise_name(label.name)
    separated = [alias for alias in label.aliases if " " in alias and normalise_name(alias) == name]
    if separated and not re.search(r"[\s_]", label.name):
        return separated[0]
    if "-" in label.name and " " not in label.name and label.aliases:
        return label.aliases[0]
    return label.name.replace("_", " ").strip()


def is_void_label(label: Label) -> bool:
    """Whether the label stands for pixels without a label: it has such a name and no sense."""
    return label.sense is None and label.name.casefold() in VOID_NAMES
