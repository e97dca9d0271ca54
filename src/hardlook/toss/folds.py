"""Folds: which classes a fold tests, and which its model was trained on.

>>> list_tested_classes(("cat", "dog", "car", "bus"), 2)
{0: ('cat', 'dog'), 1: ('car', 'bus')}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hardlook.data.toss_pairs import list_pair_files
from hardlook.data.voc import VOC_CLASSES
from hardlook.errors import OptionError
from hardlook.toss.options import FIXED, GENERAL, OneShotOptions
from hardlook.toss.planted_pairs import FOLDS as PLANTED_FOLDS
from hardlook.toss.planted_pairs import list_tested_concepts
from hardlook.toss.tiers.folder import read_fold_classes
from hardlook.toss.tiers.rules import split_into_folds

PASCAL_FOLDS = COCO_FOLDS = 4
COCO_CLASSES = 80


def list_tested_classes(classes: Sequence[str], folds: int) -> dict[int, tuple[str, ...]]:
    """The classes of each fold, cut in order."""
    return dict(enumerate(split_into_folds(classes, folds)))


def find_tested_classes(options: OneShotOptions, classes: Sequence[str]) -> Mapping[int, tuple[str, ...]]:
    """The classes that each fold tests; empty where neither the lists nor the dataset define them.

    Lists of `hardlook build toss` name them in their manifest. PASCAL-5i cuts VOC's classes in order; fold f of
    COCO-20i has the classes f + 1, f + 5, and so on.
    """
    if not options.data:
        return dict(enumerate(list_tested_concepts()))
    if built := read_fold_classes(options.data["pairs"]):
        return dict(enumerate(built))
    if "coco" in options.data and len(classes) == COCO_CLASSES:
        return {fold: tuple(classes[fold::COCO_FOLDS]) for fold in range(COCO_FOLDS)}
    return list_tested_classes(classes, PASCAL_FOLDS) if tuple(classes) == VOC_CLASSES else {}


def list_folds(options: OneShotOptions, tiers: Sequence[int], *, fixed: bool) -> list[int]:
    """The folds of a run: those of `--folds`, else all that its lists have; for tier 3 alone, those of any list."""
    if options.folds is not None:
        return list(options.folds)
    if not options.data:
        return list(range(PLANTED_FOLDS))
    files = [file for file in list_pair_files(options.data["pairs"]) if file.tier != GENERAL]
    chosen_set = choose_fixed_set(options.data["pairs"], "coco" in options.data)
    own = [file for file in files if (file.name.startswith(f"{chosen_set}/") if fixed else file.tier in tiers)]
    return sorted({file.fold for file in own or files})


def choose_fixed_set(folder: Path, coco: bool) -> str:
    """The name of the fixed lists to run: COCO-20i for COCO, else PASCAL-5i, or the only ones that there are."""
    sets = sorted({file.name.partition("/")[0] for file in list_pair_files(folder) if file.tier == FIXED})
    wanted = "coco20i" if coco else "pascal5i"
    return wanted if wanted in sets or len(sets) != 1 else sets[0]


def check_folds_are_known(folds: Sequence[int], file: Path | None) -> None:
    """Raise an error where tier 3 is to be answered once per fold and no list says which folds there are."""
    if not folds:
        what = "--per-fold: the lists have no folds, so it is not known how many models answer tier 3"
        raise OptionError(what, file=file, remedy="give --folds, such as --folds 0-3")


def describe_unknown_class(number: int, classes: Sequence[str]) -> str:
    """What is wrong with a class number; empty where there is such a class.

    >>> describe_unknown_class(25, ["cat"] * 20), describe_unknown_class(20, ["cat"] * 20)
    ('class 25 does not exist: there are classes 1 to 20', '')
    """
    return "" if number <= len(classes) else f"class {number} does not exist: there are classes 1 to {len(classes)}"
