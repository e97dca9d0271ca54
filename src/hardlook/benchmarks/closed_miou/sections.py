"""What the report of closed mIoU shows: classes, contexts, confusions, and how single images spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.semantic_images.qualities import per_image_miou
from hardlook.benchmarks.semantic_images.records import confusion_of, label_names
from hardlook.contract.scorecard import Score, Scorecard
from hardlook.contract.sections import (
    DistributionChart,
    DotChart,
    HeatMap,
    Section,
    Table,
    dot_of,
)

if TYPE_CHECKING:
    import polars as pl

MOST_CONFUSIONS = 20


def show(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections, those without content left out."""
    found = [_classes(scorecard), _contexts(scorecard), _confusions(records), _images(records)]
    return [section for section in found if section is not None]


def _classes(scorecard: Scorecard) -> Section:
    scores = [score for score in scorecard.scores if score.name == "iou" and set(score.slice) == {"class"}]
    ranked = sorted(scores, key=lambda score: -score.value)
    overall = scorecard.get("miou")
    chart = DotChart(
        "IoU of each class",
        "Dots are IoU over all images, lines the interval that resampling images gives. "
        "The mean hides the classes on the left.",
        tuple(dot_of(score, score.slice["class"]) for score in ranked),
        axis="IoU",
        references=(("mIoU", overall.value),),
    )
    return Section("Which classes", _weakest(ranked), (chart,))


def _weakest(ranked: Sequence[Score]) -> str:
    """The three weakest classes in words; those that share the last place are counted."""
    shown = ranked[-3:][::-1]
    names = ", ".join(f"{score.slice['class']} ({score.value:.2f})" for score in shown)
    tied = sum(score.value == shown[-1].value for score in ranked[:-3]) if shown else 0
    more = f", and {tied} more with {shown[-1].value:.2f}" if tied else ""
    return f"The weakest classes are {names}{more}." if shown else ""


def _contexts(scorecard: Scorecard) -> Section | None:
    means = [score for score in scorecard.scores if score.name == "miou" and set(score.slice) == {"context"}]
    if len(means) < 2:
        return None
    ranked = sorted(means, key=lambda score: -score.value)
    chart = DotChart(
        "mIoU in each context",
        "The same score over the images of one context. A class that does not occur in a context but is predicted "
        "there counts as 0 (unless the reading is gt-only), so all contexts may lie below the whole.",
        tuple(dot_of(score, score.slice["context"]) for score in ranked),
        axis="mIoU",
        references=(("all images", scorecard.get("miou").value),),
    )
    cells = {
        (score.slice["class"], score.slice["context"]): score.value
        for score in scorecard.scores
        if score.name == "iou" and set(score.slice) == {"class", "context"}
    }
    classes = sorted({name for name, _ in cells})
    contexts = [score.slice["context"] for score in ranked]
    heat = HeatMap(
        "IoU of each class in each context",
        "Empty cells: the class does not occur there.",
        classes,
        contexts,
        [[cells.get((name, context), float("nan")) for context in contexts] for name in classes],
        row_axis="class",
        column_axis="context",
    )
    best, worst = ranked[0], ranked[-1]
    text = (
        f"From {best.slice['context']} ({best.value:.3f}) to {worst.slice['context']} ({worst.value:.3f}): "
        f"a span of {best.value - worst.value:.3f} that the mean over all images hides."
    )
    return Section("Which contexts", text, (chart, heat))


def _confusions(records: pl.DataFrame) -> Section | None:
    names = [*label_names(records), "(no such label)"]
    counts = confusion_of(records)
    truth = counts.sum(1)
    wrong = [
        (names[row], names[column], int(counts[row, column]), counts[row, column] / truth[row])
        for row, column in zip(*np.nonzero(counts), strict=True)
        if row != column
    ]
    if not wrong:
        return None
    wrong.sort(key=lambda cell: -cell[2])
    table = Table(
        "The largest confusions",
        "Pixels of one class that were called another.",
        ("true", "called", "pixels", "share of the true class"),
        tuple(wrong[:MOST_CONFUSIONS]),
    )
    return Section("What is taken for what", "", (table,))


def _images(records: pl.DataFrame) -> Section | None:
    values = per_image_miou(records)
    known = values[~np.isnan(values)].tolist()
    if not known:
        return None
    spread = DistributionChart(
        "mIoU of single images",
        "The mean over these is not the headline: the headline sums pixels over images first.",
        (("images", known),),
        axis="mIoU of one image",
    )
    return Section("Which images", "", (spread,))
