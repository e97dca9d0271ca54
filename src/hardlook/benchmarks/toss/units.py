"""TOSS's units: the pairs of the lists, once for each number of shots.

They come by fold, class and query image. So the supports of a class are met again while they are still in memory: a
list's own order would read and encode each image of the published tier 1 seven times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hardlook.benchmarks.one_shot_pairs.lists import OpenedList, OpenedLists, open_lists
from hardlook.benchmarks.one_shot_pairs.pairs import Labels, OneShotPair, Shown
from hardlook.benchmarks.one_shot_pairs.shots import Pools, class_pools, supports_of
from hardlook.benchmarks.toss.options import TossOptions
from hardlook.contract.benchmark import Unit, UnitList
from hardlook.contract.scorecard import LeftOut
from hardlook.data.toss_pairs import UNTOLD, Pair
from hardlook.errors import DataError, OptionError

SHOWN: dict[str, Shown] = {"L5": "no mask", "L6": "nothing"}
GENERAL = 3
EXAMPLES = 5


def list_pairs(options: TossOptions) -> UnitList:
    """One unit a pair and number of shots, by fold, class and query image."""
    opened = open_lists(options, options.tiers, options.folds, fixed=options.fixed)
    _refuse_idle_models(opened, options)
    pools = class_pools(opened.lists) if max(options.shots) > 1 else {}
    units: list[Unit] = []
    without: dict[int, list[str]] = {}
    for listed in opened.lists:
        for shots, name, unit in _units(listed, options, pools):
            if unit is None:
                without.setdefault(shots, []).append(name)
            else:
                units.append(unit)
    if without and not units:
        raise DataError(
            f"{min(without)} supports are asked for, and no class has that many images beside the query",
            remedy="ask for fewer --shots, or give more images",
        )
    why = "the lists of the run name too few images of their class that are there"
    notes = [
        LeftOut(f"pairs of {shots} shots", len(names), why, tuple(names[:EXAMPLES]))
        for shots, names in sorted(without.items())
    ]
    return UnitList(sorted(units, key=_place), [*opened.left_out, *notes])


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


def _place(unit: Unit) -> tuple[int, str, str]:
    slices = unit.payload.slices
    return slices["fold"], slices["class"], unit.group


def _units(listed: OpenedList, options: TossOptions, pools: Pools) -> Iterator[tuple[int, str, Unit | None]]:
    """Number of shots, name of the pair, and the unit, None where its class has too few images."""
    source = listed.settings.source
    settings = replace(listed.settings, saliency=options.saliency_model(), encoder=options.encoder_model())
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

    for shots in options.shots:
        for pair in listed.pairs:
            name = unit_id(pair, 1)
            pool = pools.get((settings.key, class_of(pair.support)), ())
            supports = supports_of(
                pair.query, pair.support, shots, pool, image_of=image_of, seed=options.seed, pair=name
            )
            if supports is None:
                yield shots, name, None
                continue
            slices: Labels = {
                "tier": pair.tier,
                "fold": pair.fold,
                "split": pair.split,
                "class": class_of(pair.query),
                "shots": shots,
                "mixed": pair.tier == GENERAL and class_of(pair.query) != class_of(pair.support),
            }
            shown = SHOWN.get(pair.split, "as it is")
            content = OneShotPair(settings, pair.query, supports, slices, pair.transform, shown)
            # An image with two classes is two groups: kept in one it would drag in the other class's supports.
            yield (
                shots,
                name,
                Unit(unit_id(pair, shots), content, group=f"{class_of(pair.query)}/{image_of(pair.query)}"),
            )


def _refuse_idle_models(opened: OpenedLists, options: TossOptions) -> None:
    pairs = [pair for listed in opened.lists for pair in listed.pairs]
    if options.saliency and not any(pair.tier == 1 for pair in pairs):
        raise OptionError("--saliency has nothing to do: it is asked in tier 1", remedy="leave it out, or run tier 1")
    if options.encoder and not any(pair.split == UNTOLD for pair in pairs):
        raise OptionError(
            "--encoder has nothing to do: no list leaves L2 and L3 untold",
            remedy="leave it out; lists of `hardlook build toss` tell them apart already",
        )
