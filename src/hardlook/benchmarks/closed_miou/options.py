"""What closed mIoU can be told."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from hardlook.contract.options import BenchmarkOptions, option, read_reading
from hardlook.contract.scorecard import Reading
from hardlook.metrics.mean_iou import MeanOver

MEAN_OVER = {
    "detectron2": "sum over classes with ground truth, divided by classes with ground truth or prediction",
    "gt-only": "mean over classes with ground truth",
}
assert set(MEAN_OVER) == set(get_args(MeanOver))


class ClosedMiouOptions(BenchmarkOptions):
    """Options of `hardlook run closed-miou`."""

    scenes: int = option(
        96, "How many scenes of the planted world, when no data is given.", changes="units", ge=1, le=1_000_000
    )
    split: str = option("val", "Which list of ImageSets/Segmentation, for --data voc=DIR.", changes="units")
    labels: Path | None = option(
        None, "Text file of label names, one a line, for --data masks=DIR or --gt.", changes="units"
    )
    ignore: int = option(255, "Label of the truth that is left out of every score.", changes="answers")
    keep_predictions: bool = option(True, "Store predicted maps, so that the report can show them.", changes="answers")
    resamples: int = option(2000, "Bootstrap resamples behind each interval.", changes="scores", ge=0)
    level: float = option(0.95, "Confidence level of the intervals.", changes="scores", gt=0, lt=1)


def mean_over(options: ClosedMiouOptions) -> MeanOver:
    """Which classes the mean runs over."""
    return "gt-only" if read_reading(options, "mean-over", MEAN_OVER, "detectron2") == "gt-only" else "detectron2"


def chosen_readings(options: ClosedMiouOptions) -> tuple[Reading, ...]:
    """The one reading there is."""
    value = mean_over(options)
    return (Reading("mean-over", value, MEAN_OVER[value], tuple(MEAN_OVER), "detectron2"),)
