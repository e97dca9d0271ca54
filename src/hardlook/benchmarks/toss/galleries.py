"""Pairs of TOSS that show what salience and supports do, one for each query image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardlook.benchmarks.one_shot_pairs.pair_galleries import pair_gallery, with_iou
from hardlook.benchmarks.toss.scores import NOT_SALIENT, SALIENT, SPURIOUS
from hardlook.contract.scorecard import Scorecard
from hardlook.contract.sections import Section

if TYPE_CHECKING:
    import polars as pl


def galleries(records: pl.DataFrame, scorecard: Scorecard) -> Section | None:
    """Salient and other targets, found and missed; what is found without being shown; what is missed when shown."""
    import polars as pl

    pairs = with_iou(records, scorecard)
    spurious = pl.col("split").is_in(SPURIOUS)
    wanted = (
        ("Salient and missed", "Lowest IoU among salient targets of tier 1.", _sal(True), False),
        ("Not salient and missed", "Lowest IoU among the other targets of tier 1: what did it take instead?",
         _sal(False), False),
        ("Not salient and found", "Highest IoU among the targets that do not catch the eye.", _sal(False), True),
        ("Found without being shown", "Supports of another class, without a mask, or black; yet the query's own "
         "object is found. Highest IoU first.", spurious, True),
        ("Shown itself and missed", "The support is the query (L0). Lowest IoU first.", pl.col("split") == "L0", False),
    )  # fmt: skip
    shown = [
        pair_gallery(pairs.filter(rows), title, caption, "split", found=found) for title, caption, rows, found in wanted
    ]
    blocks = tuple(gallery for gallery in shown if gallery.examples)
    return Section("Salience and supports, pair by pair", "One pair a query image.", blocks) if blocks else None


def _sal(salient: bool) -> pl.Expr:
    import polars as pl

    return (pl.col("tier") == 1) & pl.col("split").is_in(SALIENT if salient else NOT_SALIENT)
