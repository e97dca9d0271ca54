"""Options of every open metric: which senses, which measure, what to do about words nobody mapped."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from hardlook.contract.options import BenchmarkOptions, option
from hardlook.contract.scorecard import Reading
from hardlook.labels.measures import find_measure
from hardlook.labels.unknown import Unknown

Variant = Literal["corrected", "published"]
VARIANTS = {
    "corrected": "senses reviewed label by label, the paper's slips repaired (docs/label-tables.md)",
    "published": "senses that reproduce the paper's numbers",
}


class OpenLabelOptions(BenchmarkOptions):
    """How like two labels are; all of it changes scores only, so a stored run is re-scored for free."""

    pred_labels: str | None = option(
        None, "Label set or file of the predictions' words, where they are not the truth's.", changes="answers"
    )
    variant: Variant = option("corrected", "Senses of shipped label sets.", changes="scores")
    measure: str = option("path", "Similarity measure (hardlook similarity --help lists them).", changes="scores")
    source: Path | None = option(None, "Word vectors or model folder, for measures that need one.", changes="scores")
    similarity: Path | None = option(
        None, "A similarity matrix of your own (CSV, npy, Parquet) in place of a measure.", changes="scores"
    )
    unknown: Unknown = option("hypernym", "What becomes of labels the measure does not know.", changes="scores")
    compare: tuple[str, ...] = option(
        ("path", "wup", "lin", "lesk"), "Measures to re-score under beside the chosen one.", changes="scores"
    )
    class_sets: Path | None = option(
        None, "JSON of class names by set, such as seen and unseen; for open-ap also coco-48-17.", changes="scores"
    )


def label_readings(options: OpenLabelOptions) -> tuple[Reading, ...]:
    """What the similarity was made of, for the report; chosen by options of their own, so they have no choices here."""
    if options.similarity is not None:
        return (Reading("similarity", str(options.similarity.name), "a matrix from a file"),)
    measure = find_measure(options.measure)
    return (
        Reading("variant", options.variant, VARIANTS[options.variant], default="corrected"),
        Reading("measure", options.measure, measure.sentence, default="path"),
        Reading("unknown", options.unknown, "labels that the measure does not know", default="hypernym"),
    )
