"""Options of open PQ, and their readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from pydantic import model_validator

from hardlook.harness.options import option, read_reading
from hardlook.harness.scorecard import Reading
from hardlook.open_vocabulary.options import SimilarityOptions, similarity_readings, take_preset_labels

CROWDS = {
    "last": "where an image has several crowds of a class, the last listed one excuses predictions, as in panopticapi",
    "all": "all crowds of a class together excuse predictions",
}


class OpenPqOptions(SimilarityOptions):
    """Options of `hardlook run open-pq`."""

    benchmark: ClassVar[str] = "open-pq"

    split: str = option("val", "Which split of a published dataset.", changes="units", added=True)
    gt_masks: Path | None = option(
        None, "Folder of the true PNGs; by default the one named as the --gt file, without .json.", changes="units"
    )
    pred_masks: Path | None = option(
        None, "Folder of the predicted PNGs; by default the one named as the --pred file.", changes="answers"
    )

    @model_validator(mode="before")
    @classmethod
    def _take_labels_of_published_dataset(cls, given: Any) -> Any:
        """The options with the label set of `--data coco-panoptic=PATH` and the like, where no other is given."""
        return take_preset_labels(given)


def get_crowds_reading(options: OpenPqOptions) -> str:
    """The chosen value of the reading `crowds`."""
    return read_reading(options, "crowds", CROWDS, "last")


def get_readings(options: OpenPqOptions) -> tuple[Reading, ...]:
    """Which crowds excuse predictions, and how the similarity is made."""
    value = get_crowds_reading(options)
    return (Reading("crowds", value, CROWDS[value], tuple(CROWDS), "last"), *similarity_readings(options))
