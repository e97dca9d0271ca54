"""Folds of classes: which classes a one-shot model is trained on, and which it is tested on.

Classes go into folds in order, as in PASCAL-5i (`tiers.partitions.folds_of`).

>>> split = split_of_fold(("cat", "dog", "car", "bus"), fold=1, folds=2)
>>> split.training, split.test
(('cat', 'dog'), ('car', 'bus'))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hardlook.errors import OptionError
from hardlook.tiers.partitions import folds_of


@dataclass(frozen=True)
class ClassSplit:
    """The names of the training and of the test classes; `name` says where the split comes from."""

    training: tuple[str, ...]
    test: tuple[str, ...]
    name: str


def split_of_fold(classes: Sequence[str], fold: int, folds: int = 4) -> ClassSplit:
    """Fold `fold` (from 0) tests its own classes and trains on all others.

    >>> split_of_fold(tuple("abcdef"), fold=0, folds=3).test
    ('a', 'b')
    """
    _check(classes, folds)
    if not 0 <= fold < folds:
        raise OptionError(f"--fold {fold}: there is no such fold", remedy=f"one from 0 to {folds - 1}")
    test = folds_of(classes, folds)[fold]
    return ClassSplit(tuple(name for name in classes if name not in test), test, f"fold {fold} of {folds}")


def split_of_training(classes: Sequence[str], training: Sequence[str]) -> ClassSplit:
    """The named classes train, all others test.

    >>> split_of_training(("cat", "dog", "car"), ["car"]).test
    ('cat', 'dog')
    """
    unknown = [name for name in training if name not in classes]
    if unknown or not training:
        what = f"no class {unknown[0]!r} in the data" if unknown else "no training class is named"
        raise OptionError(what, remedy=f"the data has {', '.join(classes)}")
    chosen = tuple(name for name in classes if name in set(training))
    return ClassSplit(chosen, tuple(name for name in classes if name not in chosen), "classes given by name")


def fold_of(classes: Sequence[str], folds: int = 4) -> dict[str, int]:
    """Each class and the fold that tests it.

    >>> fold_of(("a", "b", "c", "d"), folds=2)
    {'a': 0, 'b': 0, 'c': 1, 'd': 1}
    """
    _check(classes, folds)
    return {name: fold for fold, names in enumerate(folds_of(classes, folds)) for name in names}


def _check(classes: Sequence[str], folds: int) -> None:
    # One fold would test every class and train on none.
    if not 2 <= folds <= len(classes):
        raise OptionError(f"--folds {folds}: expected from 2 to {len(classes)}, the number of classes")
