"""What the MetaCoCo paper prints: accuracies, facts about datasets, and its classes and contexts.

From "MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation" (ICLR 2024). The cells are in
`published/`. Accuracies here are fractions of 1.

What does not fit is kept as printed. Table 2 prints no intervals, and the paper does not say what the +- of Table 3
is; that table names no backbones either. MAML and MTL differ between the two. 46.78 at one shot stands for Baseline,
DeepBDC, FGFL and GNN + ATA, and 43.42 for two rows of IFSL. RENet and LRP are named in the text and are in no table.
In Tables 6 and 7 one-shot Versa answers by chance (Conv64F 5-way, and 10-way everywhere), and so does ANIL with
ResNet18 10-way; the half width of 10-way 5-shot DN4 with ResNet18 is three times that of its neighbours. MetaCoCo's
own splits in Table 1 sum to 864 images less than its total: the size of the class toilet. Table 5 (1,237 pairs) was
recovered from the paper's text: 93 of its 99 classes sum to Table 4, in three of these one cell was inferred from the
sum; the other six are unsettled, and so is umbrella, which has no column there.

>>> row = list_accuracies("table-2")[0]
>>> row.method, row.one_shot.value, row.flags.pretrained, row.flags.episodic, row.flags.adapts
('Baseline', 0.4678, True, False, True)
>>> list_accuracies("table-7")[0].five_shot
Accuracy(value=0.3688, half_width=0.0021)
>>> [row.similarity for row in list_datasets() if row.name in ("miniImageNet", "MetaCoCo")]
[0.211, 0.142]
>>> dog = list_concepts()[0]
>>> dog.name, dog.split, dog.images, dog.contexts["grass"], dog.settled
('dog', 'train', 5820, 649, True)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from hardlook.harness.published import PublishedResult, PublishedTable, fraction, read_published
from hardlook.harness.scorecard import Scorecard
from hardlook.metacoco.options import MetaCocoOptions

# The tables of accuracies and their number of ways.
ACCURACY_TABLES = {"table-2": 5, "table-3": 5, "table-6": 5, "table-7": 10}
_NOTE = (
    "comparable with tasks of MetaCoCo's own test images drawn without regard to context (--blind-supports paper); "
    "that its tables are such tasks is our inference"
)


@dataclass(frozen=True)
class Accuracy:
    """A printed accuracy in [0, 1], and the half width printed beside it, None where there is none."""

    value: float
    half_width: float | None = None


@dataclass(frozen=True)
class Flags:
    """What a method uses: True where ticked, False where not, None where the mark cannot be settled.

    `pretrained` is GL (on global labels), `episodic` is LL (on the labels of tasks), `adapts` is TT (trains on the
    support at test time).
    """

    pretrained: bool | None
    episodic: bool | None
    adapts: bool | None


@dataclass(frozen=True)
class PublishedRow:
    """A row of a table of accuracies; what the table does not print is None.

    `kind` is the paper's type of method; `built_on` is the method that a row adds something to.
    """

    table: int
    method: str
    kind: str
    ways: int
    one_shot: Accuracy
    five_shot: Accuracy
    backbone: str | None = None
    venue: str | None = None
    built_on: str | None = None
    flags: Flags | None = None

    def accuracy(self, shots: int) -> Accuracy | None:
        """What the paper prints for so many shots: it has 1 and 5."""
        return {1: self.one_shot, 5: self.five_shot}.get(shots)


@dataclass(frozen=True)
class Counts:
    """How many in all and in each split, as printed; None where a dash stands."""

    all: int
    train: int | None
    val: int | None
    test: int | None


@dataclass(frozen=True)
class PublishedDataset:
    """A dataset of Table 1: classes, images, contexts (0 where it has none) and similarity in [-1, 1].

    `similarity` is the mean cosine of image and concept text (the paper's M_ce, by CLIP), which the paper calls a
    distance.
    """

    name: str
    classes: Counts
    images: Counts
    contexts: int
    similarity: float


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


def list_tables() -> tuple[PublishedTable, ...]:
    """Tables 1 to 7, whole and as printed."""
    return tuple(read_published("hardlook.metacoco").tables.values())


def _rows(table: str) -> list[dict[str, Any]]:
    printed = read_published("hardlook.metacoco").tables[table]
    return [dict(zip(printed.columns, row, strict=True)) for row in printed.rows]


@cache
def list_accuracies(table: str) -> tuple[PublishedRow, ...]:
    """The rows of `table-2`, `table-3`, `table-6` or `table-7`."""

    def accuracy(row: dict[str, Any], shots: str, bound: str) -> Accuracy:
        half = row.get(bound)
        return Accuracy(fraction(row[shots]), None if half is None else fraction(half))

    def flags(row: dict[str, Any]) -> Flags | None:
        marks = [None if row.get(name) is None else bool(row[name]) for name in ("GL", "LL", "TT")]
        return Flags(*marks) if "GL" in row else None

    return tuple(
        PublishedRow(
            int(table.removeprefix("table-")),
            row["method"],
            row["type"],
            ACCURACY_TABLES[table],
            accuracy(row, "1 shot", "+-"),
            accuracy(row, "5 shots", "+- of 5 shots"),
            row.get("backbone"),
            row.get("venue"),
            row.get("built on"),
            flags(row),
        )
        for row in _rows(table)
    )


@cache
def list_results() -> tuple[PublishedResult, ...]:
    """Every printed accuracy as our blind accuracy by ways and shots, for leaderboards.

    >>> row = list_results()[0]
    >>> row.method, row.values["blind"], dict(row.where), len(list_results())
    ('Baseline, ResNet12', 0.4678, {'ways': '5', 'shots': '1'}, 208)
    """
    results = []
    for row in (one for table in ACCURACY_TABLES for one in list_accuracies(table)):
        method = f"{row.method}, {row.backbone}" if row.backbone else row.method
        for shots, accuracy in ((1, row.one_shot), (5, row.five_shot)):
            where = {"ways": str(row.ways), "shots": str(shots)}
            results.append(PublishedResult(method, f"Table {row.table}", {"blind": accuracy.value}, _NOTE, where))
    return tuple(results)


@cache
def list_datasets() -> tuple[PublishedDataset, ...]:
    """The 18 few-shot datasets of Table 1."""
    parts = ("all", "train", "val", "test")
    return tuple(
        PublishedDataset(
            row["dataset"],
            Counts(*(row[f"classes, {part}"] for part in parts)),
            Counts(*(row[f"images, {part}"] for part in parts)),
            row["contexts"],
            row["similarity"],
        )
        for row in _rows("table-1")
    )


@cache
def list_concepts() -> tuple[PublishedConcept, ...]:
    """MetaCoCo's classes: training, validation, testing, each from the largest class to the smallest."""
    contexts: dict[str, dict[str, int]] = {}
    inferred: dict[str, str] = {}
    for row in _rows("table-5"):
        contexts.setdefault(row["concept"], {})[row["context"]] = row["images"]
        if row["note"]:
            inferred[row["concept"]] = row["context"]
    return tuple(
        PublishedConcept(
            row["concept"],
            row["split"],
            row["images"],
            MappingProxyType(contexts.get(row["concept"], {})),
            inferred.get(row["concept"], ""),
        )
        for row in _rows("table-4")
    )


def published_slice(scorecard: Scorecard, options: MetaCocoOptions) -> dict[str, str]:
    """The ways and shots that scores over all units are of: the only ones asked for that no slice names.

    >>> published_slice(Scorecard("metacoco", "1", ""), MetaCocoOptions(ways=(10,), shots=(5,)))
    {'ways': '10', 'shots': '5'}
    """
    asked = {(str(ways), str(shots)) for ways in options.ways for shots in options.resolved()[0]}
    sliced = {
        (score.slice["ways"], score.slice["shots"])
        for score in scorecard.scores
        if {"ways", "shots"} <= set(score.slice)
    }
    left = asked - sliced
    if len(left) != 1:
        return {}
    [(ways, shots)] = left
    return {"ways": ways, "shots": shots}


def plain_name(name: str) -> str:
    """A name as it is compared: case, `_`, `-` and spaces do not count.

    >>> plain_name("Hot_air-balloon")
    'hot air balloon'
    """
    return " ".join(name.lower().replace("_", " ").replace("-", " ").split())


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
