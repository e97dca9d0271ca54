"""The tables of the MetaCoCo paper, whole and as printed: datasets, methods, concepts, backbones.

From "MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation" (ICLR 2024).

>>> [(table.name, len(table.rows)) for table in printed_tables()][:3]
[('table-1', 18), ('table-2', 36), ('table-3', 20)]
"""

from __future__ import annotations

from collections.abc import Sequence

from hardlook.benchmarks.metacoco.published import TABLE_2, TABLE_3, Accuracy, Flags, PublishedRow
from hardlook.benchmarks.metacoco.published_backbones import TABLE_6, TABLE_7
from hardlook.benchmarks.metacoco.published_benchmarks import DATASETS, Counts
from hardlook.benchmarks.metacoco.published_concepts import PUBLISHED_CONCEPTS
from hardlook.contract.published import PublishedCell, PublishedTable, percent

SOURCE = "MetaCoCo: A New Few-Shot Classification Benchmark with Spurious Correlation, ICLR 2024"
_TICKS = "GL: pretrained on global labels; LL: trained on tasks; TT: trains on the supports at test time."
_SHOTS = ("1 shot", "5 shots")
_BOUNDED = ("1 shot", "+-", "5 shots", "+- of 5 shots")


def printed_tables() -> tuple[PublishedTable, ...]:
    """Tables 1 to 7."""
    return (_datasets(), _methods(), _cross_domain(), _concepts(), _contexts(), _ways(6, TABLE_6), _ways(7, TABLE_7))


def _datasets() -> PublishedTable:
    classes, images = (
        [f"{what}, {part}" for part in ("all", "train", "val", "test")] for what in ("classes", "images")
    )
    rows = [(one.name, *_counts(one.classes), *_counts(one.images), one.contexts, one.similarity) for one in DATASETS]
    return PublishedTable(
        "table-1",
        "Table 1: few-shot datasets",
        ("dataset", *classes, *images, "contexts", "similarity"),
        tuple(rows),
        SOURCE,
        "Similarity is the mean cosine of image and concept text by CLIP. MetaCoCo's splits sum to 864 images less "
        "than its total.",
    )


def _methods() -> PublishedTable:
    rows = [(row.method, row.venue, row.backbone, row.kind, *_ticks(row.flags), *_plain(row)) for row in TABLE_2]
    return PublishedTable(
        "table-2",
        "Table 2: 5-way accuracy",
        ("method", "venue", "backbone", "type", "GL", "LL", "TT", *_SHOTS),
        tuple(rows),
        SOURCE,
        f"Percent, no intervals. {_TICKS} A mark that cannot be settled is left empty.",
    )


def _cross_domain() -> PublishedTable:
    rows = [(row.method, row.built_on, row.venue, row.kind, *_ticks(row.flags), *_bounded(row)) for row in TABLE_3]
    return PublishedTable(
        "table-3",
        "Table 3: 5-way accuracy of cross-domain and causal methods",
        ("method", "built on", "venue", "type", "GL", "LL", "TT", *_BOUNDED),
        tuple(rows),
        SOURCE,
        f"Percent. {_TICKS} What the +- is, and which backbones were used, is not said. MAML and MTL differ from "
        "Table 2.",
    )


def _concepts() -> PublishedTable:
    return PublishedTable(
        "table-4",
        "Table 4: classes and their images",
        ("concept", "split", "images"),
        tuple((one.name, one.split, one.images) for one in PUBLISHED_CONCEPTS),
        SOURCE,
    )


def _contexts() -> PublishedTable:
    rows = [
        (one.name, context, images, "follows from the sum" if context == one.inferred else "")
        for one in PUBLISHED_CONCEPTS
        for context, images in one.contexts.items()
    ]
    return PublishedTable(
        "table-5",
        "Table 5: images by concept and context",
        ("concept", "context", "images", "note"),
        tuple(rows),
        SOURCE,
        "Recovered from the paper's text. Six classes do not sum to Table 4; umbrella has no column.",
    )


def _ways(number: int, table: Sequence[PublishedRow]) -> PublishedTable:
    return PublishedTable(
        f"table-{number}",
        f"Table {number}: {table[0].ways}-way accuracy by backbone",
        ("method", "backbone", "type", *_BOUNDED),
        tuple((row.method, row.backbone, row.kind, *_bounded(row)) for row in table),
        SOURCE,
        "Percent; +- are half widths of 95 % intervals. Versa at one shot, and ANIL with ResNet18 10-way, are at "
        "chance level in some rows.",
    )


def _counts(counts: Counts) -> tuple[int | None, ...]:
    return (counts.all, counts.train, counts.val, counts.test)


def _ticks(flags: Flags | None) -> tuple[int | None, ...]:
    marks = (flags.pretrained, flags.episodic, flags.adapts) if flags else (None, None, None)
    return tuple(None if mark is None else int(mark) for mark in marks)


def _plain(row: PublishedRow) -> tuple[float, float]:
    return percent(row.one_shot.value), percent(row.five_shot.value)


def _bounded(row: PublishedRow) -> tuple[PublishedCell, ...]:
    return (*_value_and_half(row.one_shot), *_value_and_half(row.five_shot))


def _value_and_half(accuracy: Accuracy) -> tuple[PublishedCell, PublishedCell]:
    half = accuracy.half_width
    return percent(accuracy.value), None if half is None else percent(half)
