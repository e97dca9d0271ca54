"""What closed mIoU can be told."""

from __future__ import annotations

from typing import get_args

from hardlook.benchmarks.semantic_images.options import SemanticOptions
from hardlook.contract.options import read_reading
from hardlook.contract.scorecard import Reading
from hardlook.metrics.mean_iou import MeanOver

MEAN_OVER: dict[str, str] = {
    "detectron2": "sum over classes with ground truth, divided by classes with ground truth or prediction",
    "gt-only": "mean over classes with ground truth",
}
assert set(MEAN_OVER) == set(get_args(MeanOver))


class ClosedMiouOptions(SemanticOptions):
    """Options of `hardlook run closed-miou`."""


def mean_over(options: SemanticOptions) -> MeanOver:
    """Which classes the mean runs over."""
    return "gt-only" if read_reading(options, "mean-over", MEAN_OVER, "detectron2") == "gt-only" else "detectron2"


def chosen_readings(options: SemanticOptions) -> tuple[Reading, ...]:
    """The one reading there is."""
    value = mean_over(options)
    return (Reading("mean-over", value, MEAN_OVER[value], tuple(MEAN_OVER), "detectron2"),)
