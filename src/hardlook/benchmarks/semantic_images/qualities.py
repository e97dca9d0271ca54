"""Single images: how well each was segmented, and what went wrong on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.semantic_images.records import cells_of, image_counts
from hardlook.contract.records import Record
from hardlook.metrics.mean_iou import mean_iou
from hardlook.metrics.soft_counts import soft_counts_by_image

if TYPE_CHECKING:
    import polars as pl

NO_LABEL = "(no such label)"
# Counts of images at a time, images x labels: a bound on memory.
MOST_COUNTS = 2**20


def image_qualities(records: pl.DataFrame) -> pl.DataFrame:
    """`unit` and `image-miou`."""
    import polars as pl

    return pl.DataFrame({"unit": records["unit"], "image-miou": per_image_miou(records)})


def per_image_miou(records: pl.DataFrame) -> NDArray[np.float64]:
    """(N,) mIoU of each image by itself, over its true classes; NaN without a labelled pixel."""
    return np.concatenate([np.zeros(0), *(mean_iou(image_counts(part), "gt-only") for part in _parts(records))])


def per_image_open_miou(records: pl.DataFrame, similarity: NDArray[np.float64]) -> NDArray[np.float64]:
    """(N,) the same with part of the credit for similar labels, `similarity` (K, K)."""
    values = [np.zeros(0)]
    for part in _parts(records):
        cells = cells_of(part)
        counts = soft_counts_by_image(cells.image, cells.cell, cells.pixels, similarity, images=cells.images)
        values.append(mean_iou(counts, "gt-only"))
    return np.concatenate(values)


def caption_of(record: Record) -> str:
    r"""The share of right pixels and the largest confusion of one image, in words.

    >>> record = {"labels": 2, "names": "cat\ndog", "cells": [0, 1, 4], "pixels": [6, 2, 2]}
    >>> caption_of(record)
    '80.0 % of 10 labelled pixels are right; the largest confusion: cat called dog (2 pixels).'
    """
    names, width = [*str(record["names"]).split("\n"), NO_LABEL], int(record["labels"]) + 1
    cells = sorted(zip(record["pixels"], record["cells"], strict=True), reverse=True)
    total = sum(pixels for pixels, _ in cells)
    if not total:
        return "No pixel is labelled."
    right = sum(pixels for pixels, cell in cells if cell // width == cell % width)
    words = f"{100 * right / total:.1f} % of {total:,} labelled pixels are right"
    wrong = [(pixels, cell) for pixels, cell in cells if cell // width != cell % width]
    if not wrong:
        return f"{words}."
    pixels, cell = wrong[0]
    return f"{words}; the largest confusion: {names[cell // width]} called {names[cell % width]} ({pixels:,} pixels)."


def _parts(records: pl.DataFrame) -> Iterator[pl.DataFrame]:
    if len(records):
        yield from records.iter_slices(max(1, MOST_COUNTS // (int(records["labels"][0]) + 1)))
