"""Pair lists with their images: what can be run, and what cannot because files are not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hardlook.benchmarks.one_shot_pairs.image_sources import open_sources, settings_of
from hardlook.benchmarks.one_shot_pairs.list_choice import EXAMPLES, GENERAL, Folds, absent_notes, choose_lists
from hardlook.benchmarks.one_shot_pairs.options import OneShotOptions
from hardlook.benchmarks.one_shot_pairs.pairs import PairSettings
from hardlook.benchmarks.one_shot_pairs.planted_pairs import FOLDS, PLANTED, planted_lists, planted_source
from hardlook.contract.scorecard import LeftOut
from hardlook.data.class_masks import ClassMasks
from hardlook.data.toss_pairs import Pair, PairList, read_pairs
from hardlook.errors import DataError, OptionError

IN_PART = ", others in part"


@dataclass(frozen=True)
class OpenedList:
    """A list of pairs, those of its pairs that can be read, and what they share.

    `named` are all tokens of the list that can be read, also those whose partner cannot.
    """

    name: str
    pairs: tuple[Pair, ...]
    settings: PairSettings
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenedLists:
    """All lists of a run and what was left out of them."""

    lists: tuple[OpenedList, ...]
    left_out: tuple[LeftOut, ...] = ()


def open_lists(options: OneShotOptions, tiers: Sequence[int], folds: Folds, *, fixed: bool) -> OpenedLists:
    """The lists that the options ask for; an error where images are missing and nobody allowed that."""
    if not options.data:
        return _planted(options, tiers, folds, fixed=fixed)
    if "pairs" not in options.data:
        raise OptionError(
            "the images are given, and no lists of pairs",
            remedy="give --data pairs=TOSS_REPOSITORY, or make lists with `hardlook build toss`",
        )
    sources = open_sources(options)
    lists, missing = [], _Missing()
    files, absent = choose_lists(options, tiers, folds, fixed=fixed)
    left_out = absent_notes([file.name for file in absent], "the folder of pairs does not have them")
    for file in files:
        listed = read_pairs(file)
        general = file.tier == GENERAL
        source_here = sources.get("fss" if general else "main")
        if source_here is None:
            why = "no --data fss=DIR was given" if general else "only --data fss=DIR was given"
            left_out.append(LeftOut(f"pairs of {listed.name}", len(listed.pairs), why))
            continue
        lists.append(_available(options, listed, source_here, missing))
    if missing.pairs and options.subset != "available":
        raise DataError(
            f"{missing.pairs} pairs need images or masks that are not there: {missing.words()}",
            file=options.data["pairs"],
            unit=missing.first,
            remedy="complete the dataset, or run the rest with --subset available (scores are then not comparable)",
        )
    if missing.pairs:
        why = f"{len(missing.tokens)} images or masks are not there"
        left_out.append(LeftOut("pairs without their files", missing.pairs, why, tuple(missing.texts[:EXAMPLES])))
    if missing.pairs or any(file.tier == gone.tier for file in files for gone in absent):
        # A list of which nothing is left has no record that could say so: the others say it.
        lists = [replace(one, settings=replace(one.settings, listing=one.settings.listing + IN_PART)) for one in lists]
    return OpenedLists(tuple(lists), tuple(left_out))


def _planted(options: OneShotOptions, tiers: Sequence[int], folds: Folds, *, fixed: bool) -> OpenedLists:
    settings = settings_of(options, planted_source(options), PLANTED)
    found = planted_lists(options, tiers, folds, fixed=fixed)
    has = f"the planted world has folds 0 to {FOLDS - 1}"
    strange = [f"fold {fold}" for fold in folds or () if fold >= FOLDS]
    if not found:
        raise DataError(f"no list of these tiers and of {', '.join(strange) or 'these scenes'}", remedy=has)
    lists = tuple(OpenedList(name, pairs, settings) for name, pairs in found)
    needs_folds = fixed or any(tier != GENERAL for tier in tiers)
    return OpenedLists(lists, tuple(absent_notes(strange if needs_folds else [], has)))


class _Missing:
    """What is not there, gathered over all lists."""

    def __init__(self) -> None:
        self.pairs, self.first, self.tokens, self.texts = 0, "", set[str](), list[str]()

    def note(self, token: str, what: str) -> None:
        self.first = self.first or token
        if token not in self.tokens:
            self.tokens.add(token)
            self.texts.append(what)

    def words(self) -> str:
        more = len(self.texts) - EXAMPLES
        return ", ".join(self.texts[:EXAMPLES]) + (f" and {more} more" if more > 0 else "")


def _available(options: OneShotOptions, listed: PairList, source: ClassMasks, missing: _Missing) -> OpenedList:
    known: dict[str, str] = {}
    for token in dict.fromkeys(token for pair in listed.pairs for token in (pair.query, pair.support)):
        known[token] = source.missing(token)
    kept = []
    for pair in listed.pairs:
        lost = [token for token in (pair.query, pair.support) if known[token]]
        if lost:
            missing.pairs += 1
            for token in lost:
                missing.note(token, known[token])
        else:
            kept.append(pair)
    whose = "published" if listed.published else "built"
    part = "" if len(kept) == len(listed.pairs) else f", {len(kept)} of {len(listed.pairs)} pairs"
    named = tuple(token for token, lost in known.items() if not lost)
    return OpenedList(listed.name, tuple(kept), settings_of(options, source, whose + part), named)
