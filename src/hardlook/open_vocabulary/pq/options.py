"""Options of open PQ, and their readings."""

from __future__ import annotations

from pathlib import Path

from hardlook.harness.options import option, read_reading
from hardlook.harness.scorecard import Reading
from hardlook.open_vocabulary.options import SimilarityOptions, similarity_readings

CROWDS = {
    "last": "where an image has several crowds of a class, the last listed one excuses predictions, as in panopticapi",
    "all": "all crowds of a class together excuse predictions",
}


class OpenPqOptions(SimilarityOptions):
    """Options of `hardlook run open-pq`."""

    gt_masks: Path | None = option(
        None, "Folder of the true PNGs; by default the one named as the --gt file, without .json.", changes="units"
    )
    pred_masks: Path | None = option(
        None, "Folder of the predicted PNGs; by default the one named as the --pred file.", changes="answers"
    )
    scenes: int = option(
        96, "How many scenes of the planted world, when no data is given.", changes="units", ge=1, le=1_000_000
    )
    # The names come from the JSON, so that other senses re-score a stored run.
    labels: str | None = option(
        None, "Label set or file with the senses of the JSON's category names, such as coco133.", changes="scores"
    )
    keep_predictions: bool = option(True, "Store predictions, so that the report can show them.", changes="answers")
    resamples: int = option(2000, "Bootstrap resamples behind each interval.", changes="scores", ge=0)
    level: float = option(0.95, "Confidence level of the intervals.", changes="scores", gt=0, lt=1)


def chosen_crowds(options: OpenPqOptions) -> str:
    """The chosen value of the reading `crowds`."""
    return read_reading(options, "crowds", CROWDS, "last")


def chosen_readings(options: OpenPqOptions) -> tuple[Reading, ...]:
    """Which crowds excuse predictions, and how the similarity is made."""
    value = chosen_crowds(options)
    crowds = Reading("crowds", value, CROWDS[value], tuple(CROWDS), "last")
    return (crowds, *similarity_readings(options))
