"""What did not enter a score of TOSS, counted and named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.contract.scorecard import LeftOut, Score

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = 5


def left_out_of(records: pl.DataFrame, scored: pl.DataFrame, scores: Sequence[Score]) -> tuple[LeftOut, ...]:
    """Mixed pairs, pairs without a true pixel, and folds whose score cannot be formed."""
    import polars as pl

    notes = []
    dropped = records.filter(records["mixed"])["unit"] if len(scored) < len(records) else records["unit"].head(0)
    notes.append(
        LeftOut("pairs of two classes in tier 3", len(dropped), "the reading is mixed=ours", _few(dropped.to_list()))
    )
    empty = scored.filter(pl.col("truth") == 0)["unit"].to_list()
    why = "the query's truth has no pixel of the class; what is predicted there still enters the unions"
    notes.append(LeftOut("pairs without anything to find", len(empty), why, _few(empty)))
    for name, needed in (("lca", "every split"), ("hca", "every split"), ("scs", "a class with every level")):
        without = [
            f"fold {score.slice['fold']}"
            for score in scores
            if score.name == name and set(score.slice) == {"fold"} and math.isnan(score.value)
        ]
        notes.append(LeftOut(f"folds without {name}", len(without), f"it needs {needed}", _few(without)))
    return tuple(note for note in notes if note.count)


def _few(names: list[str]) -> tuple[str, ...]:
    return tuple(names[:EXAMPLES])
