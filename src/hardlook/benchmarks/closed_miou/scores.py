"""Scores of closed mIoU from records: over all images, by class, by context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.closed_miou.options import ClosedMiouOptions, mean_over
from hardlook.benchmarks.semantic_images.records import image_counts, label_names
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import LeftOut, Scorecard
from hardlook.contract.tally import Entry, SumTally, scores_of
from hardlook.metrics import mean_iou as metric

if TYPE_CHECKING:
    import polars as pl

OVERALL = ("miou", "pixel-accuracy", "mean-accuracy", "fw-iou")


def score_images(card: BenchmarkCard, records: pl.DataFrame, options: ClosedMiouOptions) -> Scorecard:
    """Every score with its interval over images."""
    scores = [score for tally in tally_images(records, options) for score in scores_of(tally, options)]
    empty = records.filter(records["cells"].list.len() == 0)["unit"].to_list()
    left_out = (LeftOut("images without a labelled pixel", len(empty), "they add nothing to any score", (*empty[:5],)),)
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=left_out if empty else ())


def tally_images(records: pl.DataFrame, options: ClosedMiouOptions) -> list[SumTally]:
    """The counts of all images, then of those of each context."""
    names = label_names(records)
    tallies = [_tally(image_counts(records), names, options, {})]
    for context in sorted(set(records["context"]) - {""}):
        inside = (records["context"] == context).to_numpy()
        tallies.append(_tally(image_counts(records.filter(inside)), names, options, {"context": context}))
    return tallies


def _tally(counts: NDArray[np.int64], names: list[str], options: ClosedMiouOptions, where: dict[str, str]) -> SumTally:
    classes, over = len(names), mean_over(options)

    def statistic(totals: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = totals.reshape(len(totals), 3, classes)
        overall = [
            metric.mean_iou(sums, over),
            metric.pixel_accuracy(sums),
            metric.mean_class_accuracy(sums),
            metric.frequency_weighted_iou(sums),
        ]
        return np.concatenate([np.stack(overall, -1), metric.class_iou(sums)], axis=-1)

    reading = f"mean-over={over}"
    entries = [Entry(name, len(counts), where, reading if name == "miou" else "") for name in OVERALL]
    images = (counts[:, 1:].sum(1) > 0).sum(0)
    entries += [Entry("iou", int(n), {**where, "class": name}) for name, n in zip(names, images, strict=True)]
    key = ("closed-miou", "bootstrap", *where.values())
    return SumTally(tuple(entries), counts.reshape(len(counts), -1), statistic, key, "image")
