"""Options of open AP, and their readings."""

from __future__ import annotations

from typing import Literal

from hardlook.harness.options import option, read_reading
from hardlook.harness.scorecard import Reading
from hardlook.open_vocabulary.options import SimilarityOptions, similarity_readings

UNMATCHED: dict[str, str] = {
    "ours": "a match is a match, whatever ids the dataset uses",
    "released": "a match with annotation id 0 or, across classes, category id 0 reads as none, as in the paper's code",
}


class OpenApOptions(SimilarityOptions):
    """Options of `hardlook run open-ap`."""

    iou: Literal["segm", "bbox"] = option("segm", "What overlaps: masks (segm) or boxes (bbox).", changes="answers")
    max_detections: int = option(
        100, "Detections of an image that count: of each class for AP, of all for dagger and open.",
        changes="scores", ge=1, le=10_000,
    )  # fmt: skip
    resamples: int = option(200, "Bootstrap resamples of images behind each interval.", changes="scores", ge=0)


def unmatched_ids(options: OpenApOptions) -> str:
    """How matches with an id of 0 are read."""
    return read_reading(options, "unmatched", UNMATCHED, "ours")


def get_readings(options: OpenApOptions) -> tuple[Reading, ...]:
    """How matches are read, and how the similarity is made."""
    value = unmatched_ids(options)
    return (Reading("unmatched", value, UNMATCHED[value], tuple(UNMATCHED), "ours"), *similarity_readings(options))
