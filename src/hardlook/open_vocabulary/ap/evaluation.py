"""Records of open AP: classes, areas and scores of an image, and the overlaps that can become matches.

Matching is greedy and cheap, so it is done when scores are made: one record serves every similarity, every set of
classes, every reading and any number of detections. Overlaps below .5 match at no threshold and are not kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.data import rle
from hardlook.data.coco_detection import ImageDetections, IouType
from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.metrics.detection import Detections, Objects, box_overlap
from hardlook.metrics.detection_matching import IOU_THRESHOLDS
from hardlook.models.answer_checks import check_answers, has_free_words
from hardlook.models.roles import Instances
from hardlook.open_vocabulary.ap.units import InstanceImage
from hardlook.open_vocabulary.free_words import check_words, flatten_tables, join_image_names, name_phrases
from hardlook.open_vocabulary.label_similarity import make_own_labels
from hardlook.open_vocabulary.record_columns import read_label_names, relabel_column
from hardlook.open_vocabulary.units import require_stored
from hardlook.open_vocabulary.vocabulary import join_labels, join_run_labels
from hardlook.similarity.labels import LabelSet

if TYPE_CHECKING:
    import polars as pl

MAX_KEPT = 12
LABEL_COLUMNS = ("object_labels", "labels", "negative_labels", "partial_labels")

SCHEMA = RecordSchema(
    (
        Column("context", "text", "where the scene takes place; empty where it is not known", "slice"),
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
        Column("protocol", "text", "lvis where only some classes of an image are annotated, else coco", default="coco"),
        Column("negative_labels", "ints", "LVIS: labels that are known to be absent from the image", default=[]),
        Column("partial_labels", "ints", "LVIS: labels whose objects are not all annotated", default=[]),
        Column("frequencies", "text", "LVIS: r, c or f of each of the truth's labels, - for none", default=""),
        Column("senses", "text", "LVIS: label and synset of its json, a tab between, line by line", default=""),
        Column("phrases", "text", "free words: phrase, class and rule, tabs between, line by line", default=""),
        Column("detections", "bytes", "the best detections as JSON, or empty", "picture"),
    )
)


def evaluate_units(units: Sequence[Unit], model: Any) -> list[Record]:
    """Detect objects in the images as one batch and measure overlaps, in the joint vocabulary of truth and model."""
    predictions = predict_detections(units, model)
    return [make_record(unit, found, names) for unit, (found, names) in zip(units, predictions, strict=True)]


def predict_detections(units: Sequence[Unit], model: Any) -> list[tuple[ImageDetections, Mapping[int, str]]]:
    """The predicted or stored detections of each unit, and the names or phrases of their category ids."""
    if model is not None:
        check_words(units, model)
        images, ids = [unit.payload.image for unit in units], [unit.id for unit in units]
        answers = check_answers("instance-segmenter", model, model.detect(images), images, ids)
        if has_free_words(model):
            return [
                (_to_detections(found.answer, unit), dict(enumerate(found.phrases)))
                for found, unit in zip(answers, units, strict=True)
            ]
        names = dict(enumerate(model.labels))
        return [(_to_detections(answer, unit), names) for answer, unit in zip(answers, units, strict=True)]
    return [(require_stored(unit.payload.stored, unit), unit.payload.predicted_categories) for unit in units]


def _to_detections(answer: Instances, unit: Unit) -> ImageDetections:
    """The model's answer as a results file would hold it, so that both are scored by the same code."""
    content: InstanceImage = unit.payload
    objects = content.objects
    assert objects is not None
    masks, boxes = np.asarray(answer.masks, bool), np.asarray(answer.boxes, np.float64)
    scores, called = np.asarray(answer.scores, np.float64), np.asarray(answer.labels, np.int64)
    sides = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
    counts = tuple(rle.encode(mask)["counts"] for mask in masks) if content.iou == "segm" else ()
    return ImageDetections(objects.id, objects.width, objects.height, called, scores, sides, counts)


def make_record(unit: Unit, found: ImageDetections, categories: Mapping[int, str]) -> Record:
    """The record of one image; `categories` names the category ids of the detections `found`."""
    content: InstanceImage = unit.payload
    objects = content.objects
    assert objects is not None
    names, table, lines = _join_categories(content, found, categories)
    true_labels = {category: label for label, category in enumerate(content.categories)}
    predicted_labels = dict(zip(categories, table.tolist(), strict=True))
    labels = [predicted_labels[category] for category in found.category_ids.tolist()]
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
        "known": len(true_labels),
        "zero": true_labels.get(0, -1),
        "object_labels": [true_labels[category] for category in objects.category_ids.tolist()],
        "object_areas": objects.area.tolist(),
        "object_crowd": objects.crowd.astype(int).tolist(),
        "object_ids": objects.ids.tolist(),
        "labels": labels,
        "scores": found.scores.tolist(),
        "areas": found.area(content.iou).tolist(),
        "pairs": pairs.tolist(),
        "overlaps": overlap.ravel()[pairs].tolist(),
        "protocol": "coco" if objects.negative_ids is None else "lvis",
        "negative_labels": _to_labels(objects.negative_ids, true_labels),
        "partial_labels": _to_labels(objects.not_exhaustive_ids, true_labels),
        "frequencies": "".join(content.frequencies.get(one, "-") for one in true_labels) if content.frequencies else "",
        "senses": "\n".join(f"{content.categories[one]}\t{sense}" for one, sense in content.synsets.items()),
        "phrases": lines,
        "detections": encode_detections(found, labels, content.iou) if content.keep_predictions else b"",
    }


def _join_categories(
    content: InstanceImage, found: ImageDetections, categories: Mapping[int, str]
) -> tuple[tuple[str, ...], NDArray[np.int32], str]:
    """The image's labels, the place of each predicted category among them, and what free words were taken for."""
    true_names, predicted = list(content.categories.values()), list(categories.values())
    if content.pred_senses is None:
        return *join_labels(true_names, predicted), ""
    places = {category: place for place, category in enumerate(categories)}
    used = {places[category] for category in found.category_ids.tolist()}
    words = name_phrases(true_names, predicted, used, content.pred_senses)
    return words.names, words.table, words.lines


def _to_labels(category_ids: NDArray[np.int64] | None, labels: Mapping[int, int]) -> list[int]:
    return [] if category_ids is None else [labels[category] for category in category_ids.tolist()]


def encode_detections(found: ImageDetections, labels: Sequence[int], iou: IouType) -> bytes:
    """The best detections as JSON rows of label (index of a name), score, and mask as RLE or x, y, width, height."""
    best = np.argsort(-found.scores, kind="stable")[:MAX_KEPT].tolist()
    regions: Sequence[Any] = found.counts if iou == "segm" else found.boxes.tolist()
    rows = [[labels[row], float(found.scores[row]), regions[row]] for row in best]
    return json.dumps(rows, separators=(",", ":")).encode()


def read_image_inputs(
    records: pl.DataFrame, *, federated: bool = False
) -> list[tuple[Objects, Detections, NDArray[np.float64]]]:
    """What matching needs of each image: objects, detections, and their overlap (detections, objects).

    With `federated` the objects hold LVIS's lists of classes.
    """
    inputs = []
    for row in records.iter_rows(named=True):
        truth = Objects(
            row["object_labels"], area=row["object_areas"], crowd=row["object_crowd"], ids=row["object_ids"],
            negative=row["negative_labels"] if federated else None,
            not_exhaustive=row["partial_labels"] if federated else None,
        )  # fmt: skip
        found = Detections(row["labels"], row["scores"], area=row["areas"])
        overlap = np.zeros((len(found.classes), len(truth.classes)))
        overlap.ravel()[np.array(row["pairs"], np.int64)] = row["overlaps"]
        inputs.append((truth, found, overlap))
    return inputs


def read_own_labels(records: pl.DataFrame) -> LabelSet | None:
    """The labels with the senses that the data's json states; None where it states none."""
    lines = str(records["senses"][0]).split("\n")
    return make_own_labels(dict(line.split("\t", 1) for line in lines if line))


def merge_vocabularies(runs: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """The records of several runs relabelled into one vocabulary, without pictures, which keep their own numbers.

    Scores stay equal to the last bit as long as no two detections of an image have equal scores: ties are broken by
    label number, and new numbers may break them differently.
    """
    runs = [join_image_vocabularies(records) for records in runs]
    truth_counts = [int(records["known"][0]) for records in runs]
    names, tables = join_run_labels([read_label_names(records) for records in runs], truth_counts)
    return [_relabel(records, [table] * len(records), names) for records, table in zip(runs, tables, strict=True)]


def join_image_vocabularies(records: pl.DataFrame) -> pl.DataFrame:
    """The records in one vocabulary, where images with free words have their own; without pictures then."""
    joined = join_image_names(records)
    return records if joined is None else _relabel(records, joined[1], joined[0])


def merge_classes(records: pl.DataFrame, table: NDArray[np.int64], *, keep: bool) -> pl.DataFrame:
    """The records with class k counted as class `table[k]`; with `keep`, merged classes stay in the list of names."""
    names = read_label_names(records)
    own = table == np.arange(len(names))
    if own.all():
        return records
    if keep:
        return _relabel(records, [table] * len(records), names)
    kept = [name for name, is_own in zip(names, own.tolist(), strict=True) if is_own]
    return _relabel(records, [(np.cumsum(own) - 1)[table]] * len(records), kept)


def _relabel(records: pl.DataFrame, tables: Sequence[NDArray[np.int64]], names: Sequence[str]) -> pl.DataFrame:
    """The records without pictures, label k of a row as `tables[row][k]`, an index into `names`."""
    import polars as pl

    columns = []
    for name in LABEL_COLUMNS:
        flat, start = flatten_tables(tables, records[name].list.len().to_numpy())
        columns.append(relabel_column(records[name], partial(_look_up, flat, start)))
    return records.drop("detections", strict=False).with_columns(*columns, pl.lit("\n".join(names)).alias("names"))


def _look_up(flat: NDArray[np.int64], start: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(flat[start + labels])
