"""The report of open mIoU: the gain from similarity, per class and measure, with the confusions behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Record
from hardlook.harness.rounding import format_fixed
from hardlook.harness.scorecard import Scorecard
from hardlook.harness.sections import DotChart, Picture, Section, Spot, Table, score_dot
from hardlook.open_vocabulary.free_words import build_words_section, merge_named_words, read_merged
from hardlook.open_vocabulary.miou.evaluation import NO_LABEL, join_image_vocabularies, merge_classes, read_cells
from hardlook.open_vocabulary.miou.units import LabelledImage, prepare_unit
from hardlook.open_vocabulary.record_columns import blank_image, decode_label_map, read_label_names
from hardlook.open_vocabulary.sections import (
    add_warnings,
    build_class_chart,
    build_confusions_section,
    build_measures_section,
    build_slice_charts,
    find_scores_by_class,
    format_gain,
)
from hardlook.open_vocabulary.vocabulary import BACKGROUND

if TYPE_CHECKING:
    import polars as pl


def build_sections(records: pl.DataFrame, scorecard: Scorecard) -> Sequence[Section]:
    """The sections of the report that have content."""
    slices = {"kind": "Things and stuff", "context": "Contexts", "classes": "Sets of classes"}
    charts = build_slice_charts(scorecard, {"miou": "vanilla", "open-miou": "open"}, slices, "mIoU")
    sections = [
        _build_headline(scorecard),
        _build_classes(scorecard),
        build_measures_section(scorecard, "open-miou", "open mIoU", ("vanilla", "miou")),
        _build_confusions(
            merge_named_words(join_image_vocabularies(records), read_merged(scorecard), merge_classes), scorecard
        ),
        build_words_section(records, scorecard),
        Section("Slices", "", charts) if charts else None,
    ]
    return [section for section in sections if section is not None]


def draw_unit(unit: Unit, record: Record) -> Sequence[Picture]:
    """The image, the true map and the predicted one; the background is not drawn, so that the image shows through."""
    content: LabelledImage = prepare_unit(unit).payload
    assert content.truth_map is not None
    names = record["names"].split("\n")
    # A lookup table of what is drawn; the index -1 (no label) takes its last entry.
    drawn = np.array([*(-1 if name == BACKGROUND else row for row, name in enumerate(names)), -1], np.int32)
    image = content.image if content.image is not None else blank_image(*content.truth_map.shape)
    pictures = [Picture("image", image), Picture("truth", image, label_map=drawn[content.truth_map], label_names=names)]
    if record["prediction"]:
        predicted = drawn[decode_label_map(record["prediction"])]
        pictures.append(Picture("prediction", image, label_map=predicted, label_names=names))
    return pictures


def describe_unit(record: Record) -> str:
    r"""The share of right pixels and the largest confusion of one image.

    >>> record = {"labels": 2, "names": "cat\ndog", "cells": [0, 1, 4], "pixels": [6, 2, 2]}
    >>> describe_unit(record)
    '80.0 % of 10 labelled pixels are right; the largest confusion: cat called dog (2 pixels).'
    """
    names, width = [*str(record["names"]).split("\n"), NO_LABEL], int(record["labels"]) + 1
    cells = [
        (pixels, *divmod(cell, width))
        for pixels, cell in sorted(zip(record["pixels"], record["cells"], strict=True), reverse=True)
    ]
    total = sum(pixels for pixels, _, _ in cells)
    if not total:
        return "No pixel is labelled."
    right = sum(pixels for pixels, true, predicted in cells if true == predicted)
    text = f"{format_fixed(100 * right / total, 1)} % of {total:,} labelled pixels are right"
    wrong = next((cell for cell in cells if cell[1] != cell[2]), None)
    if wrong is None:
        return f"{text}."
    pixels, true, predicted = wrong
    return f"{text}; the largest confusion: {names[true]} called {names[predicted]} ({pixels:,} pixels)."


def _build_headline(scorecard: Scorecard) -> Section:
    titles = {"miou": "mIoU", "pixel-accuracy": "pixel accuracy", "mean-accuracy": "mean accuracy", "fw-iou": "fwIoU"}
    chart = DotChart(
        "Vanilla and open",
        "Vanilla counts every wrong label the same; open gives credit by the similarity of the two labels.",
        [
            score_dot(scorecard.get(f"{prefix}{name}"), word, title)
            for name, title in titles.items()
            for prefix, word in (("", "vanilla"), ("open-", "open"))
        ],
        axis="score",
    )
    text = (
        f"Similarity adds {format_gain(scorecard)} of mIoU: from {format_fixed(scorecard.get('miou').value, 3)} to "
        f"{format_fixed(scorecard.get('open-miou').value, 3)}. Similarity does not explain the remaining errors."
    )
    return Section("Gain from similarity", add_warnings(text, scorecard), (chart,))


def _build_classes(scorecard: Scorecard) -> Section:
    hard, soft = find_scores_by_class(scorecard, "iou"), find_scores_by_class(scorecard, "open-iou")
    names = [name for name in hard if name in soft]
    chart = build_class_chart("IoU", "vanilla", [Spot(hard[name].value, soft[name].value, name) for name in names])
    gains = {name: soft[name].value - hard[name].value for name in names}
    ranked = sorted((name for name in names if not np.isnan(gains[name])), key=lambda name: -gains[name])
    table = Table(
        "Each class",
        "Images: those that have the class in truth or prediction.",
        ("class", "vanilla IoU", "open IoU", "given back", "images"),
        [(name, hard[name].value, soft[name].value, gains[name], hard[name].n) for name in ranked],
    )
    return Section("Classes", "", (chart, table))


def _build_confusions(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    captions = (
        "Pixels of one label that were predicted as another, and the part of them that similarity does not excuse.",
        "The image with the most pixels of each confusion.",
    )
    names, cells = [*read_label_names(records), NO_LABEL], read_cells(records)

    def count_by_image(true: str, called: str) -> NDArray[Any]:
        selected = cells.cell == names.index(true) * len(names) + names.index(called)
        return np.bincount(cells.image[selected], cells.pixels[selected], minlength=cells.images)

    return build_confusions_section(scorecard, "confused-pixels", captions, records["unit"].to_list(), count_by_image)
