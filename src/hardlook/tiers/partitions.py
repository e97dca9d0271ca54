"""The four partitions of tier 1 and the folds of classes.

The source is "What Ails One-Shot Image Segmentation: A Data Perspective", NeurIPS 2022 Datasets and Benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from hardlook.errors import OptionError

# The order of the supports' partitions inside a published file.
PARTITIONS = ("easy_nsal", "easy_sal", "hard_nsal", "hard_sal")
EASY_ABOVE = 0.75
SALIENT_ABOVE = 0.5

Members = Mapping[str, Mapping[str, Sequence[str]]]


def partition_of(
    supervised_iou: float, salience: float, easy_above: float = EASY_ABOVE, salient_above: float = SALIENT_ABOVE
) -> str:
    """The partition of a mask: easy when a supervised model finds it, sal when it is what the eye falls on.

    Both numbers are IoU with the mask, in [0, 1], and must lie above their threshold.

    >>> partition_of(0.9, 0.1), partition_of(0.75, 0.6)
    ('easy_nsal', 'hard_sal')
    """
    ease = "easy" if supervised_iou > easy_above else "hard"
    return f"{ease}_{'sal' if salience > salient_above else 'nsal'}"


def members_of(partitions: Mapping[str, str], classes: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
    """Tokens by class and partition, in the order they come in; `classes` names the class of each token.

    >>> members_of({"1_a": "easy_sal", "1_b": "easy_sal"}, {"1_a": "cat", "1_b": "cat"})["cat"]["easy_sal"]
    ['1_a', '1_b']
    """
    members: dict[str, dict[str, list[str]]] = {}
    for token, partition in partitions.items():
        members.setdefault(classes[token], {name: [] for name in PARTITIONS})[partition].append(token)
    return members


def folds_of(classes: Iterable[str], folds: int) -> tuple[tuple[str, ...], ...]:
    """Classes in order, cut into folds of equal size; where they do not divide, the first folds have one more.

    Twenty classes in four folds are PASCAL-5i.

    >>> folds_of("abcde", 2)
    (('a', 'b', 'c'), ('d', 'e'))
    """
    names = tuple(classes)
    if not 1 <= folds <= len(names):
        raise OptionError(f"--folds {folds}: there are {len(names)} classes", remedy="give every fold a class")
    size, more = divmod(len(names), folds)
    starts = [fold * size + min(fold, more) for fold in range(folds + 1)]
    return tuple(names[start:end] for start, end in pairwise(starts))
