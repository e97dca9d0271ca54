"""What did not enter a score of TOSS, counted and named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hardlook.contract.scorecard import LeftOut, Score
from hardlook.data.toss_pairs import UNTOLD
from hardlook.metrics.one_shot_scores import SPLITS
from hardlook.metrics.support_cognizance import LEVELS, POOLED_LEVELS, RELEASED_GROUPS

if TYPE_CHECKING:
    import polars as pl

EXAMPLES = 5
Cell = tuple[int, int, str]
"""Shots, fold and class."""


def left_out_of(
    records: pl.DataFrame, scored: pl.DataFrame, scores: Sequence[Score], *, scs: str, void_ignored: bool
) -> tuple[LeftOut, ...]:
    """Mixed pairs, pairs without a true pixel, classes without a split or level, folds without a score.

    `scs` is the reading of the support cognizance score.
    """
    import polars as pl

    mixed = records.filter(records["mixed"])["unit"].to_list()
    if len(scored) < len(records):
        notes = [LeftOut("pairs of two classes in tier 3", len(mixed), "the reading is mixed=ours", _few(mixed))]
    else:
        # The specification wants them counted either way; their number has no better place.
        why = "not left out: the reading is mixed=released, and they count for the query's class"
        notes = [LeftOut("pairs of two classes in tier 3 (kept)", len(mixed), why, _few(mixed))]
    empty = scored.filter(pl.col("truth") == 0)["unit"].to_list()
    why = "the query's truth has no pixel of the class; what is predicted there still enters the unions"
    notes.append(LeftOut("pairs without anything to find", len(empty), why, _few(empty)))
    lacking = _without_split(_present(scored, 1, void_ignored))
    why = "a class that a split has no pair of leaves that split's mean over classes"
    notes.append(LeftOut("classes missing from a split of tier 1", len(lacking), why, _few(lacking)))
    lacking = _without_level(_present(scored, 2, void_ignored), scs)
    why = "SCS needs every level of a class; these leave the mean over classes"
    notes.append(LeftOut("classes without scs", len(lacking), why, _few(lacking)))
    for name, needed in (("lca", "every split"), ("hca", "every split"), ("scs", "a class with every level")):
        without = [
            f"fold {score.slice['fold']}"
            for score in scores
            if score.name == name and set(score.slice) == {"fold"} and math.isnan(score.value)
        ]
        notes.append(LeftOut(f"folds without {name}", len(without), f"it needs {needed}", _few(without)))
    return tuple(note for note in notes if note.count)


def _present(scored: pl.DataFrame, tier: int, void_ignored: bool) -> dict[Cell, set[str]]:
    """Which splits or levels of a tier have pixels, by shots, fold and class."""
    import polars as pl

    union = pl.col("predicted") + pl.col("truth") - pl.col("intersection")
    union = union - pl.col("predicted_void") if void_ignored else union
    rows = scored.filter(pl.col("tier") == tier).group_by("shots", "fold", "class", "split").agg(union=union.sum())
    found: dict[Cell, set[str]] = {}
    for row in rows.iter_rows(named=True):
        cell = found.setdefault((row["shots"], row["fold"], row["class"]), set())
        cell |= {row["split"]} if row["union"] > 0 else set()
    return dict(sorted(found.items()))


def _without_split(present: dict[Cell, set[str]]) -> list[str]:
    """Classes that lack a split which other classes of their fold have."""
    fold_has: dict[tuple[int, int], set[str]] = {}
    for (shots, fold, _), splits in present.items():
        fold_has[shots, fold] = fold_has.get((shots, fold), set()) | splits
    return [
        f"{name} in {split} of fold {fold}"
        for (shots, fold, name), splits in present.items()
        for split in SPLITS
        if split in fold_has[shots, fold] - splits
    ]


def _without_level(present: dict[Cell, set[str]], scs: str) -> list[str]:
    """Classes that lack a level, or in the reading `released` a group of levels."""
    untold = {(shots, fold) for (shots, fold, _), levels in present.items() if UNTOLD in levels}
    lacking = []
    for (shots, fold, name), levels in present.items():
        if scs == "released":
            groups = [(*group, UNTOLD) if "L2" in group else group for group in RELEASED_GROUPS]
        else:
            groups = [(level,) for level in (POOLED_LEVELS if (shots, fold) in untold else LEVELS)]
        if gone := [" or ".join(group) for group in groups if not levels & set(group)]:
            lacking.append(f"{name} of fold {fold}: no {', '.join(gone)}")
    return lacking


def _few(names: list[str]) -> tuple[str, ...]:
    return tuple(names[:EXAMPLES])
