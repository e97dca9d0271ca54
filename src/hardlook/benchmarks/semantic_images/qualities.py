"""Single images: how well each was segmented, and what went wrong on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardlook.benchmarks.semantic_images.records import image_counts
from hardlook.contract.records import Record
from hardlook.metrics.mean_iou import mean_iou

if TYPE_CHECKING:
    import polars as pl

NO_LABEL = "(no such label)"


def image_qualities(records: pl.DataFrame) -> pl.DataFrame:
    """`unit` and `image-miou`."""
    import polars as pl

    return pl.DataFrame({"unit": records["unit"], "image-miou": per_image_miou(records)})


def per_image_miou(records: pl.DataFrame) -> NDArray[np.float64]:
    """(N,) mIoU of each image by itself, over its true classes; NaN without a labelled pixel."""
    return mean_iou(image_counts(records), "gt-only")


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
    words = f"{100 * right / total:.1f} % of {total} labelled pixels are right"
    wrong = [(pixels, cell) for pixels, cell in cells if cell // width != cell % width]
    if not wrong:
        return f"{words}."
    pixels, cell = wrong[0]
    return f"{words}; the largest confusion: {names[cell // width]} called {names[cell % width]} ({pixels} pixels)."
