"""Which images to look at: those with the fewest objects found by name, and those where labels are confused.

Chosen by matching at IoU .5 with the default number of detections; a picture is chosen here, never a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.open_ap.matches import run_tables
from hardlook.benchmarks.open_ap.records import label_names
from hardlook.contract.sections import Example, Gallery

if TYPE_CHECKING:
    import polars as pl

SHOWN = 6


def hardest_images(records: pl.DataFrame) -> Gallery:
    """The images with the smallest share of objects found under their own name."""
    table = run_tables(records).whole
    images = len(table.multiplicity)
    objects = np.bincount(table.object_image, table.counted[0], minlength=images)
    found = np.bincount(table.image, table.by_class[0] >= 0, minlength=images)
    misnamed = np.bincount(table.image, (table.pooled[0] >= 0) & (table.pooled[0] != table.labels), minlength=images)
    share = found / np.maximum(objects, 1)
    order = [int(row) for row in np.lexsort((-objects, share)) if objects[row]]
    units = records["unit"].to_list()
    examples = [
        Example(
            units[row],
            f"{found[row]:.0f} of {objects[row]:.0f} objects found under their name, {misnamed[row]:.0f} under another",
        )
        for row in order[:SHOWN]
    ]
    caption = "Smallest share of objects found (IoU .5) under their own name first."
    return Gallery("The hardest images", caption, examples)


def confusion_examples(records: pl.DataFrame, pairs: Sequence[tuple[str, str]]) -> list[Example]:
    """For each pair of labels (true, called) the image that confuses them most, each image once."""
    table, places = run_tables(records).whole, {name: row for row, name in enumerate(label_names(records))}
    units, examples = records["unit"].to_list(), dict[str, Example]()
    for true, called in pairs:
        struck = (table.pooled[0] == places[true]) & (table.labels == places[called])
        counts = np.bincount(table.image[struck], minlength=len(units))
        unit = units[int(np.argmax(counts))]
        if counts.any():
            examples.setdefault(unit, Example(unit, f"{true} called {called}"))
    return list(examples.values())
