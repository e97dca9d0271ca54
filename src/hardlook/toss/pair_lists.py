"""Pair lists and the images they name: which lists a run takes, which of their pairs can be read, what is left out.

`open_lists` serves TOSS, `open_study_lists` the bias studies: a sample of the fixed lists, or random pairs of one class
where only images are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hardlook import fingerprints
from hardlook.data.class_masks import ClassMaskSource, open_class_mask_folders, open_coco, open_fss
from hardlook.data.toss_pairs import (
    SPLITS,
    Pair,
    PairFile,
    PairList,
    list_pair_files,
    locate_fixed_list,
    locate_tier_list,
    read_pairs,
)
from hardlook.errors import DataError, OptionError
from hardlook.harness.options import option
from hardlook.harness.scorecard import LeftOut
from hardlook.randomness import generator
from hardlook.toss.options import FIXED, GENERAL, OneShotOptions
from hardlook.toss.pairs import PairSettings
from hardlook.toss.planted_pairs import FOLDS as PLANTED_FOLDS
from hardlook.toss.planted_pairs import PLANTED, PlantedScenes, list_planted_pairs, make_planted_world
from hardlook.toss.tiers.rules import draw_random_pairs, split_into_folds

EXAMPLES = 5
STUDY_FOLDS = 4  # of pairs drawn from images; lists bring their own
DRAWN = "drawn from the images given"
IN_PART = ", others in part"

Folds = Sequence[int] | None
"""Which folds; None for all that there are."""

_SOURCES = ({"voc"}, {"voc", "binary"}, {"images", "masks"}, {"images", "binary"}, {"coco"})
_SOURCES_REMEDY = "give voc=DIR, coco=DIR, or images=DIR with masks=DIR and --labels FILE; fss=DIR for tier 3"


@dataclass(frozen=True)
class OpenedList:
    """The readable pairs of a list, what they share, and all its readable tokens (`named`), with or without partner."""

    name: str
    pairs: tuple[Pair, ...]
    settings: PairSettings
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenedLists:
    """All lists of a run and what was left out of them."""

    lists: tuple[OpenedList, ...]
    left_out: tuple[LeftOut, ...] = ()


def list_pair_sources(options: OneShotOptions) -> Mapping[str, Path | str]:
    """What the pairs come from, by name; lists are hashed whole: one changed support makes another benchmark."""
    given: dict[str, Path | str] = dict(options.data)
    if "pairs" in options.data:
        listed = list_pair_files(options.data["pairs"])
        given["pairs"] = fingerprints.hash_value([[file.name, fingerprints.hash_file(file.path)] for file in listed])
    if options.pred is not None:
        given["pred"] = options.pred
    if options.labels is not None:
        given["labels"] = Path(options.labels)
    return given or {"planted world": make_planted_world(options).fingerprint()}


def open_lists(options: OneShotOptions, tiers: Sequence[int], folds: Folds, *, fixed: bool) -> OpenedLists:
    """The lists of these tiers and folds; an error where images are missing and --subset does not allow that."""
    if not options.data:
        return _open_planted_lists(options, tiers, folds, fixed=fixed)
    if "pairs" not in options.data:
        what = "the images are given, and no lists of pairs"
        raise OptionError(what, remedy="give --data pairs=TOSS_REPOSITORY, or make lists with `hardlook build toss`")
    sources = open_sources(options)
    lists, missing = [], _MissingFiles()
    files, absent = select_files(options, tiers, folds, fixed=fixed)
    left_out = note_missing_lists([file.name for file in absent], "the folder of pairs does not have them")
    for file in files:
        listed = read_pairs(file)
        general = file.tier == GENERAL
        source = sources.get("fss" if general else "main")
        if source is None:
            why = "no --data fss=DIR was given" if general else "only --data fss=DIR was given"
            left_out.append(LeftOut(f"pairs of {listed.name}", len(listed.pairs), why))
            continue
        lists.append(_select_readable(options, listed, source, missing))
    if missing.pairs:
        examples, more = tuple(missing.files.values())[:EXAMPLES], len(missing.files) - EXAMPLES
        if options.subset != "available":
            names = ", ".join(examples) + (f" and {more} more" if more > 0 else "")
            what = f"{missing.pairs} pairs need images or masks that are not there: {names}"
            remedy = "complete the dataset, or run the rest with --subset available (scores are then not comparable)"
            raise DataError(what, file=options.data["pairs"], unit=next(iter(missing.files)), remedy=remedy)
        why = f"{len(missing.files)} images or masks are not there"
        left_out.append(LeftOut("pairs without their files", missing.pairs, why, examples))
    if missing.pairs or any(file.tier == gone.tier for file in files for gone in absent):
        # A list of which nothing is left has no record that could say so: the others say it.
        lists = [replace(one, settings=replace(one.settings, listing=one.settings.listing + IN_PART)) for one in lists]
    return OpenedLists(tuple(lists), tuple(left_out))


def select_files(
    options: OneShotOptions, tiers: Sequence[int], folds: Folds, *, fixed: bool
) -> tuple[list[PairFile], list[PairFile]]:
    """The files of these tiers and folds that the folder has, and those that it does not have."""
    folder = options.data["pairs"]
    present = list_pair_files(folder)
    sets = sorted({file.name.partition("/")[0] for file in present if file.tier == FIXED})
    wanted_set = "coco20i" if "coco" in options.data else "pascal5i"
    chosen_set = wanted_set if wanted_set in sets or len(sets) != 1 else sets[0]
    if folds is None:
        kind = [file for file in present if (file.name.startswith(f"{chosen_set}/") if fixed else file.tier in tiers)]
        folds = sorted({file.fold for file in kind if file.tier != GENERAL})
    if fixed:
        wanted = [locate_fixed_list(folder, chosen_set, fold) for fold in folds]
    else:
        wanted = [file for tier in tiers for file in _list_tier_files(folder, tier, folds)]
    names, known = {file.name for file in wanted}, {file.name for file in present}
    chosen = [file for file in present if file.name in names]
    if not chosen:
        what = f"fixed pairs of {wanted_set}" if fixed else f"tiers {', '.join(map(str, tiers))}"
        what = f"no list of the {what}" + (f" and folds {', '.join(map(str, folds))}" if folds else "")
        remedy = f"the folder has {', '.join(file.name for file in present) or 'no lists'}"
        raise DataError(what, file=folder, remedy=remedy)
    return chosen, [file for file in wanted if file.name not in known]


def note_missing_lists(names: Sequence[str], why: str) -> list[LeftOut]:
    """One note for all lists that are not there."""
    return [LeftOut("lists of pairs", len(names), why, tuple(names[:EXAMPLES]))] if names else []


def open_sources(options: OneShotOptions) -> dict[str, ClassMaskSource]:
    """The images and masks that are given: `fss` for tier 3, `main` for all else; an error without any."""
    given = {name: path for name, path in options.data.items() if name != "pairs"}
    main = {name: path for name, path in given.items() if name != "fss"}
    if not given:
        raise OptionError("the lists of pairs are given, and no images", remedy=f"beside pairs {_SOURCES_REMEDY}")
    if main and set(main) not in _SOURCES:
        names = ", ".join(sorted(main))
        raise OptionError(f"--data {names}: this combination is no source of images", remedy=_SOURCES_REMEDY)
    sources: dict[str, ClassMaskSource] = {}
    if "coco" in main:
        sources["main"] = open_coco(main["coco"])
    elif main:
        sources["main"] = open_class_mask_folders(main, labels=Path(options.labels) if options.labels else None)
    if "fss" in given:
        sources["fss"] = open_fss(given["fss"])
    return sources


def make_settings(options: OneShotOptions, source: ClassMaskSource, listing: str) -> PairSettings:
    """What the pairs of one list share."""
    return PairSettings(
        source,
        key=fingerprints.hash_value({name: str(path) for name, path in source.paths().items()} or repr(source)),
        listing=listing,
        size=0 if options.size == "original" else int(options.size),
        seed=options.seed,
        keep_prediction=options.keep_predictions,
        predictions=options.pred,
    )


def _list_tier_files(folder: Path, tier: int, folds: Sequence[int]) -> list[PairFile]:
    if tier == GENERAL:
        return [locate_tier_list(folder, tier)]
    return [locate_tier_list(folder, tier, fold, split) for fold in folds for split in (SPLITS if tier == 1 else ("",))]


def _open_planted_lists(options: OneShotOptions, tiers: Sequence[int], folds: Folds, *, fixed: bool) -> OpenedLists:
    settings = make_settings(options, PlantedScenes(make_planted_world(options)), PLANTED)
    planted = list_planted_pairs(options, tiers, folds, fixed=fixed)
    has = f"the planted world has folds 0 to {PLANTED_FOLDS - 1}"
    unknown = [f"fold {fold}" for fold in folds or () if fold >= PLANTED_FOLDS]
    if not planted:
        raise DataError(f"no list of these tiers and of {', '.join(unknown) or 'these scenes'}", remedy=has)
    lists = tuple(OpenedList(name, pairs, settings) for name, pairs in planted)
    needs_folds = fixed or any(tier != GENERAL for tier in tiers)
    return OpenedLists(lists, tuple(note_missing_lists(unknown if needs_folds else [], has)))


@dataclass
class _MissingFiles:
    """How many pairs of all lists lack a file, and what is missing, by token in the order met."""

    pairs: int = 0
    files: dict[str, str] = field(default_factory=dict)


def _select_readable(
    options: OneShotOptions, listed: PairList, source: ClassMaskSource, missing: _MissingFiles
) -> OpenedList:
    tokens = dict.fromkeys(token for pair in listed.pairs for token in (pair.query, pair.support))
    lacking = {token: source.missing(token) for token in tokens}
    kept = [pair for pair in listed.pairs if not (lacking[pair.query] or lacking[pair.support])]
    missing.pairs += len(listed.pairs) - len(kept)
    missing.files |= {token: what for token, what in lacking.items() if what and token not in missing.files}
    origin = "published" if listed.published else "built"
    part = "" if len(kept) == len(listed.pairs) else f", {len(kept)} of {len(listed.pairs)} pairs"
    named = tuple(token for token, lost in lacking.items() if not lost)
    return OpenedList(listed.name, tuple(kept), make_settings(options, source, origin + part), named)


class StudyOptions(OneShotOptions):
    """How many pairs a study takes."""

    pairs_a_class: int = option(
        50,
        "Pairs of each class: drawn at random, or taken from the fixed lists where --data pairs=DIR is given.",
        changes="units",
        ge=1,
    )


def open_study_lists(options: StudyOptions) -> OpenedLists:
    """Lists by fold with at most `pairs_a_class` pairs of each class."""
    if options.data and "pairs" not in options.data:
        return _draw_lists(options)
    opened = open_lists(options, (), None, fixed=True)
    return replace(opened, lists=tuple(_sample_list(listed, options) for listed in opened.lists))


def list_other_class_tokens(listed: OpenedList) -> dict[str, tuple[str, ...]]:
    """For each class of the list, all supports that show another class of it, sorted."""
    source = listed.settings.source
    tokens = sorted({pair.support for pair in listed.pairs})
    classes = {token: source.class_of(token) for token in tokens}
    return {name: tuple(token for token in tokens if classes[token] != name) for name in sorted(set(classes.values()))}


def _draw_lists(options: StudyOptions) -> OpenedLists:
    sources = open_sources(options)
    source = sources.get("main") or sources["fss"]
    tokens: dict[str, list[str]] = {}
    for token in source.tokens():
        tokens.setdefault(source.class_of(token), []).append(token)
    present = [name for name in source.classes if len(tokens.get(name, ())) > 1]
    settings = make_settings(options, source, DRAWN)
    lists = []
    for fold, names in enumerate(split_into_folds(present, min(STUDY_FOLDS, len(present)))):
        drawn = draw_random_pairs(tokens, names, seed=options.seed, most=options.pairs_a_class)
        pairs = tuple(Pair(query, support, 0, fold, "", line) for line, (query, support) in enumerate(drawn, 1))
        lists.append(OpenedList(f"random/fold{fold}", pairs, settings))
    failed = source.unreadable()
    why = "image or truth cannot be read, so no pair was drawn with them"
    examples = tuple(f"{image}: {reason}" for image, reason in list(failed.items())[:EXAMPLES])
    return OpenedLists(tuple(lists), (LeftOut("images", len(failed), why, examples),) if failed else ())


def _sample_list(listed: OpenedList, options: StudyOptions) -> OpenedList:
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
