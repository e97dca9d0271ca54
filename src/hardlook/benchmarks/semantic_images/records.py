"""Records of label maps: the confusion counts of an image, as the cells that are not zero.

All scores come from these integers: closed and open, of any subset of images, under any similarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.semantic_images.dataset import LabelledImage
from hardlook.benchmarks.semantic_images.one_vocabulary import one_list, relabelled
from hardlook.benchmarks.semantic_images.pictures import encode_map
from hardlook.contract.benchmark import Unit
from hardlook.contract.records import Column, Record, RecordSchema
from hardlook.errors import ModelError
from hardlook.metrics.confusion import confusion_counts
from hardlook.models.roles import LabelMap

if TYPE_CHECKING:
    import polars as pl

SCHEMA = RecordSchema(
    (
        Column("context", "text", "where the scene takes place; empty where nobody said", "slice"),
        Column("truth", "text", "the file of the true map, or the scene of the planted world"),
        Column("labels", "int", "how many labels there are, those of the truth first"),
        Column("cells", "ints", "true label * (labels + 1) + predicted label, where it occurs"),
        Column("pixels", "ints", "how many pixels each cell has"),
        Column("ignored", "int", "pixels that the truth leaves out"),
        Column("names", "text", "the labels, separated by line breaks"),
        Column("prediction", "bytes", "the predicted map as PNG, or empty", "picture"),
    )
)


def record_of(unit: Unit, prediction: LabelMap, names: tuple[str, ...]) -> Record:
    """The record of one image; `prediction` (H, W) holds indices into `names`, or -1."""
    content: LabelledImage = unit.payload
    truth = content.truth_map
    assert truth is not None
    if prediction.shape != truth.shape:
        raise ModelError(
            f"the model answered a map of {prediction.shape} for an image of {truth.shape} (height, width)",
            unit=unit.id,
            remedy="`hardlook check semantic-segmenter MODEL` shows what else does not fit",
        )
    counts = confusion_counts(truth, prediction, classes=len(names), ignore=-1).ravel()
    cells = np.flatnonzero(counts)
    return {
        "unit": unit.id,
        "context": content.context,
        "truth": str(content.truth_path or unit.id),
        "labels": len(names),
        "cells": cells.tolist(),
        "pixels": counts[cells].tolist(),
        "ignored": int((truth < 0).sum()),
        "names": "\n".join(names),
        "prediction": encode_map(prediction) if content.keep_prediction else b"",
    }


@dataclass(frozen=True)
class Cells:
    """The non-zero cells of all images: `image`, `cell` and `pixels` (n,), of `images` images and `labels` labels."""

    image: NDArray[np.int64]
    cell: NDArray[np.int64]
    pixels: NDArray[np.int64]
    images: int
    labels: int


def label_names(records: pl.DataFrame) -> list[str]:
    """The labels of a run."""
    return str(records["names"][0]).split("\n")


def cells_of(records: pl.DataFrame) -> Cells:
    """The cells of all records, one after another."""
    lengths = records["cells"].list.len().to_numpy()
    image = np.repeat(np.arange(len(records)), lengths)
    labels = int(records["labels"][0])
    return Cells(image, _values(records["cells"]), _values(records["pixels"]), len(records), labels)


def confusion_of(records: pl.DataFrame) -> NDArray[np.int64]:
    """(K, K + 1) counts summed over the records."""
    cells = cells_of(records)
    flat = np.zeros(cells.labels * (cells.labels + 1), np.int64)
    np.add.at(flat, cells.cell, cells.pixels)
    return flat.reshape(cells.labels, cells.labels + 1)


def image_counts(records: pl.DataFrame) -> NDArray[np.int64]:
    """(N, 3, K) pixels hit, true and predicted of each image and class."""
    cells = cells_of(records)
    counts = np.zeros((cells.images, 3, cells.labels), np.int64)
    true, predicted = cells.cell // (cells.labels + 1), cells.cell % (cells.labels + 1)
    hit, named = true == predicted, predicted < cells.labels
    np.add.at(counts[:, 0], (cells.image[hit], true[hit]), cells.pixels[hit])
    np.add.at(counts[:, 1], (cells.image, true), cells.pixels)
    np.add.at(counts[:, 2], (cells.image[named], predicted[named]), cells.pixels[named])
    return counts


def in_one_vocabulary(runs: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """The records of several runs in one list of labels, without their pictures, which keep their own numbers.

    Counts of every image and class stay what they are, to the last bit; means over classes can differ in the last
    digit, since floats are then added with other zeros between them.
    """
    import polars as pl

    lists = [label_names(records) for records in runs]
    cells = [cells_of(records) for records in runs]
    largest = [int((one.cell // (one.labels + 1)).max(initial=-1)) for one in cells]
    names, tables = one_list(lists, [label + 1 for label in largest])
    text, width = pl.lit("\n".join(names)).alias("names"), len(names) + 1

    def changed(records: pl.DataFrame, table: NDArray[np.int64]) -> pl.DataFrame:
        old = len(table) + 1
        places = np.append(table, len(names))  # last, "no such label"
        column = relabelled(records["cells"], lambda cell: table[cell // old] * width + places[cell % old])
        count = pl.lit(len(names), pl.Int64).alias("labels")
        return records.drop("prediction", strict=False).with_columns(column, count, text)

    return [changed(records, table) for records, table in zip(runs, tables, strict=True)]


def _values(lists: pl.Series) -> NDArray[np.int64]:
    # An empty list explodes to a null.
    return lists.explode().drop_nulls().to_numpy().astype(np.int64)
