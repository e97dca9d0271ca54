"""TOSS's units: the pairs of the lists, once for each number of shots."""

from __future__ import annotations

from collections.abc import Iterator

from hardlook.benchmarks.one_shot_pairs.lists import OpenedList, open_lists
from hardlook.benchmarks.one_shot_pairs.pairs import Labels, OneShotPair, Shown
from hardlook.benchmarks.one_shot_pairs.shots import class_pools, supports_of
from hardlook.benchmarks.toss.options import TossOptions
from hardlook.contract.benchmark import Unit, UnitList
from hardlook.data.toss_pairs import Pair

SHOWN: dict[str, Shown] = {"L5": "no mask", "L6": "nothing"}
GENERAL = 3


def list_pairs(options: TossOptions) -> UnitList:
    """One unit a pair and number of shots, those of one query image side by side."""
    opened = open_lists(options, options.tiers, options.folds, fixed=options.fixed)
    units = [unit for listed in opened.lists for unit in _units(listed, options)]
    return UnitList(units, opened.left_out)


def unit_id(pair: Pair, shots: int) -> str:
    """A pair's name: tier, fold, split and its line in the file.

    >>> unit_id(Pair("1_a", "1_b", 1, 0, "easy_sal", 12), 1), unit_id(Pair("1_a", "1_b", 0, 3, "", 7), 5)
    ('tier1-fold0-easy_sal-00012', 'fixed-fold3-00007-5shot')
    """
    parts = [f"tier{pair.tier}" if pair.tier else "fixed"]
    parts += [f"fold{pair.fold}"] if pair.fold >= 0 else []
    parts += [pair.split] if pair.split else []
    parts += [f"{pair.line:05d}"]
    parts += [f"{shots}shot"] if shots > 1 else []
    return "-".join(parts)


def _units(listed: OpenedList, options: TossOptions) -> Iterator[Unit]:
    source = listed.settings.source
    classes: dict[str, str] = {}
    images: dict[str, str] = {}

    def class_of(token: str) -> str:
        if token not in classes:
            classes[token] = source.class_of(token)
        return classes[token]

    def image_of(token: str) -> str:
        if token not in images:
            images[token] = source.image_of(token)
        return images[token]

    pools = class_pools(listed.pairs, source) if max(options.shots) > 1 else {}
    for shots in options.shots:
        for pair in listed.pairs:
            name = unit_id(pair, 1)
            supports = supports_of(
                pair.query,
                pair.support,
                shots,
                pools.get(class_of(pair.support), ()),
                image_of=image_of,
                seed=options.seed,
                pair=name,
            )
            slices: Labels = {
                "tier": pair.tier,
                "fold": pair.fold,
                "split": pair.split,
                "class": class_of(pair.query),
                "shots": shots,
                "mixed": pair.tier == GENERAL and class_of(pair.query) != class_of(pair.support),
            }
            content = OneShotPair(
                listed.settings,
                pair.query,
                supports,
                slices,
                pair.transform,
                SHOWN.get(pair.split, "as it is"),
            )
            yield Unit(unit_id(pair, shots), content, group=image_of(pair.query))
