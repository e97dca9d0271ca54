"""Options that the open metrics share: the senses of labels, the similarity measure, labels without a sense."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hardlook.harness.options import BenchmarkOptions, option
from hardlook.harness.scorecard import Reading
from hardlook.similarity.label_synsets import UnknownPolicy
from hardlook.similarity.measures import find_measure

Variant = Literal["corrected", "published"]

VARIANTS = {
    "corrected": "senses reviewed label by label, the paper's slips repaired (docs/label-tables.md)",
    "published": "senses that reproduce the paper's numbers",
}


class SimilarityOptions(BenchmarkOptions):
    """How the similarity of labels is made; all but `pred_labels` changes scores only, so stored runs are re-scored."""

    pred_labels: str | None = option(
        None, "Label set or file of the predictions' labels, where they are not the truth's.", changes="answers"
    )
    variant: Variant = option("corrected", "Senses of shipped label sets.", changes="scores")
    measure: str = option("path", "Similarity measure (hardlook similarity --help lists them).", changes="scores")
    source: Path | None = option(None, "Word vectors or model folder, for measures that need one.", changes="scores")
    similarity: Path | None = option(
        None, "A similarity matrix of your own (CSV, npy, Parquet) in place of a measure.", changes="scores"
    )
    unknown: UnknownPolicy = option("hypernym", "Treatment of labels that the measure does not know.", changes="scores")
    compare: tuple[str, ...] = option(
        ("path", "wup", "lin", "lesk"), "Measures to re-score under beside the chosen one.", changes="scores"
    )
    class_sets: Path | None = option(
        None, "JSON of class names by set, such as seen and unseen; for open-ap also coco-48-17.", changes="scores"
    )


def similarity_readings(options: SimilarityOptions) -> tuple[Reading, ...]:
    """How the similarity is made, for the report; each has its own option, so they have no choices here."""
    if options.similarity is not None:
        return (Reading("similarity", str(options.similarity.name), "a matrix from a file"),)
    measure = find_measure(options.measure)
    return (
        Reading("variant", options.variant, VARIANTS[options.variant], default="corrected"),
        Reading("measure", options.measure, measure.sentence, default="path"),
        Reading("unknown", options.unknown, "labels that the measure does not know", default="hypernym"),
    )
