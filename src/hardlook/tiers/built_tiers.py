"""All pair lists of a dataset, from what was measured on it: the rules of the three tiers put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hardlook.data.toss_pairs import SPLITS, Pair
from hardlook.tiers.partitions import folds_of, members_of
from hardlook.tiers.query_complexity import Cell, query_complexity
from hardlook.tiers.random_pairs import random_pairs
from hardlook.tiers.support_cognizance import WANTED, support_cognizance


@dataclass(frozen=True)
class Unfilled:
    """A part that has fewer pairs than the published rule asks for, and why."""

    part: str
    wanted: int
    got: int
    why: str


@dataclass(frozen=True)
class TierInputs:
    """What the tiers are made from: classes in order, the partition of each token and its class, similar pairs."""

    classes: tuple[str, ...]
    class_of: Mapping[str, str]
    partitions: Mapping[str, str]
    similar: Mapping[tuple[str, str], bool]
    folds: int = 4
    seed: int = 0

    def tokens(self) -> dict[str, list[str]]:
        """The tokens of each class, in order, whether they have a partition or not."""
        found: dict[str, list[str]] = {name: [] for name in self.classes}
        for token, name in self.class_of.items():
            found[name].append(token)
        return found


@dataclass(frozen=True)
class BuiltTiers:
    """Pair lists by (tier, fold, split); tier 0 are the fixed lists. `cells` by fold, `folds` the classes of each."""

    folds: tuple[tuple[str, ...], ...]
    lists: Mapping[tuple[int, int, str], tuple[Pair, ...]]
    cells: Mapping[int, tuple[Cell, ...]]
    levels: Mapping[str, Mapping[str, int]]
    unfilled: tuple[Unfilled, ...]


def build_tiers(inputs: TierInputs) -> BuiltTiers:
    """Tiers 1 and 2 and the fixed lists of all folds.

    >>> inputs = TierInputs(("cat",), {"1_a": "cat", "1_b": "cat"}, {"1_a": "easy_sal", "1_b": "hard_sal"}, {}, folds=1)
    >>> built = build_tiers(inputs)
    >>> [(pair.query, pair.support) for pair in built.lists[1, 0, "easy_sal"]]
    [('1_a', '1_a'), ('1_a', '1_b')]
    """
    tokens, members = inputs.tokens(), members_of(inputs.partitions, inputs.class_of)
    folds = folds_of(inputs.classes, inputs.folds)
    lists: dict[tuple[int, int, str], tuple[Pair, ...]] = {}
    cells: dict[int, tuple[Cell, ...]] = {}
    levels: dict[str, dict[str, int]] = {}
    for fold, classes in enumerate(folds):
        by_split = {split: query_complexity(members, classes, split, seed=inputs.seed) for split in SPLITS}
        cells[fold] = tuple(cell for found in by_split.values() for cell in found)
        for split, found in by_split.items():
            lists[1, fold, split] = tuple(
                Pair(query, support, 1, fold, split) for cell in found for query, support in cell.pairs
            )
        cognizance = support_cognizance(tokens, classes, inputs.similar, fold=fold, seed=inputs.seed)
        lists[2, fold, ""] = tuple(cognizance)
        for name in classes:
            counts = Counter(pair.split for pair in cognizance if inputs.class_of[pair.query] == name)
            levels[name] = {level: counts[level] for level in WANTED}
        drawn = random_pairs(tokens, classes, seed=inputs.seed)
        lists[0, fold, ""] = tuple(Pair(query, support, 0, fold) for query, support in drawn)
    return BuiltTiers(folds, lists, cells, levels, tuple(_unfilled(tokens, cells, levels)))


def _unfilled(
    tokens: Mapping[str, Sequence[str]],
    cells: Mapping[int, Sequence[Cell]],
    levels: Mapping[str, Mapping[str, int]],
) -> list[Unfilled]:
    found = []
    for fold, own in cells.items():
        for cell in own:
            if not cell.pairs:
                part = f"tier 1, fold {fold}, {cell.class_name}: {cell.query_partition} x {cell.support_partition}"
                lacks = cell.query_partition if not cell.queries else cell.support_partition
                found.append(Unfilled(part, 1, 0, f"{cell.class_name} has no mask that is {lacks}"))
    for name, counts in levels.items():
        for level, wanted in WANTED.items():
            if counts[level] < wanted:
                why = f"{name} has {len(tokens[name])} images" if tokens[name] else f"no image holds {name}"
                found.append(Unfilled(f"tier 2, {name}: {level}", wanted, counts[level], why))
    return found
