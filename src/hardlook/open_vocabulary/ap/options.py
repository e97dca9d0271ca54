"""Options of open AP, and their readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from hardlook.data.presets import open_instance_preset
from hardlook.data.stored_files.columns import SUMMARY
from hardlook.data.stored_files.python_objects import take_objects
from hardlook.errors import HardlookError, OptionError
from hardlook.harness.options import option, read_reading
from hardlook.harness.scorecard import Reading
from hardlook.open_vocabulary.options import SimilarityOptions, similarity_readings, take_preset_labels

UNMATCHED: dict[str, str] = {
    "ours": "a match is a match, whatever ids the dataset uses",
    "released": "a match with annotation id 0 or, across classes, category id 0 reads as none, as in the paper's code",
}

PROTOCOLS: dict[str, str] = {
    "coco": "every class is annotated in every image; --max-detections of each class (dagger, open: of all) count",
    "lvis": "a detection counts where its class has objects or is in neg_category_ids; false positives of "
    "not_exhaustive_category_ids do not count; --max-detections-lvis of all classes",
}
PROTOCOL = "protocol"


class OpenApOptions(SimilarityOptions):
    """Options of `hardlook run open-ap`."""

    benchmark: ClassVar[str] = "open-ap"

    split: str = option("val", "Which split of a published dataset or of hf-dataset=DIR.", changes="units", added=True)
    columns: str = option("", SUMMARY, changes="units", added=True)
    iou: Literal["segm", "bbox"] = option("segm", "What overlaps: masks (segm) or boxes (bbox).", changes="answers")
    max_detections: int = option(
        100, "Detections of an image that count: of each class for AP, of all for dagger and open.",
        changes="scores", ge=1, le=10_000,
    )  # fmt: skip
    max_detections_lvis: int = option(
        300, "Detections of an image that count under LVIS's rules, of all classes.", changes="scores", ge=1, le=10_000
    )
    resamples: int = option(200, "Bootstrap resamples of images behind each interval.", changes="scores", ge=0)

    @model_validator(mode="before")
    @classmethod
    def _take_objects(cls, given: Any) -> Any:
        """The options with a path in place of a dataset object."""
        return take_objects(given)

    @model_validator(mode="before")
    @classmethod
    def _take_labels_of_published_dataset(cls, given: Any) -> Any:
        """The options with the label set of `--data coco-instances=PATH`; for LVIS its own json, which has senses."""
        given = take_preset_labels(given)
        data = given.get("data") if isinstance(given, dict) else None
        if not isinstance(data, dict) or given.get("labels") is not None or "lvis" not in data:
            return given
        try:
            files = open_instance_preset("lvis", Path(data["lvis"]), given.get("split", "val"), needs_images=False)
        except (HardlookError, TypeError):  # raised when the units are listed
            return given
        return {**given, "labels": str(files.annotations)}


def unmatched_ids(options: OpenApOptions) -> str:
    """How matches with an id of 0 are read."""
    return read_reading(options, "unmatched", UNMATCHED, "ours")


def choose_protocol(options: OpenApOptions, data: str) -> Reading:
    """Whose rules hold: those of the data (coco or lvis), unless `--reading protocol=coco` asks for COCO's on LVIS."""
    value = read_reading(options, PROTOCOL, PROTOCOLS, data)
    if value == "lvis" and data != "lvis":
        what = "--reading protocol=lvis: the data do not say which classes are absent from an image"
        raise OptionError(what, remedy="give LVIS's own json, whose images have neg_category_ids, as --gt or --data")
    return Reading(PROTOCOL, value, PROTOCOLS[value], tuple(PROTOCOLS), data)


def get_readings(options: OpenApOptions) -> tuple[Reading, ...]:
    """How matches are read, and how the similarity is made; the protocol comes from the data when they are scored."""
    value = unmatched_ids(options)
    protocol = read_reading(options, PROTOCOL, {**PROTOCOLS, "data": ""}, "data")
    return (
        Reading("unmatched", value, UNMATCHED[value], tuple(UNMATCHED), "ours"),
        Reading(PROTOCOL, protocol, "LVIS's rules for LVIS's json, else COCO's", tuple(PROTOCOLS), "data"),
        *similarity_readings(options),
    )
