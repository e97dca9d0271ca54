"""Records of label maps: the confusion counts of an image, as the cells that are not zero.

All scores come from these integers: closed and open, of any subset of images, under any similarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Column, Record, RecordSchema
from hardlook.metrics.confusion import PairCounts
from hardlook.models.answer_checks import check_answers, has_free_words
from hardlook.models.roles import LabelMap
from hardlook.open_vocabulary.free_words import check_words, flatten_tables, join_image_names, name_phrases
from hardlook.open_vocabulary.label_similarity import MAX_MATRIX_LABELS
from hardlook.open_vocabulary.miou.units import LabelledImage
from hardlook.open_vocabulary.record_columns import encode_label_map, flatten_column, read_label_names, relabel_column
from hardlook.open_vocabulary.units import require_stored
from hardlook.open_vocabulary.vocabulary import join_labels, join_run_labels, relabel_map

if TYPE_CHECKING:
    import polars as pl

NO_LABEL = "(no such label)"

# Up to this many classes a table of one image is quicker to fill and to read than a list of its pairs.
MAX_IMAGE_CLASSES = 1024

SCHEMA = RecordSchema(
    (
        Column("context", "text", "where the scene takes place; empty where it is not known", "slice"),
        Column("truth", "text", "the file of the true map, or the scene of the planted world"),
        Column("labels", "int", "how many labels there are, those of the truth first"),
        Column("cells", "ints", "true label * (labels + 1) + predicted label, where it occurs"),
        Column("pixels", "ints", "how many pixels each cell has"),
        Column("ignored", "int", "pixels that the truth leaves out"),
        Column("names", "text", "the labels, separated by line breaks"),
        Column("unknown_numbers", "ints", "numbers of the stored prediction that are no label", default=[]),
        Column("unknown_pixels", "ints", "how many pixels each of these numbers has", default=[]),
        Column("missing_labels", "text", "labels of the data that the predictions lack, by line", default=""),
        Column("phrases", "text", "free words: phrase, class and rule, tabs between, line by line", default=""),
        Column("prediction", "bytes", "the predicted map as PNG, or empty", "picture"),
    )
)


def evaluate_units(units: Sequence[Unit], model: Any) -> list[Record]:
    """Segment the images as one batch and count pixels, in the joint vocabulary of truth and model."""
    records = []
    for unit, (predicted, labels) in zip(units, predict_maps(units, model), strict=True):
        senses = unit.payload.pred_senses
        if senses is None:
            names, table = join_labels(unit.payload.labels, labels)
            records.append(make_record(unit, relabel_map(predicted, table), names))
        else:
            used = np.unique(predicted[predicted >= 0]).tolist()
            words = name_phrases(unit.payload.labels, labels, used, senses)
            record = make_record(unit, relabel_map(predicted, words.table), words.names)
            records.append({**record, "phrases": words.lines})
    return records


def predict_maps(units: Sequence[Unit], model: Any) -> list[tuple[LabelMap, tuple[str, ...]]]:
    """The predicted or stored map of each unit, and the labels or phrases that its numbers are indices into."""
    if model is not None:
        check_words(units, model)
        images, ids = [unit.payload.image for unit in units], [unit.id for unit in units]
        maps = check_answers("semantic-segmenter", model, model.segment(images), images, ids)
        if has_free_words(model):
            return [(found.answer, tuple(found.phrases)) for found in maps]
        return [(predicted, tuple(model.labels)) for predicted in maps]
    return [(require_stored(unit.payload.predicted_map, unit), unit.payload.predicted_labels) for unit in units]


def make_record(unit: Unit, prediction: LabelMap, names: tuple[str, ...]) -> Record:
    """The record of one image; `prediction` (H, W) holds indices into `names`, or -1."""
    content: LabelledImage = unit.payload
    truth = content.truth_map
    assert truth is not None
    counts = PairCounts(len(names), ignore=-1, most_in_table=MAX_IMAGE_CLASSES)
    counts.add(truth, prediction)
    cells, pixels = counts.cells()
    return {
        "unit": unit.id,
        "context": content.context,
        "truth": str(content.truth_path or unit.id),
        "labels": len(names),
        "cells": cells.tolist(),
        "pixels": pixels.tolist(),
        "ignored": int((truth < 0).sum()),
        "names": "\n".join(names),
        "unknown_numbers": list(content.unknown_numbers),
        "unknown_pixels": list(content.unknown_numbers.values()),
        "missing_labels": "",
        "phrases": "",
        "prediction": encode_label_map(prediction) if content.keep_prediction else b"",
    }


@dataclass(frozen=True)
class Cells:
    """Non-zero cells (n,) of all images; `cell` is true label * (labels + 1) + predicted label, `labels` for none."""

    image: NDArray[np.int64]
    cell: NDArray[np.int64]
    pixels: NDArray[np.int64]
    images: int
    labels: int

    @property
    def true(self) -> NDArray[np.int64]:
        """(n,) true labels."""
        return self.cell // (self.labels + 1)

    @property
    def predicted(self) -> NDArray[np.int64]:
        """(n,) predicted labels."""
        return self.cell % (self.labels + 1)


def read_cells(records: pl.DataFrame) -> Cells:
    """The cells of all records, one after another."""
    lengths = records["cells"].list.len().to_numpy()
    image = np.repeat(np.arange(len(records)), lengths)
    cells, pixels = flatten_column(records["cells"]), flatten_column(records["pixels"])
    return Cells(image, cells, pixels, len(records), int(records["labels"][0]))


def sum_pairs(records: pl.DataFrame) -> PairCounts:
    """The counts of all pairs of labels, summed over the records."""
    cells = read_cells(records)
    pairs = PairCounts(cells.labels, ignore=None, most_in_table=MAX_MATRIX_LABELS)
    pairs.add_cells(cells.cell, cells.pixels)
    return pairs


def count_pixels(records: pl.DataFrame) -> NDArray[np.int64]:
    """(N, 3, K) pixels hit, true and predicted of each image and class."""
    cells = read_cells(records)
    counts = np.zeros((cells.images, 3, cells.labels), np.int64)
    true, predicted = cells.true, cells.predicted
    hit, labelled = true == predicted, predicted < cells.labels
    np.add.at(counts[:, 0], (cells.image[hit], true[hit]), cells.pixels[hit])
    np.add.at(counts[:, 1], (cells.image, true), cells.pixels)
    np.add.at(counts[:, 2], (cells.image[labelled], predicted[labelled]), cells.pixels[labelled])
    return counts


def merge_vocabularies(runs: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """The records of several runs relabelled into one vocabulary, without pictures, which keep their own numbers.

    Counts of every image and class stay equal to the last bit; means over classes can differ in the last digit, since
    floats are then added with other zeros between them.
    """
    runs = [join_image_vocabularies(records) for records in runs]
    truth_counts = [int(read_cells(records).true.max(initial=-1)) + 1 for records in runs]
    names, tables = join_run_labels([read_label_names(records) for records in runs], truth_counts)
    if len(names) > MAX_MATRIX_LABELS:
        used = np.zeros(len(names), np.bool_)
        for records, table in zip(runs, tables, strict=True):
            used[table[_find_used(records)]] = True
        names, tables = _keep(names, tables, used)
    return [_relabel(records, table, names) for records, table in zip(runs, tables, strict=True)]


def join_image_vocabularies(records: pl.DataFrame) -> pl.DataFrame:
    """The records in one vocabulary, where images with free words have their own; without pictures then."""
    import polars as pl

    joined = join_image_names(records)
    if joined is None:
        return records
    names, tables = joined
    widths = records["labels"].to_numpy()
    # The last entry of a row's table is "no label".
    padded = [np.append(table, len(names)) for table in tables]
    lengths = records["cells"].list.len().to_numpy()
    flat, start = flatten_tables(padded, lengths)
    old, new = np.repeat(widths, lengths) + 1, len(names) + 1
    cells = relabel_column(records["cells"], lambda cell: flat[start + cell // old] * new + flat[start + cell % old])
    shared = [pl.lit("\n".join(names)).alias("names"), pl.lit(len(names), pl.Int64).alias("labels")]
    return records.drop("prediction", strict=False).with_columns(cells, *shared)


def merge_classes(records: pl.DataFrame, table: NDArray[np.int64], *, keep: bool) -> pl.DataFrame:
    """The records with class k counted as class `table[k]`, cells that fall together summed.

    With `keep`, classes that are merged into others stay in the list of names, without a pixel.
    """
    names = read_label_names(records)
    if (table == np.arange(len(names))).all():
        return records
    kept, places = tuple(names), table
    if not keep:
        kept, (places,) = _keep(names, [table], np.isin(np.arange(len(names)), table))
    return _sum_equal_cells(_relabel(records, places, kept))


def _sum_equal_cells(records: pl.DataFrame) -> pl.DataFrame:
    """The records with each cell once per image, ascending."""
    import polars as pl

    cells, width = read_cells(records), (int(records["labels"][0]) + 1) ** 2
    keys, places = np.unique(cells.image * width + cells.cell, return_inverse=True)
    pixels = np.zeros(len(keys), np.int64)
    np.add.at(pixels, places, cells.pixels)
    flat = pl.DataFrame({"row": keys // width, "cells": keys % width, "pixels": pixels})
    summed = flat.group_by("row", maintain_order=True).agg("cells", "pixels")
    rows = pl.DataFrame({"row": np.arange(len(records), dtype=np.int64)})
    filled = rows.join(summed, on="row", how="left", maintain_order="left")
    empty = pl.lit([], pl.List(pl.Int64))
    return records.with_columns(
        *(filled.select(pl.coalesce(name, empty).alias(name)).to_series() for name in ("cells", "pixels"))
    )


def keep_used_labels(records: pl.DataFrame) -> pl.DataFrame:
    """The records in a vocabulary without the labels that occur nowhere, where there are more than 4,096 labels."""
    names = read_label_names(records)
    if len(names) <= MAX_MATRIX_LABELS:
        return records
    used = np.zeros(len(names), np.bool_)
    used[_find_used(records)] = True
    kept, (table,) = _keep(names, [np.arange(len(names))], used)
    return _relabel(records, table, kept)


def _find_used(records: pl.DataFrame) -> NDArray[np.int64]:
    cells = read_cells(records)
    used = np.union1d(cells.true, cells.predicted)
    return used[used < cells.labels]


def _keep(
    names: Sequence[str], tables: Sequence[NDArray[np.int64]], used: NDArray[np.bool_]
) -> tuple[tuple[str, ...], list[NDArray[np.int64]]]:
    """The names that are used, and the tables of places among them."""
    places = np.cumsum(used) - 1
    return tuple(name for name, kept in zip(names, used.tolist(), strict=True) if kept), [places[t] for t in tables]


def _relabel(records: pl.DataFrame, table: NDArray[np.int64], names: Sequence[str]) -> pl.DataFrame:
    """The records without pictures, label k as `table[k]`, an index into `names`."""
    import polars as pl

    old, new = len(table) + 1, len(names) + 1
    predicted = np.append(table, len(names))  # the last entry is "no label"
    cells = relabel_column(records["cells"], lambda cell: table[cell // old] * new + predicted[cell % old])
    shared = [pl.lit("\n".join(names)).alias("names"), pl.lit(len(names), pl.Int64).alias("labels")]
    return records.drop("prediction", strict=False).with_columns(cells, *shared)
