"""The nouns of WordNet 3.0: 82,115 synsets, their words, glosses, counts and hypernyms.

A synset is an index 0..82114, its rank by offset. Texts are loaded on first use. The files in `data/` beside this
module are built by tools/build_wordnet.py.

>>> nouns = load_nouns()
>>> dog = nouns.index("dog.n.01")
>>> nouns.offset(dog), nouns.lemmas(dog)
('n02084071', ('dog', 'domestic_dog', 'Canis_familiaris'))
>>> [sense.name for sense in nouns.senses("Traffic Lights")]
['traffic_light.n.01']
>>> [nouns.name(i) for i in nouns.hypernym_path(nouns.index("physical_entity.n.01"))]
['entity.n.01', 'physical_entity.n.01']
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.similarity.graph_measures import HypernymGraph

# WordNet's rules for plurals, from its manual page morphy(7): an ending and what replaces it.
PLURAL_ENDINGS = (
    ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"),
    ("ies", "y"),
)  # fmt: skip
_OFFSET = re.compile(r"n(\d{8})")
_NAME = re.compile(r"(.+)\.n\.(\d+)")


@dataclass(frozen=True)
class Sense:
    """One meaning of a word, a synset; `count`: how often texts with tagged senses use it, by any of its words."""

    index: int
    name: str
    offset: str
    gloss: str
    lemmas: tuple[str, ...]
    count: int


class Nouns:
    """WordNet's nouns: the `graph` of hypernyms, instance hypernyms last; `counts` (n,) int64 in tagged texts."""

    def __init__(self) -> None:
        numbers = read_numbers()
        self._offsets = numbers["offset"].astype(np.int64)
        self._first_lemma = _to_offsets(numbers["lemma_count"])
        self._sense_numbers = numbers["sense_number"]
        tagged = np.append(0, np.cumsum(numbers["tag_count"], dtype=np.int64))
        self.counts: NDArray[np.int64] = np.diff(tagged[self._first_lemma])
        self.graph = HypernymGraph(_to_offsets(numbers["hypernym_count"]), numbers["hypernym"])

    def __len__(self) -> int:
        return len(self._offsets)

    def lemmas(self, index: int) -> tuple[str, ...]:
        """The words of a synset as WordNet writes them, most common first: `_` for spaces, capitals kept."""
        return tuple(self._lemma_lines[self._check_index(index)].split())

    def name(self, index: int) -> str:
        """The synset's name as in nltk: its first word, and which of that word's senses it is."""
        return f"{self.lemmas(index)[0].lower()}.n.{self._sense_numbers[self._first_lemma[index]]:02d}"

    def offset(self, index: int) -> str:
        """The synset's offset in WordNet's own file, as ImageNet writes it: `n` and eight digits."""
        return f"n{self._offsets[self._check_index(index)]:08d}"

    def gloss(self, index: int) -> str:
        """The synset's gloss: the definition, then examples in quotation marks where it has any."""
        return self._gloss_lines[self._check_index(index)]

    def sense(self, index: int) -> Sense:
        """A synset's name, offset, gloss, lemmas and count."""
        return Sense(
            self._check_index(index),
            self.name(index),
            self.offset(index),
            self.gloss(index),
            self.lemmas(index),
            int(self.counts[index]),
        )

    def senses(self, word: str) -> tuple[Sense, ...]:
        """The meanings of a word, in WordNet's order (most frequent first); none for a word it does not have.

        Case is ignored, and a space, `_`, `-` and nothing are interchangeable, the written one first. Of a
        spelling, the word itself comes first, then its singulars (`glasses`, then `glass`).
        """
        return tuple(self.sense(index) for index in self._find_synsets(word))

    def index(self, name_or_offset: str) -> int:
        """The index of `dog.n.01` (any of its words) or `n02084071`; an `OptionError` lists similar names."""
        name = name_or_offset.strip()
        if by_offset := _OFFSET.fullmatch(name):
            index = int(np.searchsorted(self._offsets, int(by_offset[1])))
            if index < len(self) and self._offsets[index] == int(by_offset[1]):
                return index
        elif by_name := _NAME.fullmatch("_".join(name.lower().split())):
            senses = self._words.get(by_name[1], [])
            if 1 <= int(by_name[2]) <= len(senses):
                return senses[int(by_name[2]) - 1]
        raise OptionError(f"no noun synset {name!r} in WordNet 3.0", unit=name, remedy=self._suggest(name))

    def hypernym_path(self, index: int) -> tuple[int, ...]:
        """The shortest path from the root down to a synset, both included; of ties, by the hypernym listed first."""
        path = [self._check_index(index)]
        while len(above := self.graph.hypernyms(path[-1])):
            path.append(int(above[np.argmin(self.graph.min_depth[above])]))
        return tuple(reversed(path))

    @cached_property
    def name_rank(self) -> NDArray[np.int64]:
        """(n,) the rank of each synset's name in alphabetical order, by which nltk breaks ties."""
        rank = np.empty(len(self), np.int64)
        rank[sorted(range(len(self)), key=self.name)] = np.arange(len(self))
        return rank

    def _check_index(self, index: int) -> int:
        # -1 stands for an unknown label in other modules, and must not select the last synset.
        if not 0 <= index < len(self):
            raise IndexError(f"expected a synset's index in 0..{len(self) - 1}, got {index}")
        return int(index)

    def __contains__(self, word: str) -> bool:
        """Whether WordNet has the word as it is written: in lower case, `_` for spaces."""
        return word in self._words

    def list_forms(self, word: str) -> tuple[str, ...]:
        """What `senses` looks a word up as: each spelling, then its singulars; WordNet need not have any of them.

        >>> load_nouns().list_forms("Mice")
        ('mice', 'mouse')
        """
        forms = (form for spelling in list_spellings(word) for form in self._list_spelled_forms(spelling))
        return tuple(dict.fromkeys(forms))

    def _list_spelled_forms(self, spelling: str) -> tuple[str, ...]:
        return (spelling, *list_singulars(spelling, self._exceptions))

    def _find_synsets(self, word: str) -> tuple[int, ...]:
        for spelling in list_spellings(word):
            forms = self._list_spelled_forms(spelling)
            if found := dict.fromkeys(index for form in forms for index in self._words.get(form, [])):
                return tuple(found)
        return ()

    def _suggest(self, name: str) -> str:
        from difflib import get_close_matches

        word = name.lower().split(".")[0]
        if found := self._find_synsets(word):
            return f"{word!r} has {', '.join(self.name(index) for index in found)}"
        neighbours = [other for other in self._words if other[:1] == word[:1] and abs(len(other) - len(word)) < 3]
        near = [self.name(self._words[other][0]) for other in get_close_matches(word, neighbours, n=4)]
        return f"similar names: {', '.join(near)}" if near else "give a name like dog.n.01 or an offset like n02084071"

    @cached_property
    def _lemma_lines(self) -> list[str]:
        return read_lines("lemmas")

    @cached_property
    def _gloss_lines(self) -> list[str]:
        return read_lines("glosses")

    @cached_property
    def _exceptions(self) -> dict[str, tuple[str, ...]]:
        return {plural: tuple(forms) for plural, *forms in (line.split() for line in read_lines("exceptions"))}

    @cached_property
    def _words(self) -> dict[str, list[int]]:
        """Each word in lower case with its synsets, first sense first."""
        lemmas = " ".join(self._lemma_lines).lower().split()
        synsets = np.repeat(np.arange(len(self)), np.diff(self._first_lemma)).tolist()
        words: dict[str, list[int]] = {}
        for i in np.argsort(self._sense_numbers, kind="stable").tolist():
            senses = words.setdefault(lemmas[i], [])
            # A synset may write one word twice, with and without a capital.
            if not senses or senses[-1] != synsets[i]:
                senses.append(synsets[i])
        return words


@cache
def load_nouns() -> Nouns:
    """The nouns, read from the package once."""
    return Nouns()


def list_spellings(word: str) -> tuple[str, ...]:
    """A word in lower case with `_`, then with `-`, then joined; the separators as written come first.

    >>> list_spellings("Traffic Light"), list_spellings(" T-shirt")
    (('traffic_light', 'traffic-light', 'trafficlight'), ('t-shirt', 't_shirt', 'tshirt'))
    """
    written = "_".join(word.lower().split())
    pieces = written.replace("-", "_").split("_")
    variants = (written, *(separator.join(pieces) for separator in ("_", "-", "")))
    return tuple(dict.fromkeys(variant for variant in variants if variant))


def list_singulars(word: str, exceptions: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The forms a plural may come from: its exceptions where it has any, else all that the endings allow.

    >>> list_singulars("boxes", {}), list_singulars("geese", {"geese": ("goose",)})
    (('boxe', 'box'), ('goose',))
    """
    if word in exceptions:
        return exceptions[word]
    endings = (word[: -len(old)] + new for old, new in PLURAL_ENDINGS if word.endswith(old))
    return tuple(dict.fromkeys(form for form in endings if form))


def read_numbers() -> dict[str, NDArray[Any]]:
    """The arrays of `nouns.npz`, by name.

    A synset's index is its rank by offset. `offset` (n,); `hypernym_count` (n,) and `hypernym`, the indices of all
    hypernyms, one synset after the other; `lemma_count` (n,), and for each lemma in turn `sense_number` (1 is the
    word's first sense) and `tag_count` (occurrences in the tagged texts).
    """
    content = resources.files(__package__).joinpath("data", "nouns.npz").read_bytes()
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)


def read_lines(name: Literal["lemmas", "glosses", "exceptions"]) -> list[str]:
    """The lines of a text: `lemmas` and `glosses` have one per synset, `exceptions` one per irregular plural."""
    import lzma

    content = resources.files(__package__).joinpath("data", f"{name}.txt.xz").read_bytes()
    return lzma.decompress(content).decode("ascii").splitlines()


def _to_offsets(counts: NDArray[np.uint8]) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(counts, dtype=np.int64))
