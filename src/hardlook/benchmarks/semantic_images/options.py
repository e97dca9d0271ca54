"""Options of every benchmark on label maps."""

from __future__ import annotations

from typing import Literal

from hardlook.contract.options import BenchmarkOptions, option

Numbering = Literal["index", "one-based", "category-id"]


class SemanticOptions(BenchmarkOptions):
    """Where label maps come from and what their numbers mean."""

    scenes: int = option(
        96, "How many scenes of the planted world, when no data is given.", changes="units", ge=1, le=1_000_000
    )
    split: str = option("val", "Which list of ImageSets/Segmentation, for --data voc=DIR.", changes="units")
    labels: str | None = option(
        None, "A shipped label set (hardlook labels list) or a file of label names, for label maps.", changes="units"
    )
    numbering: Numbering = option(
        "index",
        "Numbers in label maps: index from 0, one-based with 0 ignored (ADE20K's own), or COCO's category-id.",
        changes="answers",
    )
    pred_numbering: Numbering | None = option(
        None, "Numbers in stored predictions, where they differ from --numbering.", changes="answers"
    )
    ignore: int = option(255, "Label of the truth that is left out of every score.", changes="answers")
    keep_predictions: bool = option(True, "Store predicted maps, so that the report can show them.", changes="answers")
    resamples: int = option(2000, "Bootstrap resamples behind each interval.", changes="scores", ge=0)
    level: float = option(0.95, "Confidence level of the intervals.", changes="scores", gt=0, lt=1)
