"""Which lists of a folder a run takes, and which of those asked for are not there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hardlook.benchmarks.one_shot_pairs.options import OneShotOptions
from hardlook.contract.scorecard import LeftOut
from hardlook.data.toss_pairs import SPLITS, PairFile, fixed_file, list_pair_files, pair_file
from hardlook.errors import DataError

EXAMPLES = 5
FIXED, GENERAL = 0, 3
Folds = Sequence[int] | None
"""Which folds; None for all that there are."""


def choose_lists(
    options: OneShotOptions, tiers: Sequence[int], folds: Folds, *, fixed: bool
) -> tuple[list[PairFile], list[PairFile]]:
    """The files of the tiers and folds asked for that the folder has, and those that it does not have."""
    folder = options.data["pairs"]
    there = list_pair_files(folder)
    sets = sorted({file.name.partition("/")[0] for file in there if file.tier == FIXED})
    wanted_set = "coco20i" if "coco" in options.data else "pascal5i"
    chosen_set = wanted_set if wanted_set in sets or len(sets) != 1 else sets[0]
    if folds is None:
        kind = [file for file in there if (file.name.startswith(f"{chosen_set}/") if fixed else file.tier in tiers)]
        folds = sorted({file.fold for file in kind if file.tier != GENERAL})
    if fixed:
        asked = [fixed_file(folder, chosen_set, fold) for fold in folds]
    else:
        asked = [file for tier in tiers for file in _tier_files(folder, tier, folds)]
    names, known = {file.name for file in asked}, {file.name for file in there}
    chosen = [file for file in there if file.name in names]
    if not chosen:
        words = f"fixed pairs of {wanted_set}" if fixed else f"tiers {', '.join(map(str, tiers))}"
        raise DataError(
            f"no list of the {words}" + (f" and folds {', '.join(map(str, folds))}" if folds else ""),
            file=folder,
            remedy=f"the folder has {', '.join(file.name for file in there) or 'no lists'}",
        )
    return chosen, [file for file in asked if file.name not in known]


def absent_notes(names: Sequence[str], why: str) -> list[LeftOut]:
    """One note for all lists that are not there."""
    return [LeftOut("lists of pairs", len(names), why, tuple(names[:EXAMPLES]))] if names else []


def _tier_files(folder: Path, tier: int, folds: Sequence[int]) -> list[PairFile]:
    if tier == GENERAL:
        return [pair_file(folder, tier)]
    return [pair_file(folder, tier, fold, split) for fold in folds for split in (SPLITS if tier == 1 else ("",))]
