"""Where labels are confused: the images to look at.

Chosen by matching at IoU .5 with the default number of detections; a picture is chosen here, never a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hardlook.benchmarks.open_ap.matches import WHOLE, run_matches
from hardlook.benchmarks.open_ap.records import label_names
from hardlook.contract.sections import Example

if TYPE_CHECKING:
    import polars as pl


def confusion_examples(records: pl.DataFrame, pairs: Mapping[tuple[str, str], float]) -> list[Example]:
    """For each pair of labels (true, called) with its similarity the image that confuses them most, each image once."""
    table = run_matches(records).tables()[WHOLE]
    places = {name: row for row, name in enumerate(label_names(records))}
    units, examples = records["unit"].to_list(), dict[str, Example]()
    for (true, called), similarity in pairs.items():
        struck = (table.pooled[0] == places[true]) & (table.labels == places[called])
        counts = np.bincount(table.image[struck], minlength=len(units))
        unit = units[int(np.argmax(counts))]
        if counts.any():
            examples.setdefault(unit, Example(unit, f"{true} called {called} (similarity {similarity:.2f})"))
    return list(examples.values())
