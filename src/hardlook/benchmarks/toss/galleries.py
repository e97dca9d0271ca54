"""Pairs of TOSS worth looking at, one for each query image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.benchmarks.one_shot_pairs.pair_galleries import SHOWN, pair_gallery, with_iou
from hardlook.contract.scorecard import Scorecard
from hardlook.contract.sections import Section

if TYPE_CHECKING:
    import polars as pl


def galleries(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    """What is missed, what is found without being asked for, and what is typical."""
    import polars as pl

    pairs = with_iou(records, scorecard)
    spurious = pl.col("split").is_in(["L4", "L5", "L6"])
    plain = ~spurious & (pl.col("tier") <= 1)
    wanted = (
        ("Salient and missed", "Lowest IoU among salient targets of tier 1.", _sal(True), False),
        ("Not salient and missed", "Lowest IoU among the other targets of tier 1: what did it take instead?",
         _sal(False), False),
        ("Not salient and found", "Highest IoU among the targets that do not catch the eye.", _sal(False), True),
        ("Found without being shown", "Supports of another class, without a mask, or black; yet the query's own "
         "object is found. Highest IoU first.", spurious, True),
        ("Shown itself and missed", "The support is the query (L0). Lowest IoU first.", pl.col("split") == "L0", False),
        ("Unseen classes, missed", "Lowest IoU of tier 3.", pl.col("tier") == 3, False),
    )  # fmt: skip
    shown = [
        pair_gallery(pairs.filter(rows), title, caption, "split", best=best) for title, caption, rows, best in wanted
    ]
    middle = pairs.filter(plain).sort("iou", "unit")
    start = max(0, len(middle) // 2 - SHOWN * 8)
    shown.append(
        pair_gallery(middle.slice(start, SHOWN * 16), "Typical pairs", "Around the median IoU.", "split", best=None)
    )
    blocks = tuple(gallery for gallery in shown if gallery.examples)
    return Section("Pairs to look at", "One pair a query image.", blocks) if blocks else None


def _sal(salient: bool) -> pl.Expr:
    import polars as pl

    return (pl.col("tier") == 1) & pl.col("split").is_in(
        ["easy_sal", "hard_sal"] if salient else ["easy_nsal", "hard_nsal"]
    )
