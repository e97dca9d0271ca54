"""Scores of closed mIoU from records: over all images, by class, by context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.closed_miou.options import ClosedMiouOptions, mean_over
from hardlook.benchmarks.semantic_images.records import image_counts, label_names
from hardlook.contract.benchmark import BenchmarkCard
from hardlook.contract.scorecard import LeftOut, Score, Scorecard, score_of
from hardlook.metrics import mean_iou as metric
from hardlook.randomness import generator
from hardlook.stats import bootstrap_scores

if TYPE_CHECKING:
    import polars as pl

OVERALL = ("miou", "pixel-accuracy", "mean-accuracy", "fw-iou")


def score_images(card: BenchmarkCard, records: pl.DataFrame, options: ClosedMiouOptions) -> Scorecard:
    """Every score with its interval over images."""
    names = label_names(records)
    scores = _scores(image_counts(records), names, options, {})
    for context in sorted(set(records["context"]) - {""}):
        inside = (records["context"] == context).to_numpy()
        scores += _scores(image_counts(records.filter(inside)), names, options, {"context": context})
    empty = records.filter(records["cells"].list.len() == 0)["unit"].to_list()
    left_out = (LeftOut("images without a labelled pixel", len(empty), "they add nothing to any score", (*empty[:5],)),)
    return Scorecard(card.name, card.version, "", tuple(scores), left_out=left_out if empty else ())


def _scores(
    counts: NDArray[np.int64], names: list[str], options: ClosedMiouOptions, where: dict[str, str]
) -> list[Score]:
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

    estimates = bootstrap_scores(
        counts.reshape(len(counts), -1),
        statistic,
        rng=generator(options.seed, "closed-miou", "bootstrap", *where.values()),
        resamples=options.resamples,
        level=options.level,
        resampled="image",
    )
    reading = f"mean-over={over}"
    scores = [
        score_of(name, estimate, len(counts), slice=where, reading=reading if name == "miou" else "")
        for name, estimate in zip(OVERALL, estimates, strict=False)
    ]
    for number, (name, estimate) in enumerate(zip(names, estimates[len(OVERALL) :], strict=True)):
        images = int((counts[:, 1:, number].sum(1) > 0).sum())
        if images:
            scores.append(score_of("iou", estimate, images, slice={**where, "class": name}))
    return scores
