"""Options of every benchmark on one-shot pairs, and the readings that all of them have."""

from __future__ import annotations

from typing import Literal

from hardlook.contract.options import BenchmarkOptions, option, read_reading
from hardlook.contract.scorecard import Reading

VOID = {
    "ignored": "pixels that the truth leaves open count for nothing",
    "background": "pixels that the truth leaves open are no part of the class: predicting them is wrong",
}
SIZES = {"original": "every query at its own size", "512": "images and masks squashed to 512 x 512 first"}


class OneShotOptions(BenchmarkOptions):
    """How pairs are read and scored."""

    scenes: int = option(
        96, "How many scenes of the planted world, when no data is given.", changes="units", ge=24, le=10_000
    )
    labels: str | None = option(
        None, "A file of class names, the first for 1, for --data images=DIR --data masks=DIR.", changes="units"
    )
    subset: Literal["all", "available"] = option(
        "all",
        "all refuses pairs whose images are not there; available leaves them out and marks every score.",
        changes="units",
    )
    size: Literal["original", "512"] = option(
        "original", "At which size models see and scores count: the image's own, or 512 x 512.", changes="answers"
    )
    keep_predictions: bool = option(True, "Store predicted masks, so that the report can show them.", changes="answers")
    resamples: int = option(2000, "Bootstrap resamples (of query images) behind each interval.", changes="scores", ge=0)
    level: float = option(0.95, "Confidence level of the intervals.", changes="scores", gt=0, lt=1)


def void_reading(options: OneShotOptions) -> str:
    """How pixels are counted that the truth leaves open."""
    return read_reading(options, "void", VOID, "ignored")


def shared_readings(options: OneShotOptions) -> tuple[Reading, ...]:
    """The readings of every benchmark on pairs."""
    void = void_reading(options)
    return (
        Reading("void", void, VOID[void], tuple(VOID), "ignored"),
        Reading("size", options.size, SIZES[options.size], tuple(SIZES), "original"),
    )
