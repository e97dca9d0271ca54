"""Options of the benchmarks on label maps, and their readings."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import model_validator

from hardlook.data.stored_files.columns import SUMMARY
from hardlook.data.stored_files.python_objects import take_objects
from hardlook.harness.options import option, read_reading
from hardlook.harness.scorecard import Reading
from hardlook.metrics.mean_iou import MeanOver
from hardlook.open_vocabulary.options import SceneOptions, SimilarityOptions, similarity_readings, take_preset_labels

Numbering = Literal["index", "one-based", "category-id", "alphabetical"]

MEAN_OVER: dict[str, str] = {
    "detectron2": "sum over classes with ground truth, divided by classes with ground truth or prediction",
    "gt-only": "mean over classes with ground truth",
}


class SemanticOptions(SceneOptions):
    """Where label maps come from and what their numbers mean; shared by closed and open mIoU."""

    split: str = option("val", "Which split of --data voc=DIR or of a published dataset.", changes="units")
    labels: str | None = option(
        None, "A shipped label set (hardlook labels list) or a file of label names, for label maps.", changes="units"
    )
    numbering: Numbering = option(
        "index",
        "Numbers in label maps: index from 0, one-based with 0 ignored (ADE20K's own), COCO's category-id, or "
        "alphabetical from 0 (Pascal Context 59).",
        changes="answers",
    )
    pred_numbering: Numbering | None = option(
        None, "Numbers in stored predictions, where they differ from --numbering.", changes="answers"
    )
    ignore: int = option(255, "Label of the truth that is left out of every score.", changes="answers")
    columns: str = option("", SUMMARY, changes="units", added=True)

    @model_validator(mode="before")
    @classmethod
    def _take_objects(cls, given: Any) -> Any:
        """The options with a path in place of a dataset object."""
        return take_objects(given)

    @model_validator(mode="before")
    @classmethod
    def _take_labels_of_published_dataset(cls, given: Any) -> Any:
        """The options with the label set of `--data ade20k=PATH` and the like, where no other is given."""
        return take_preset_labels(given)


class OpenMiouOptions(SemanticOptions, SimilarityOptions):
    """Options of `hardlook run open-miou`."""

    benchmark: ClassVar[str] = "open-miou"


def mean_over(options: SemanticOptions) -> MeanOver:
    """Which classes the mean runs over."""
    return "gt-only" if read_reading(options, "mean-over", MEAN_OVER, "detectron2") == "gt-only" else "detectron2"


def mean_over_reading(options: SemanticOptions) -> Reading:
    """The reading `mean-over`."""
    value = mean_over(options)
    return Reading("mean-over", value, MEAN_OVER[value], tuple(MEAN_OVER), "detectron2")


def get_readings(options: OpenMiouOptions) -> tuple[Reading, ...]:
    """Which classes the mean runs over, and how the similarity is made."""
    return (mean_over_reading(options), *similarity_readings(options))
