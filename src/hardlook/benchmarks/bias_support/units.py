"""Every pair under every condition."""

from __future__ import annotations

from collections.abc import Iterator

from hardlook.benchmarks.bias_support.conditions import CONDITIONS, Condition
from hardlook.benchmarks.one_shot_pairs.lists import OpenedList
from hardlook.benchmarks.one_shot_pairs.pairs import Labels, OneShotPair
from hardlook.benchmarks.one_shot_pairs.study_lists import StudyOptions, other_class_tokens, study_pairs
from hardlook.contract.benchmark import Unit, UnitList
from hardlook.contract.scorecard import LeftOut
from hardlook.data.toss_pairs import Pair
from hardlook.randomness import generator


def list_conditions(options: StudyOptions) -> UnitList:
    """Five units a pair; where a fold has a single class there is no other to show, and those are left out."""
    opened = study_pairs(options)
    units, without = [], []
    for listed in opened.lists:
        others = other_class_tokens(listed.pairs, listed)
        for pair in listed.pairs:
            made = list(_units(listed, pair, others, options.seed))
            units += made
            without += [listed.name] if len(made) < len(CONDITIONS) else []
    left_out = list(opened.left_out)
    if without:
        why = "their fold has one class only"
        left_out.append(LeftOut("pairs without a support of another class", len(without), why, (without[0],)))
    return UnitList(units, left_out)


def _units(listed: OpenedList, pair: Pair, others: dict[str, tuple[str, ...]], seed: int) -> Iterator[Unit]:
    source = listed.settings.source
    name = source.class_of(pair.query)
    strangers = others.get(name, ())
    for condition in CONDITIONS:
        if condition.other_class and not strangers:
            continue
        support = _stranger(strangers, pair, seed) if condition.other_class else pair.support
        slices: Labels = {"condition": condition.name, "fold": pair.fold, "class": name}
        content = OneShotPair(listed.settings, pair.query, (support,), slices, shown=condition.shown)
        yield Unit(unit_id(pair, condition), content, group=source.image_of(pair.query))


def unit_id(pair: Pair, condition: Condition) -> str:
    """Fold, line and condition.

    >>> unit_id(Pair("1_a", "1_b", 0, 2, "", 7), CONDITIONS[1])
    'fold2-00007-other-class'
    """
    return f"fold{pair.fold}-{pair.line:05d}-{condition.name}"


def _stranger(tokens: tuple[str, ...], pair: Pair, seed: int) -> str:
    # Both ablations with another class show the same image, so that only the mask differs between them.
    return tokens[int(generator(seed, "other class", pair.query, pair.support).integers(len(tokens)))]
