"""What the MetaCoCo paper prints: accuracies, facts about datasets, and its classes and contexts.

From "MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation" (ICLR 2024). The cells are in
`published/`. In Table 1 the similarity of a dataset is the mean cosine of image and concept text by CLIP, the paper's
M_ce, which it calls a distance.

What does not fit is kept as printed; the tables' notes name most of it. 46.78 at one shot is printed for Baseline,
DeepBDC, FGFL and GNN + ATA, and 43.42 for two rows of IFSL. RENet and LRP are in the text and in no table. The half
width of 10-way 5-shot DN4 with ResNet18 is three times that of its neighbours. The 864 images that MetaCoCo's own
splits lack in Table 1 are the size of the class toilet. Table 5 (1,237 pairs) was recovered from the paper's text: 93
of its 99 classes sum to Table 4, in three of these one cell was inferred from the sum; the other six are unsettled, and
so is umbrella, which has no column there.

>>> row = list_rows("table-2")[0]
>>> row["method"], row["backbone"], row["1 shot"], row["GL"], row["LL"], row["TT"]
('Baseline', 'ResNet12', 46.78, 1, 0, 1)
>>> dog = list_concepts()[0]
>>> dog.name, dog.split, dog.images, dog.contexts["grass"], dog.settled
('dog', 'train', 5820, 649, True)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from hardlook.data.concept_context import plain_name
from hardlook.harness.published import PublishedResult, PublishedTable, fraction, read_published

ACCURACY_TABLES = {"table-2": 5, "table-3": 5, "table-6": 5, "table-7": 10}  # with their number of ways
_NOTE = (
    "comparable with tasks of MetaCoCo's own test images drawn without regard to context (--blind-supports paper); "
    "that its tables are such tasks is our inference"
)


@dataclass(frozen=True)
class PublishedConcept:
    """A class as printed: its split, its images (Table 4), and images by context (Table 5)."""

    name: str
    split: str
    images: int
    contexts: Mapping[str, int]

    @property
    def settled(self) -> bool:
        """Whether the contexts sum to the images."""
        return sum(self.contexts.values()) == self.images


@dataclass(frozen=True)
class CountDifference:
    """Images of a class (context "") or pair, published and here; not `settled` where the printed tables contradict."""

    concept: str
    context: str
    published: int
    here: int
    settled: bool


@dataclass(frozen=True)
class PublishedComparison:
    """Where a dataset differs from the published one; empty tuples where it does not.

    `splits` are (concept, published split, splits in the dataset). `classes` and `pairs` are counts that differ, of
    classes that both have. `equal_classes` and `equal_pairs` count what agrees.
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


def list_tables() -> tuple[PublishedTable, ...]:
    """Tables 1 to 7, whole and as printed."""
    return tuple(read_published("hardlook.metacoco").tables.values())


def list_rows(table: str) -> list[dict[str, Any]]:
    """The rows of a table (`table-1` to `table-7`), each by column; accuracies are in percent."""
    printed = read_published("hardlook.metacoco").tables[table]
    return [dict(zip(printed.columns, row, strict=True)) for row in printed.rows]


@cache
def list_results() -> tuple[PublishedResult, ...]:
    """Every printed accuracy as our blind accuracy by ways and shots, for leaderboards.

    >>> row = list_results()[0]
    >>> row.method, row.values["blind"], dict(row.where), len(list_results())
    ('Baseline, ResNet12', 0.4678, {'ways': '5', 'shots': '1'}, 208)
    """
    return tuple(
        PublishedResult(
            f"{row['method']}, {row['backbone']}" if row.get("backbone") else row["method"],
            f"Table {table.removeprefix('table-')}",
            {"blind": fraction(row["1 shot" if shots == 1 else "5 shots"])},
            _NOTE,
            {"ways": str(ways), "shots": str(shots)},
        )
        for table, ways in ACCURACY_TABLES.items()
        for row in list_rows(table)
        for shots in (1, 5)
    )


@cache
def list_concepts() -> tuple[PublishedConcept, ...]:
    """MetaCoCo's classes: training, validation, testing, each from the largest class to the smallest."""
    contexts: dict[str, dict[str, int]] = {}
    for row in list_rows("table-5"):
        contexts.setdefault(row["concept"], {})[row["context"]] = row["images"]
    return tuple(
        PublishedConcept(row["concept"], row["split"], row["images"], contexts.get(row["concept"], {}))
        for row in list_rows("table-4")
    )


def compare_counts(cells: Mapping[tuple[str, str], int], splits: Mapping[str, Iterable[str]]) -> PublishedComparison:
    """Compare images by (concept, context), and the splits of each concept, with the published ones.

    A concept without splits is not compared by split.

    >>> next(one for one in compare_counts({("Dog", "Grass"): 600}, {}).pairs if one.context == "grass")
    CountDifference(concept='dog', context='grass', published=649, here=600, settled=True)
    """
    here: dict[str, Counter[str]] = {}
    for (concept, context), count in cells.items():
        here.setdefault(plain_name(concept), Counter())[plain_name(context)] += count
    own = {plain_name(concept): tuple(sorted(names)) for concept, names in splits.items()}
    published = {plain_name(one.name): one for one in list_concepts()}
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
