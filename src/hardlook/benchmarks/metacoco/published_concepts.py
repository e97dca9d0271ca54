"""MetaCoCo's published classes and concept x context counts, and where a dataset in hand differs from them.

From "MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation" (ICLR 2024), Tables 4 (classes,
splits, images) and 5 (1,237 pairs, recovered from the paper's text). Pairs of 93 of the 99 classes in Table 5 sum to
Table 4; in three of these one cell was inferred from the sum. The other six are unsettled, and so is umbrella, which
has no column there.

>>> dog = PUBLISHED_CONCEPTS[0]
>>> dog.name, dog.split, dog.images, dog.contexts["grass"], dog.settled
('dog', 'train', 5820, 649, True)
>>> next(one for one in compare_counts({("Dog", "Grass"): 600}, {}).pairs if one.context == "grass")
CountDifference(concept='dog', context='grass', published=649, here=600, settled=True)
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True)
class PublishedConcept:
    """A class as printed: its split, its images (Table 4), and images by context (Table 5).

    `inferred` names the context whose count was not legible and follows from the sum; "" where none.
    """

    name: str
    split: str
    images: int
    contexts: Mapping[str, int]
    inferred: str = ""

    @property
    def settled(self) -> bool:
        """Whether the contexts sum to the images."""
        return sum(self.contexts.values()) == self.images


@dataclass(frozen=True)
class CountDifference:
    """Images of a class (context "") or of a pair: as published and in hand; 0 where there are none.

    `settled` is False where the printed tables contradict each other about the class.
    """

    concept: str
    context: str
    published: int
    here: int
    settled: bool


@dataclass(frozen=True)
class PublishedComparison:
    """Where a dataset differs from the published one; empty tuples where it does not.

    `splits` are (concept, published split, splits in hand). `classes` and `pairs` are counts that differ, of classes
    that both have. `equal_classes` and `equal_pairs` count what agrees.
    """

    absent: tuple[str, ...]
    extra: tuple[str, ...]
    splits: tuple[tuple[str, str, tuple[str, ...]], ...]
    classes: tuple[CountDifference, ...]
    pairs: tuple[CountDifference, ...]
    equal_classes: int
    equal_pairs: int

    @property
    def same(self) -> bool:
        """Whether nothing differs but pairs that the paper itself leaves unsettled."""
        settled = [one for one in self.pairs if one.settled]
        return not (self.absent or self.extra or self.splits or self.classes or settled)


def _read() -> tuple[PublishedConcept, ...]:
    text = files("hardlook.benchmarks.metacoco").joinpath("published_concepts.csv").read_text(encoding="utf-8")
    rows = []
    for row in csv.DictReader(text.splitlines()):
        printed = (pair.rpartition("=")[::2] for pair in row["contexts"].split("|") if pair)
        contexts = MappingProxyType({name: int(count) for name, count in printed})
        rows.append(PublishedConcept(row["concept"], row["split"], int(row["images"]), contexts, row["inferred"]))
    return tuple(rows)


# In the order of the paper: training, validation, testing, each from the largest class to the smallest.
PUBLISHED_CONCEPTS = _read()


def plain_name(name: str) -> str:
    """A name as it is compared: case, `_`, `-` and spaces do not count.

    >>> plain_name("Hot_air-balloon")
    'hot air balloon'
    """
    return " ".join(name.lower().replace("_", " ").replace("-", " ").split())


def compare_counts(cells: Mapping[tuple[str, str], int], splits: Mapping[str, Iterable[str]]) -> PublishedComparison:
    """Compare images by (concept, context), and the splits of each concept, with the published ones.

    A concept without splits is not compared by split.
    """
    here: dict[str, Counter[str]] = {}
    for (concept, context), count in cells.items():
        here.setdefault(plain_name(concept), Counter())[plain_name(context)] += count
    own = {plain_name(concept): tuple(sorted(names)) for concept, names in splits.items()}
    published = {plain_name(one.name): one for one in PUBLISHED_CONCEPTS}
    shared = [name for name in published if name in here]
    classes, pairs, equal_pairs = [], [], 0
    for name in shared:
        one, found = published[name], here[name]
        if one.images != found.total():
            classes.append(CountDifference(one.name, "", one.images, found.total(), one.settled))
        if not one.contexts:
            continue
        printed = {plain_name(context): (context, count) for context, count in one.contexts.items()}
        for key in sorted({*printed, *found}):
            context, count = printed.get(key, (key, 0))
            if count == found[key]:
                equal_pairs += 1
            else:
                pairs.append(CountDifference(one.name, context, count, found[key], one.settled))
    return PublishedComparison(
        absent=tuple(one.name for name, one in published.items() if name not in here),
        extra=tuple(sorted(name for name in here if name not in published)),
        splits=tuple(
            (published[name].name, published[name].split, own[name])
            for name in shared
            if own.get(name) and own[name] != (published[name].split,)
        ),
        classes=tuple(classes),
        pairs=tuple(pairs),
        equal_classes=len(shared) - len(classes),
        equal_pairs=equal_pairs,
    )
