"""What enters no score, or only in part, counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hardlook.contract.scorecard import LeftOut
from hardlook.metrics.match_table import MatchTable

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = 5


def left_out(
    records: pl.DataFrame, table: MatchTable, names: Sequence[str], max_detections: int
) -> tuple[LeftOut, ...]:
    """The notes that have something to say."""
    found = records["labels"].list.len().cast(int)
    empty = records.filter((records["object_labels"].list.len() == 0).to_numpy())["unit"].to_list()
    crowds = int(records["object_crowd"].list.sum().sum())
    full = records.filter((found > max_detections).to_numpy())["unit"].to_list()
    beyond = int((found - max_detections).clip(0).sum())
    counts = table.objects()[0]
    named = np.bincount(table.labels, minlength=len(names))
    silent = [name for row, name in enumerate(names) if counts[row] and not named[row]]
    absent = [name for row, name in enumerate(names) if not counts[row]]
    notes = [
        LeftOut("images without objects", len(empty), "their detections are false positives", _few(empty)),
        LeftOut("crowd regions", crowds, "detections in them neither count nor harm, as in COCO"),
        LeftOut(
            "detections beyond the best of their image", beyond,
            f"--max-detections {max_detections}: over all classes for dagger and open, of each class for AP",
            _few(full),
        ),
        LeftOut("classes that no detection names", len(silent), "they have objects, so they stay in every mean",
                _few(silent)),
        LeftOut("labels without objects", len(absent), "they have no AP; a detection of theirs can still match",
                _few(absent)),
    ]  # fmt: skip
    if not int(found.sum()):
        why = "no image has any: every AP is 0"
        notes.insert(0, LeftOut("images without detections", len(records), why))
    return tuple(note for note in notes if note.count)


def _few(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names[:EXAMPLES])
