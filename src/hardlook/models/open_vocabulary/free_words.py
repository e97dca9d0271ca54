"""The words that an open-vocabulary network chooses from, with their synonyms, and the prompts made of them.

>>> words = read_free_words(("cat", "dog"), background=("wall",), default="a photo of a {label}")
>>> words.names, words.counts, words.list_prompts()[-1]
(('cat', 'dog', 'wall'), (1, 1, 1), 'a photo of a wall')
>>> import numpy as np
>>> words.drop_background(np.array([[0, 2, 1]])).tolist()
[[0, -1, 1]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.families.words import Words, choose_things, read_templates, read_words

Synonyms = Literal["all", "first", "joined"]
"""Names of a label with synonyms: each of them, the first alone, or one text with commas between."""

VILD_TEMPLATES = (
    "a photo of a {label}.",
    "This is a photo of a {label}",
    "There is a {label} in the scene",
    "There is the {label} in the scene",
    "a photo of a {label} in the scene",
    "a photo of a small {label}.",
    "a photo of a medium {label}.",
    "a photo of a large {label}.",
    "This is a photo of a small {label}.",
    "This is a photo of a medium {label}.",
    "This is a photo of a large {label}.",
    "There is a small {label} in the scene.",
    "There is a medium {label} in the scene.",
    "There is a large {label} in the scene.",
)
"""ViLD's fourteen prompts, whose full stops count."""


@dataclass(frozen=True)
class FreeWords:
    """Labels, the names of each, words of the background, prompt templates, and the files they were read from.

    A class is a label or, last, the background, which has no label: what one of its words wins is none of the labels.
    """

    words: Words
    groups: tuple[tuple[str, ...], ...]
    background: tuple[str, ...]
    templates: tuple[str, ...]
    files: tuple[Path, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, as answers name them; the background is none of them."""
        return self.words.labels

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all classes, those of one side by side."""
        return tuple(name for group in self.groups for name in group)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many names each class has."""
        return tuple(map(len, self.groups))

    def list_prompts(self) -> list[str]:
        """Every name in every template, the prompts of a name side by side."""
        return [template.replace("{label}", name) for name in self.names for template in self.templates]

    def drop_background(self, classes: NDArray[np.integer]) -> NDArray[np.int32]:
        """Numbers of classes as numbers of labels, -1 for the background."""
        return np.where(classes < len(self.labels), classes, -1).astype(np.int32)

    def find_things(self, given: Sequence[str]) -> tuple[bool, ...]:
        """Which labels are countable: as given, as the file of labels says, or as a label set says that has them."""
        kinds = [word.is_thing for word in self.words.words]
        if not given and None not in kinds:
            return tuple(map(bool, kinds))
        return choose_things(self.labels, given)

    def describe(self) -> str:
        """How many labels, names and prompts there are, in words."""
        more = f", {len(self.background)} words of the background" if self.background else ""
        names = len(self.names) - len(self.background)
        return f"{len(self.templates)} prompts for {names} names of {len(self.labels)} labels{more}"


def read_free_words(
    labels: Sequence[str],
    templates: Sequence[str] = (),
    background: Sequence[str] = (),
    *,
    default: str | Sequence[str],
    synonyms: Synonyms = "all",
) -> FreeWords:
    """Labels, templates and words of the background as they were given: words, a file or a label set of each.

    `default` are the templates where none are given.
    """
    words = read_words(labels)
    usual = (default,) if isinstance(default, str) else default
    prompts, template_files = read_templates(templates or usual)
    groups = [_choose_names(word.names, synonyms) for word in words.words]
    others = read_words(background) if background else None
    beside = tuple(name for word in others.words for name in word.names) if others else ()
    taken = {name.casefold() for word in words.words for name in word.names}
    if both := [name for name in beside if name.casefold() in taken]:
        raise OptionError(f"{both[0]!r} is a label and a word of the background", remedy="keep one of them")
    files = (*words.source_files, *(others.source_files if others else ()), *template_files)
    return FreeWords(words, (*groups, *((beside,) if beside else ())), beside, prompts, files)


def _choose_names(names: tuple[str, ...], synonyms: Synonyms) -> tuple[str, ...]:
    if synonyms == "first":
        return names[:1]
    return (", ".join(names),) if synonyms == "joined" else names
