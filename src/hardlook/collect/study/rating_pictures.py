"""Pictures to rate: the images of a finished open-miou run, painted with what the model said.

A picture's value under a measure is its open mIoU over the true labels in it, counted anew from the run's records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.open_labels.matrix import named_labels
from hardlook.benchmarks.semantic_images.qualities import per_image_open_miou
from hardlook.benchmarks.semantic_images.records import label_names
from hardlook.benchmarks.semantic_images.vocabulary import BACKGROUND
from hardlook.collect.study.painted_labels import painted_labels
from hardlook.collect.study.pictures import write_picture
from hardlook.collect.study.rating_tasks import DrawnThings, Rated, left_out
from hardlook.collect.study.spread_draws import spread_draw
from hardlook.contract.records import Record
from hardlook.errors import OptionError, RunError
from hardlook.labels.label_set import LabelSet
from hardlook.labels.load import load_label_set
from hardlook.randomness import generator
from hardlook.runs.folder import RunFolder
from hardlook.runs.scoring import ScoredRun, score_run

if TYPE_CHECKING:
    from hardlook.benchmarks.open_miou.options import OpenMiouOptions

BENCHMARK = "open-miou"
Similarities = Callable[[LabelSet], Mapping[str, NDArray[np.float64]]]


def draw_pictures(folder: Path, run: Path, similarities: Similarities, count: int, seed: int = 0) -> DrawnThings:
    """Draw images of the run in the folder `run`, paint and write them into the study `folder`.

    `similarities` gives the (K, K) similarity of K labels by measure. Images are drawn like pairs: with the values of
    every measure spread. Images without a labelled pixel, or whose prediction the run did not keep, are left out.
    """
    scored = _read(run)
    options = cast("OpenMiouOptions", scored.options)
    sets = [load_label_set(name, options.variant) for name in (options.labels, options.pred_labels) if name]
    matrices = similarities(named_labels(label_names(scored.records), sets))
    values = np.stack([per_image_open_miou(scored.records, matrix) for matrix in matrices.values()])
    names: list[str] = scored.records["unit"].to_list()
    labelled = np.flatnonzero(np.isfinite(values).all(axis=0))
    rng = generator(seed, "rating pictures", scored.manifest["answers"]["fingerprint"], count)
    drawn = [int(labelled[at]) for at in spread_draw(values[:, labelled], count, rng)]
    records = scored.whole_records([names[row] for row in drawn])
    units = {unit.id: unit for unit in scored.benchmark.units(scored.options) if unit.id in records}
    things = []
    for row in drawn:
        record = records[names[row]]
        pictures = scored.benchmark.pictures(units[names[row]], record)
        image = write_picture(folder, "images", painted_labels(pictures[-1]))
        said = {name: float(value) for name, value in zip(matrices, values[:, row], strict=True)}
        things.append(Rated(f"picture/{names[row]}", "picture", said_labels(record), said, image))
    empty = [name for row, name in enumerate(names) if row not in set(labelled.tolist())]
    notes = left_out("images", "no pixel of them is labelled", empty)
    notes += left_out("images", "the run has no answer for them", scored.failures["unit"].to_list())
    return DrawnThings(tuple(things), len(labelled), tuple(notes))


def said_labels(record: Record) -> tuple[str, ...]:
    r"""(true labels in one text, then each predicted label), by how many pixels each has, without the background.

    >>> said_labels({"names": "cat\nsofa\ndog", "labels": 3, "cells": [2, 5, 6], "pixels": [9, 4, 1]})
    ('cat, sofa', 'dog', 'sofa')
    """
    names, width = str(record["names"]).split("\n"), int(record["labels"]) + 1
    cells = list(zip(record["cells"], record["pixels"], strict=True))
    true = _by_size(names, [(cell // width, pixels) for cell, pixels in cells])
    predicted = _by_size(names, [(cell % width, pixels) for cell, pixels in cells])
    return (", ".join(true) or BACKGROUND, *(predicted or [BACKGROUND]))


def _by_size(names: Sequence[str], cells: Sequence[tuple[int, int]]) -> list[str]:
    sizes: dict[str, int] = {}
    for label, pixels in cells:
        # The column after the last label means no label at all.
        if label < len(names) and names[label] != BACKGROUND:
            sizes[names[label]] = sizes.get(names[label], 0) + pixels
    return sorted(sizes, key=lambda name: (-sizes[name], name))


def _read(path: Path) -> ScoredRun:
    folder = RunFolder(path)
    benchmark = folder.read_manifest()["benchmark"]["name"]
    if benchmark != BENCHMARK:
        raise RunError(
            f"this is a run of {benchmark}, which knows no labels to rate", file=path, remedy=f"run {BENCHMARK} first"
        )
    # The intervals of its scores are not needed here.
    scored = score_run(folder, {"resamples": 0})
    options: Any = scored.options
    if options.gt and "images" not in options.data:
        raise OptionError(
            "the run knows label maps and no images, so there is nothing to look at",
            file=path,
            remedy="run it again with --data images=DIR",
        )
    if not options.keep_predictions:
        raise OptionError("the run did not keep its predictions", file=path, remedy="run it again with them")
    return scored
