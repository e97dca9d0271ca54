"""Records of open AP: classes, areas and scores of an image, and the overlaps that can become matches.

Matching is greedy and cheap, so it is done when scores are made: one record serves every similarity, every set of
classes, every reading and any number of detections. Overlaps below .5 match at no threshold and are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_ap.dataset import InstanceImage
from hardlook.benchmarks.open_ap.kept_detections import pack
from hardlook.benchmarks.semantic_images.one_vocabulary import one_list, relabelled
from hardlook.benchmarks.semantic_images.vocabulary import together
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Column, Record, RecordSchema
from hardlook.data.coco_results import ImageDetections
from hardlook.metrics.detection_inputs import Detections, Objects
from hardlook.metrics.detection_matching import IOU_THRESHOLDS
from hardlook.metrics.overlap import box_overlap

if TYPE_CHECKING:
    import polars as pl

SCHEMA = RecordSchema(
    (
        Column("context", "text", "where the scene takes place; empty where nobody said", "slice"),
        Column("image_id", "int", "the image's id: equal scores stand in this order"),
        Column("names", "text", "the labels, the truth's first, separated by line breaks"),
        Column("known", "int", "how many of the labels are the truth's"),
        Column("zero", "int", "index of the label whose category id is 0, or -1"),
        Column("object_labels", "ints", "label of each object"),
        Column("object_areas", "floats", "pixels of each object, as the dataset states them"),
        Column("object_crowd", "ints", "1 for a region of many objects"),
        Column("object_ids", "ints", "annotation ids"),
        Column("labels", "ints", "label of each detection, in the order they came"),
        Column("scores", "floats", "score of each detection"),
        Column("areas", "floats", "pixels of each detection's mask or box"),
        Column("pairs", "ints", "detection * objects + object, where they overlap by .5 or more"),
        Column("overlaps", "floats", "overlap of each pair; of a crowd, the detection's share in it"),
        Column("detections", "bytes", "the best detections as JSON, or empty", "picture"),
    )
)


@dataclass(frozen=True, eq=False)
class ImageInput:
    """What matching needs of one image; `overlap` is (detections, objects)."""

    truth: Objects
    found: Detections
    overlap: NDArray[np.float64]


def record_of(unit: Unit, found: ImageDetections, spoken: Mapping[int, str]) -> Record:
    """The record of one image; `spoken` names the category ids of `found`."""
    content: InstanceImage = unit.payload
    objects = content.objects
    assert objects is not None
    names, table = together(list(content.categories.values()), list(spoken.values()))
    places = dict(zip(spoken, table.tolist(), strict=True))
    own = {category: place for place, category in enumerate(content.categories)}
    called = [places[category] for category in found.category_ids.tolist()]
    if content.iou == "segm":
        overlap = found.mask_overlap(objects)
    else:
        overlap = box_overlap(found.boxes, objects.boxes, objects.crowd)
    pairs = np.flatnonzero(overlap >= IOU_THRESHOLDS[0])
    return {
        "unit": unit.id,
        "context": content.context,
        "image_id": objects.id,
        "names": "\n".join(names),
        "known": len(own),
        "zero": own.get(0, -1),
        "object_labels": [own[category] for category in objects.category_ids.tolist()],
        "object_areas": objects.area.tolist(),
        "object_crowd": objects.crowd.astype(int).tolist(),
        "object_ids": objects.ids.tolist(),
        "labels": called,
        "scores": found.scores.tolist(),
        "areas": found.area(content.iou).tolist(),
        "pairs": pairs.tolist(),
        "overlaps": overlap.ravel()[pairs].tolist(),
        "detections": pack(found, called, content.iou) if content.keep_predictions else b"",
    }


def label_names(records: pl.DataFrame) -> list[str]:
    """The labels of a run."""
    return str(records["names"][0]).split("\n")


def in_one_vocabulary(runs: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """The records of several runs in one list of labels, without their pictures, which keep their own numbers.

    Scores stay what they are, to the last bit, as long as no two detections of an image have equal scores: such are
    settled by the number of their label, and other numbers may settle them otherwise.
    """
    import polars as pl

    lists, known = [label_names(records) for records in runs], [int(records["known"][0]) for records in runs]
    names, tables = one_list(lists, known)
    text = pl.lit("\n".join(names)).alias("names")

    def changed(records: pl.DataFrame, table: NDArray[np.int64]) -> pl.DataFrame:
        columns = [relabelled(records[name], lambda labels: table[labels]) for name in ("object_labels", "labels")]
        return records.drop("detections", strict=False).with_columns(*columns, text)

    return [changed(records, table) for records, table in zip(runs, tables, strict=True)]


def image_inputs(records: pl.DataFrame) -> list[ImageInput]:
    """Every record back as arrays."""
    return [_input(row) for row in records.iter_rows(named=True)]


def _input(row: Record) -> ImageInput:
    truth = Objects(row["object_labels"], area=row["object_areas"], crowd=row["object_crowd"], ids=row["object_ids"])
    found = Detections(row["labels"], row["scores"], area=row["areas"])
    overlap = np.zeros((len(found.classes), len(truth.classes)))
    overlap.ravel()[np.array(row["pairs"], np.int64)] = row["overlaps"]
    return ImageInput(truth, found, overlap)
