"""Closed mIoU of a semantic segmenter, by class and by context: the smallest complete benchmark.

Read it top to bottom as the example of how a benchmark is made: a card, a schema, and a few pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardlook.benchmarks.closed_miou.dataset import BACKGROUND, LabelledImage, list_images, read_unit, sources_of
from hardlook.benchmarks.closed_miou.options import ClosedMiouOptions, chosen_readings
from hardlook.benchmarks.closed_miou.pictures import encode_map, pictures_of
from hardlook.benchmarks.closed_miou.scores import score_images
from hardlook.benchmarks.closed_miou.sections import show
from hardlook.contract.benchmark import BenchmarkCard, Dial, ScoreMeaning, Unit
from hardlook.contract.records import Column, Record, RecordSchema
from hardlook.contract.scorecard import Reading, Scorecard
from hardlook.contract.sections import Picture, Section
from hardlook.errors import ModelError, OptionError
from hardlook.metrics.confusion import confusion_counts
from hardlook.models.roles import LabelMap

if TYPE_CHECKING:
    import polars as pl

CARD = BenchmarkCard(
    name="closed-miou",
    version="1",
    title="Closed mIoU, by class and context",
    summary="Semantic segmentation scored with one fixed list of labels: every wrong label counts the same.",
    role="semantic-segmenter",
    default_model="planted-segmenter",
    citation="Everingham et al., The Pascal Visual Object Classes Challenge, IJCV 2010 (the IoU of a class).",
    data_licence="the planted world: MIT; your own data: yours",
    scores=(
        ScoreMeaning("miou", "mIoU", "mean over classes of pixels hit / pixels true or predicted", headline=True),
        ScoreMeaning("pixel-accuracy", "pixel accuracy", "share of pixels with the right label"),
        ScoreMeaning("mean-accuracy", "mean accuracy", "mean over classes of the share of its pixels that is found"),
        ScoreMeaning("fw-iou", "fwIoU", "IoU of each class weighted by its share of the pixels"),
        ScoreMeaning("iou", "IoU", "pixels hit / pixels true or predicted, of one class"),
    ),
    dials=(
        Dial("a stranger's name", "planted-segmenter", lambda v: {"stranger": v}, "miou"),
        Dial("ragged borders", "planted-segmenter", lambda v: {"ragged": v}, "miou"),
        Dial(
            "sibling or stranger",
            "planted-segmenter",
            # The same half of all objects is misnamed at every setting; the dial only chooses by whose name.
            lambda v: {"sibling": 0.5 * v, "stranger": 0.5 * (1 - v)},
            "miou",
            moves=False,
        ),
    ),
    example="hardlook run closed-miou --model planted-segmenter --model-arg stranger=.2 --out runs/first",
)
SCHEMA = RecordSchema(
    (
        Column("context", "text", "where the scene takes place; empty where nobody said", "slice"),
        Column("truth", "text", "the file of the true map, or the scene of the planted world"),
        Column("labels", "int", "how many labels there are"),
        Column("cells", "ints", "true label * (labels + 1) + predicted label, where it occurs"),
        Column("pixels", "ints", "how many pixels each cell has"),
        Column("ignored", "int", "pixels that the truth leaves out"),
        Column("names", "text", "the labels, separated by line breaks"),
        Column("prediction", "bytes", "the predicted map as PNG, or empty", "picture"),
    )
)


class ClosedMiou:
    """The benchmark's functions."""

    card = CARD
    schema = SCHEMA
    options = ClosedMiouOptions

    def sources(self, options: ClosedMiouOptions) -> Mapping[str, Path | str]:
        """Folders and files, or the planted world."""
        return sources_of(options)

    def units(self, options: ClosedMiouOptions) -> Sequence[Unit]:
        """One unit an image."""
        return list_images(options)

    def prepare(self, unit: Unit) -> Unit:
        """Read image, truth and stored prediction."""
        return replace(unit, payload=read_unit(unit.payload, unit.id))

    def evaluate(self, units: Sequence[Unit], model: Any) -> Sequence[Record]:
        """Segment the images together, then count."""
        contents: list[LabelledImage] = [unit.payload for unit in units]
        if model is None:
            predictions = [_stored_map(content, unit.id) for content, unit in zip(contents, units, strict=True)]
        else:
            answers = model.segment([content.image for content in contents])
            names = [_translation(model.labels, content.labels) for content in contents]
            predictions = [_translate(answer, table) for answer, table in zip(answers, names, strict=True)]
        return [_record(unit, prediction) for unit, prediction in zip(units, predictions, strict=True)]

    def score(self, records: pl.DataFrame, options: ClosedMiouOptions) -> Scorecard:
        """All scores, from the counts alone."""
        return score_images(CARD, records, options)

    def readings(self, options: ClosedMiouOptions) -> tuple[Reading, ...]:
        """Which classes the mean runs over."""
        return chosen_readings(options)

    def sections(self, records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
        """Classes, contexts, confusions, images."""
        return show(records, scorecard)

    def pictures(self, unit: Unit, record: Record) -> Sequence[Picture]:
        """Image, truth and prediction."""
        return pictures_of(unit, record)


CLOSED_MIOU = ClosedMiou()


def _stored_map(content: LabelledImage, unit: str) -> LabelMap:
    if content.predicted_map is None:
        raise OptionError(
            "there is neither a model nor a stored prediction", unit=unit, remedy="give --model or --pred"
        )
    return content.predicted_map


def _record(unit: Unit, prediction: LabelMap) -> Record:
    content: LabelledImage = unit.payload
    truth = content.truth_map
    assert truth is not None
    if prediction.shape != truth.shape:
        raise ModelError(
            f"the model answered a map of {prediction.shape} for an image of {truth.shape} (height, width)",
            unit=unit.id,
            remedy="`hardlook check semantic-segmenter MODEL` shows what else does not fit",
        )
    classes = len(content.labels)
    counts = confusion_counts(truth, prediction, classes=classes, ignore=content.ignore).ravel()
    cells = np.flatnonzero(counts)
    return {
        "unit": unit.id,
        "context": content.context,
        "truth": str(content.truth_path or unit.id),
        "labels": classes,
        "cells": cells.tolist(),
        "pixels": counts[cells].tolist(),
        "ignored": int((truth == content.ignore).sum()),
        "names": "\n".join(content.labels),
        "prediction": encode_map(prediction) if content.keep_prediction else b"",
    }


def _translation(spoken: Sequence[str], known: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The model's label numbers in the data's numbering, and last what "no label" becomes.

    A word that the data does not know is its background, where it has one: a model that also knows the sky is right
    to see it there. Without a background it is no label at all, -1.
    """
    numbers = {_word(name): number for number, name in enumerate(known)}
    unknown = numbers.get(BACKGROUND, -1)
    table = [numbers.get(_word(name), unknown) for name in spoken]
    if all(number == unknown for number in table):
        raise ModelError(
            f"no label of the model ({', '.join(spoken[:4])}...) is a label of the data ({', '.join(known[:4])}...)",
            remedy="closed mIoU needs one vocabulary; rename the labels on either side",
        )
    return np.array([*table, unknown], np.int32)


def _translate(answer: LabelMap, table: np.ndarray[Any, np.dtype[np.int32]]) -> LabelMap:
    return table[np.where((answer < 0) | (answer >= len(table) - 1), len(table) - 1, answer)]


def _word(name: str) -> str:
    return " ".join(name.lower().replace("_", " ").replace("-", " ").split())
