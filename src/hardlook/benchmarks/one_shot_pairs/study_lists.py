"""The pairs of a study: the fixed lists where lists are given, else random pairs of one class, seeded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hardlook.benchmarks.one_shot_pairs.image_sources import open_source, settings_of
from hardlook.benchmarks.one_shot_pairs.list_choice import EXAMPLES
from hardlook.benchmarks.one_shot_pairs.lists import OpenedList, OpenedLists, open_lists
from hardlook.benchmarks.one_shot_pairs.options import OneShotOptions
from hardlook.contract.options import option
from hardlook.contract.scorecard import LeftOut
from hardlook.data.toss_pairs import Pair
from hardlook.randomness import generator
from hardlook.tiers.partitions import folds_of
from hardlook.tiers.random_pairs import random_pairs

FOLDS = 4  # that drawn pairs are dealt into; lists bring their own
DRAWN = "drawn from the images given"


class StudyOptions(OneShotOptions):
    """How many pairs a study asks for."""

    pairs_a_class: int = option(
        50, "Pairs of each class: drawn at random, or taken from the fixed lists where --data pairs=DIR is given.",
        changes="units", ge=1,
    )  # fmt: skip


def study_pairs(options: StudyOptions) -> OpenedLists:
    """Lists by fold with at most `pairs_a_class` pairs of each class."""
    if options.data and "pairs" not in options.data:
        return _drawn(options)
    opened = open_lists(options, (), None, fixed=True)
    return replace(opened, lists=tuple(_some(listed, options) for listed in opened.lists))


def _drawn(options: StudyOptions) -> OpenedLists:
    source = open_source(options)
    tokens: dict[str, list[str]] = {}
    for token in source.tokens():
        tokens.setdefault(source.class_of(token), []).append(token)
    present = [name for name in source.classes if len(tokens.get(name, ())) > 1]
    settings = settings_of(options, source, DRAWN)
    lists = []
    for fold, names in enumerate(folds_of(present, min(FOLDS, len(present)))):
        drawn = random_pairs(tokens, names, seed=options.seed, most=options.pairs_a_class)
        pairs = tuple(Pair(query, support, 0, fold, "", line) for line, (query, support) in enumerate(drawn, 1))
        lists.append(OpenedList(f"random/fold{fold}", pairs, settings))
    lost = source.unreadable()
    why = "image or truth cannot be read, so no pair was drawn with them"
    note = LeftOut("images", len(lost), why, tuple(f"{image}: {said}" for image, said in list(lost.items())[:EXAMPLES]))
    return OpenedLists(tuple(lists), (note,) if lost else ())


def _some(listed: OpenedList, options: StudyOptions) -> OpenedList:
    """A seeded share of a list, in its order."""
    source = listed.settings.source
    by_class: dict[str, list[Pair]] = {}
    for pair in listed.pairs:
        by_class.setdefault(source.class_of(pair.query), []).append(pair)
    kept: set[int] = set()
    for name, pairs in by_class.items():
        order = generator(options.seed, "study pairs", listed.name, name).permutation(len(pairs))
        kept |= {pairs[place].line for place in order[: options.pairs_a_class]}
    return replace(listed, pairs=tuple(pair for pair in listed.pairs if pair.line in kept))


def other_class_tokens(pairs: Sequence[Pair], listed: OpenedList) -> dict[str, tuple[str, ...]]:
    """For each class of the list, all supports that show another class of it, sorted."""
    source = listed.settings.source
    tokens = sorted({pair.support for pair in pairs})
    classes = {token: source.class_of(token) for token in tokens}
    return {name: tuple(token for token in tokens if classes[token] != name) for name in sorted(set(classes.values()))}
