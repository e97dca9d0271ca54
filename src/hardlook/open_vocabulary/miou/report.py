"""The report of open mIoU: the gain from similarity, per class and measure, with the confusions behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.harness.benchmark import Unit
from hardlook.harness.records import Record
from hardlook.harness.scorecard import Scorecard
from hardlook.harness.sections import DotChart, Example, Picture, Section, Spot, Table, score_dot
from hardlook.open_vocabulary.miou.evaluation import NO_LABEL, read_cells
from hardlook.open_vocabulary.miou.units import LabelledImage, prepare_unit
from hardlook.open_vocabulary.pictures import blank_image, decode_label_map
from hardlook.open_vocabulary.record_columns import read_label_names
from hardlook.open_vocabulary.sections import (
    MOST_EXAMPLES,
    Confusion,
    LabelPair,
    build_class_chart,
    build_confusions_section,
    build_measures_section,
    build_slice_charts,
    find_confusions,
    format_gain,
    scores_by_class,
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
        _build_confusions(records, scorecard),
        Section("Slices", "", charts) if charts else None,
    ]
    return [section for section in sections if section is not None]


def draw_unit(unit: Unit, record: Record) -> Sequence[Picture]:
    """The image, the true map and the predicted one; the background is not drawn, so that the image is seen."""
    content: LabelledImage = prepare_unit(unit).payload
    assert content.truth_map is not None
    names = record["names"].split("\n")
    # -1, no label, is the last entry.
    drawn = np.array([*(-1 if name == BACKGROUND else row for row, name in enumerate(names)), -1], np.int32)
    image = content.image if content.image is not None else blank_image(*content.truth_map.shape)
    pictures = [
        Picture("image", image),
        Picture("truth", image, label_map=drawn[content.truth_map], label_names=names),
    ]
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
    text = f"{100 * right / total:.1f} % of {total:,} labelled pixels are right"
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
        f"Similarity adds {format_gain(scorecard)} of mIoU: from {scorecard.get('miou').value:.3f} to "
        f"{scorecard.get('open-miou').value:.3f}. The remaining errors are more than a choice of words."
    )
    return Section("Gain from similarity", text, (chart,))


def _build_classes(scorecard: Scorecard) -> Section:
    hard, soft = scores_by_class(scorecard, "iou"), scores_by_class(scorecard, "open-iou")
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
    confusions = find_confusions(scorecard, "confused-pixels", "unforgiven-pixels")
    if not confusions:
        return None
    captions = (
        "Pixels of one label that were predicted as another, and the part of them that similarity does not excuse.",
        "The image with the most pixels of each confusion.",
    )
    return build_confusions_section(confusions, "pixels", captions, _find_examples(records, confusions))


def _find_examples(records: pl.DataFrame, confusions: Mapping[LabelPair, Confusion]) -> list[Example]:
    names, cells = [*read_label_names(records), NO_LABEL], read_cells(records)
    examples: dict[str, Example] = {}
    for (true, called), confusion in list(confusions.items())[:MOST_EXAMPLES]:
        meant = cells.cell == names.index(true) * len(names) + names.index(called)
        pixels = np.bincount(cells.image[meant], cells.pixels[meant], minlength=cells.images)
        unit = records["unit"][int(np.argmax(pixels))]
        text = f"{true} called {called} (similarity {confusion.similarity:.2f}): {pixels.max():,.0f} pixels."
        examples.setdefault(unit, Example(unit, text))
    return list(examples.values())
