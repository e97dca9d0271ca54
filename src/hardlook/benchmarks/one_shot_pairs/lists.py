"""Pair lists with their images: what can be run, and what cannot because files are not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hardlook import fingerprint
from hardlook.benchmarks.one_shot_pairs.options import OneShotOptions
from hardlook.benchmarks.one_shot_pairs.pairs import PairSettings
from hardlook.benchmarks.one_shot_pairs.planted_pairs import PLANTED, planted_lists, planted_source, planted_world
from hardlook.contract.scorecard import LeftOut
from hardlook.data.class_masks import ClassMasks, open_class_masks, open_coco, open_fss
from hardlook.data.toss_pairs import SPLITS, Pair, PairFile, PairList, list_pair_files, pair_file, read_pairs
from hardlook.errors import DataError, OptionError

EXAMPLES = 5
FIXED, GENERAL = 0, 3
KNOWN = ({"voc"}, {"voc", "binary"}, {"images", "masks"}, {"images", "binary"}, {"coco"})
IN_PART = ", others in part"


@dataclass(frozen=True)
class OpenedList:
    """A list of pairs, those of its pairs that can be read, and what they share."""

    name: str
    pairs: tuple[Pair, ...]
    settings: PairSettings


@dataclass(frozen=True)
class OpenedLists:
    """All lists of a run and what was left out of them."""

    lists: tuple[OpenedList, ...]
    left_out: tuple[LeftOut, ...] = ()


def sources_of(options: OneShotOptions) -> Mapping[str, Path | str]:
    """What the pairs come from, by name."""
    given: dict[str, Path | str] = dict(options.data)
    if options.pred is not None:
        given["pred"] = options.pred
    if options.labels is not None:
        given["labels"] = Path(options.labels)
    return given or {"planted world": planted_world(options).fingerprint()}


def open_lists(options: OneShotOptions, tiers: Sequence[int], folds: Sequence[int], *, fixed: bool) -> OpenedLists:
    """The lists that the options ask for; an error where images are missing and nobody allowed that."""
    if not options.data:
        source = planted_source(options)
        settings = settings_of(options, source, PLANTED)
        found = planted_lists(options, tiers, folds, fixed=fixed)
        return OpenedLists(tuple(OpenedList(name, pairs, settings) for name, pairs in found))
    if "pairs" not in options.data:
        raise OptionError(
            "the images are given, and no lists of pairs",
            remedy="give --data pairs=TOSS_REPOSITORY, or make lists with `hardlook build toss`",
        )
    sources = _sources(options)
    lists, missing = [], _Missing()
    files, absent = _chosen_files(options, tiers, folds, fixed=fixed)
    left_out = _absent_notes(absent)
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


def _chosen_files(
    options: OneShotOptions, tiers: Sequence[int], folds: Sequence[int], *, fixed: bool
) -> tuple[list[PairFile], list[PairFile]]:
    """The files of the tiers and folds asked for that the folder has, and those that it does not have."""
    folder = options.data["pairs"]
    there = list_pair_files(folder)
    sets = sorted({file.name.partition("/")[0] for file in there if file.tier == FIXED})
    wanted_set = "coco20i" if "coco" in options.data else "pascal5i"
    chosen_set = wanted_set if wanted_set in sets or len(sets) != 1 else sets[0]
    if fixed:
        asked = [PairFile(f"{chosen_set}/split{fold}_test", folder, FIXED, fold) for fold in folds]
    else:
        asked = [file for tier in tiers for file in _tier_files(folder, tier, folds)]
    names, known = {file.name for file in asked}, {file.name for file in there}
    chosen = [file for file in there if file.name in names]
    if not chosen:
        words = f"fixed pairs of {wanted_set}" if fixed else f"tiers {', '.join(map(str, tiers))}"
        raise DataError(
            f"no list of the {words} and folds {', '.join(map(str, folds))}",
            file=folder,
            remedy=f"the folder has {', '.join(file.name for file in there) or 'no lists'}",
        )
    return chosen, [file for file in asked if file.name not in known]


def _tier_files(folder: Path, tier: int, folds: Sequence[int]) -> list[PairFile]:
    if tier == GENERAL:
        return [pair_file(folder, tier)]
    return [pair_file(folder, tier, fold, split) for fold in folds for split in (SPLITS if tier == 1 else ("",))]


def _absent_notes(absent: Sequence[PairFile]) -> list[LeftOut]:
    names = tuple(file.name for file in absent[:EXAMPLES])
    return [LeftOut("lists of pairs", len(absent), "the folder of pairs does not have them", names)] if absent else []


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
    return OpenedList(listed.name, tuple(kept), settings_of(options, source, whose + part))


def _sources(options: OneShotOptions) -> dict[str, ClassMasks]:
    given = {name: path for name, path in options.data.items() if name != "pairs"}
    main = {name: path for name, path in given.items() if name != "fss"}
    if not given or (main and set(main) not in KNOWN):
        raise OptionError(
            f"--data {', '.join(sorted(options.data))}: nobody knows how to read images from this",
            remedy="beside pairs give voc=DIR, coco=DIR, or images=DIR with masks=DIR and --labels FILE; "
            "fss=DIR for tier 3",
        )
    found: dict[str, ClassMasks] = {}
    if "coco" in main:
        found["main"] = open_coco(main["coco"])
    elif main:
        found["main"] = open_class_masks(main, labels=Path(options.labels) if options.labels else None)
    if "fss" in given:
        found["fss"] = open_fss(given["fss"])
    return found


def open_source(options: OneShotOptions) -> ClassMasks:
    """The images and masks that are given; an error where there are none."""
    sources = _sources(options)
    return sources.get("main") or sources["fss"]


def settings_of(options: OneShotOptions, source: ClassMasks, listing: str) -> PairSettings:
    """What the pairs of one list share."""
    return PairSettings(
        source,
        key=fingerprint.of_value({name: str(path) for name, path in source.paths().items()} or repr(source)),
        listing=listing,
        size=0 if options.size == "original" else int(options.size),
        seed=options.seed,
        keep_prediction=options.keep_predictions,
        predictions=options.pred,
    )
