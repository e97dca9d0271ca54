"""Pair lists and the images they name: which lists a run takes, which of their pairs can be read, what is left out.

`open_lists` serves TOSS, `open_study_lists` the bias studies: a sample of the fixed lists, or random pairs of one class
where only images are given.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from hardlook import fingerprints
from hardlook.data.class_masks import ClassMaskSource, open_class_mask_folders, open_coco, open_fss
from hardlook.data.class_tokens import parse_numbered_token
from hardlook.data.toss_pairs import (
    SPLITS,
    Pair,
    PairFile,
    PairList,
    list_pair_files,
    locate_fixed_list,
    locate_tier_list,
    read_pair,
    read_pairs,
)
from hardlook.errors import DataError, OptionError
from hardlook.harness.options import option
from hardlook.harness.scorecard import LeftOut
from hardlook.randomness import generator
from hardlook.toss.folds import (
    check_folds_are_known,
    choose_fixed_set,
    describe_unknown_class,
    find_tested_classes,
    list_folds,
)
from hardlook.toss.options import GENERAL, OneShotOptions
from hardlook.toss.pairs import PairSettings
from hardlook.toss.planted_pairs import FOLDS as PLANTED_FOLDS
from hardlook.toss.planted_pairs import PLANTED, PlantedScenes, list_planted_pairs, make_planted_world
from hardlook.toss.tiers.folder import check_built_lists
from hardlook.toss.tiers.rules import draw_random_pairs, split_into_folds

EXAMPLES = 5
STUDY_FOLDS = 4  # of pairs drawn from images; lists bring their own
DRAWN = "drawn from the images given"
IN_PART = ", others in part"

_SOURCES = ({"voc"}, {"voc", "binary"}, {"images", "masks"}, {"images", "binary"}, {"coco"})
_SOURCES_REMEDY = "give voc=DIR, coco=DIR, or images=DIR with masks=DIR and --labels FILE; fss=DIR for tier 3"


@dataclass(frozen=True)
class OpenedList:
    """The readable pairs of a list, what they share, and all its readable tokens (`named`), with or without partner."""

    name: str
    pairs: tuple[Pair, ...]
    settings: PairSettings
    named: tuple[str, ...] = ()

    @property
    def fold(self) -> int:
        """The fold of its pairs; -1 where they have none."""
        return self.pairs[0].fold if self.pairs else -1


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


def open_lists(options: OneShotOptions, tiers: Sequence[int], *, fixed: bool, per_fold: bool = False) -> OpenedLists:
    """The lists of these tiers and folds; an error where images are missing and --subset does not allow that.

    With `per_fold` tier 3 is opened once for each fold: its models answer the same pairs.
    """
    if not options.data:
        opened = _open_planted_lists(options, tiers, fixed=fixed)
    elif "pairs" not in options.data:
        what = "the images are given, and no lists of pairs"
        raise OptionError(what, remedy="give --data pairs=TOSS_REPOSITORY, or make lists with `hardlook build toss`")
    else:
        opened = _open_files(options, tiers, fixed=fixed)
    if per_fold and GENERAL in tiers and not fixed:
        folds = list_folds(options, tiers, fixed=False)
        check_folds_are_known(folds, options.data.get("pairs"))
        opened = replace(opened, lists=tuple(_repeat_general_lists(opened.lists, folds)))
    return _add_training_classes(opened, options)


def _open_files(options: OneShotOptions, tiers: Sequence[int], *, fixed: bool) -> OpenedLists:
    check_built_lists(options.data["pairs"])
    sources = open_sources(options)
    lists, missing = [], _MissingFiles()
    files, absent = select_files(options, tiers, fixed=fixed)
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
    if missing.unknown:
        left_out.append(_handle_unknown_classes(options, missing))
    if missing.pairs:
        examples, more = tuple(missing.files.values())[:EXAMPLES], len(missing.files) - EXAMPLES
        if options.subset != "available":
            names = ", ".join(examples) + (f" and {more} more" if more > 0 else "")
            what = f"{missing.pairs} pairs need images or masks that are not there: {names}"
            remedy = "complete the dataset, or run the rest with --subset available (scores are then not comparable)"
            raise DataError(what, file=options.data["pairs"], unit=next(iter(missing.files)), remedy=remedy)
        why = f"{len(missing.files)} images or masks are not there"
        left_out.append(LeftOut("pairs without their files", missing.pairs, why, examples))
    if missing.pairs or missing.unknown or any(file.tier == gone.tier for file in files for gone in absent):
        # A list of which nothing is left has no record that could say so: the others say it.
        lists = [replace(one, settings=replace(one.settings, listing=one.settings.listing + IN_PART)) for one in lists]
    return OpenedLists(tuple(lists), tuple(left_out))


def find_pair(
    options: OneShotOptions, tiers: Sequence[int], place: tuple[int, int, str], line: int, *, fixed: bool
) -> OpenedList | None:
    """The list with the one pair in that line of the file of `place`: tier, fold and, in tier 1, split.

    None where these options have no such pair, or its files are not there. What follows from all lists together (their
    training classes, and how many of their pairs are left) is not known.
    """
    file, settings = _open_once(options.model_dump_json(), type(options), tuple(tiers), fixed).get(place, (None, None))
    pair = None if file is None else read_pair(file, line)
    if file is None or settings is None or pair is None:
        return None
    tokens, source = (pair.query, pair.support), settings.source
    unknown = file.tier != GENERAL and any(_find_unknown_class(token, source) for token in tokens)
    if unknown or any(source.missing(token) for token in tokens):
        return None
    return OpenedList(file.name, (pair,), settings)


@lru_cache(maxsize=4)
def _open_once(
    dumped: str, kind: type[OneShotOptions], tiers: tuple[int, ...], fixed: bool
) -> dict[tuple[int, int, str], tuple[PairFile, PairSettings]]:
    """Files and settings of the lists of options as JSON, opened once for all pairs that are looked up."""
    options = kind.model_validate_json(dumped)
    settings = {name: make_settings(options, source, "") for name, source in open_sources(options).items()}
    files, _ = select_files(options, tiers, fixed=fixed)
    named = [(file, settings.get("fss" if file.tier == GENERAL else "main")) for file in files]
    return {(file.tier, file.fold, file.split): (file, own) for file, own in named if own is not None}


def _handle_unknown_classes(options: OneShotOptions, missing: _MissingFiles) -> LeftOut:
    """The note on pairs of classes that do not exist; an error unless --subset allows to leave them out."""
    pairs = sum(map(len, missing.unknown.values()))
    what = "; ".join(missing.unknown)
    lines = [line for some in missing.unknown.values() for line in some]
    if options.subset != "available":
        what = f"{what} (named by {pairs} of the pairs)"
        remedy = "correct the list, or give the dataset or --labels that the list was made for"
        raise DataError(what, file=options.data["pairs"], unit=lines[0], remedy=remedy)
    return LeftOut("pairs of classes that do not exist", pairs, what, tuple(lines[:EXAMPLES]))


def _repeat_general_lists(lists: Iterable[OpenedList], folds: Sequence[int]) -> list[OpenedList]:
    """Tier 3 once for each fold, the other lists as they are."""
    repeated = []
    for listed in lists:
        if listed.pairs and listed.pairs[0].tier == GENERAL:
            repeated += [
                replace(listed, pairs=tuple(replace(pair, fold=fold) for pair in listed.pairs)) for fold in folds
            ]
        else:
            repeated.append(listed)
    return repeated


def _add_training_classes(opened: OpenedLists, options: OneShotOptions) -> OpenedLists:
    """The lists with the training classes of their folds, and notes on repeated pairs and classes of other folds."""
    main = [one for one in opened.lists if one.pairs and one.pairs[0].tier != GENERAL]
    classes = main[0].settings.source.classes if main else _list_classes_beside_tier_3(opened.lists, options)
    tested = find_tested_classes(options, classes) if classes else {}
    named: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for listed in main:
        class_of = listed.settings.source.class_of
        named[listed.fold] |= dict.fromkeys(map(class_of, dict.fromkeys(pair.query for pair in listed.pairs)))
    lists = []
    for listed in opened.lists:
        own = tested.get(listed.fold) or tuple(named.get(listed.fold, ()))
        # Where the folds are known, a class that none of them tests is a class of tier 3.
        every = [name for name in classes if any(name in others for others in tested.values())] or classes
        training = tuple(name for name in every if name not in own) if own else None
        lists.append(replace(listed, settings=replace(listed.settings, training_classes=training)))
    notes = [*_note_repeated_pairs(opened.lists), *_note_other_classes(main, tested)]
    return OpenedLists(tuple(lists), (*opened.left_out, *notes))


def _list_classes_beside_tier_3(lists: Sequence[OpenedList], options: OneShotOptions) -> tuple[str, ...]:
    """The classes of the data where tier 3 runs alone: its models were trained on them as in a run of all tiers."""
    if all(listed.fold < 0 for listed in lists):
        return ()
    if not options.data:
        return tuple(lists[0].settings.source.classes)
    sources = open_sources(options)
    return tuple(sources["main"].classes) if "main" in sources else ()


def _note_repeated_pairs(lists: Iterable[OpenedList]) -> list[LeftOut]:
    """Pairs that a list has more than once: every line is a unit and counts."""
    examples, count = [], 0
    for listed in lists:
        first: dict[tuple[str, str, str, int], int] = {}
        for pair in listed.pairs:
            line = first.setdefault((pair.query, pair.support, pair.split, pair.transform), pair.line)
            if line != pair.line:
                count += 1
                examples.append(f"{listed.name}: line {pair.line} repeats line {line}")
    why = "the line repeats an earlier line of its list; both count"
    return [LeftOut("repeated pairs", count, why, tuple(examples[:EXAMPLES]), kept=True)] if count else []


def _note_other_classes(lists: Sequence[OpenedList], tested: Mapping[int, Sequence[str]]) -> list[LeftOut]:
    """Queries of a class that their fold does not test: its model was trained on it.

    Where the classes of the folds are not known, a class is tested by the fold whose lists name it most.
    """
    pairs: Counter[tuple[str, int]] = Counter()
    for listed in lists:
        for token, count in Counter(pair.query for pair in listed.pairs).items():
            pairs[listed.settings.source.class_of(token), listed.fold] += count
    most: dict[str, int] = {}
    for (name, fold), _ in sorted(pairs.items(), key=lambda one: (-one[1], one[0])):
        most.setdefault(name, fold)
    found: Counter[str] = Counter()
    for listed in lists:
        class_of, fold = listed.settings.source.class_of, listed.fold
        per_token = {token: class_of(token) for token in dict.fromkeys(pair.query for pair in listed.pairs)}
        outside = {
            name for name in per_token.values() if (name not in tested[fold] if fold in tested else most[name] != fold)
        }
        if outside:
            found.update(
                f"{per_token[pair.query]} in {listed.name}" for pair in listed.pairs if per_token[pair.query] in outside
            )
    why = "the lists of a fold name a class that another fold tests, so its model was trained on it; they count"
    examples = tuple(f"{name}: {count} pairs" for name, count in found.items())[:EXAMPLES]
    return [LeftOut("pairs of classes of another fold", found.total(), why, examples, kept=True)] if found else []


def select_files(
    options: OneShotOptions, tiers: Sequence[int], *, fixed: bool
) -> tuple[list[PairFile], list[PairFile]]:
    """The files of these tiers and folds that the folder has, and those that it does not have."""
    folder = options.data["pairs"]
    present = list_pair_files(folder)
    chosen_set = choose_fixed_set(folder, "coco" in options.data)
    folds = list_folds(options, tiers, fixed=fixed)
    if fixed:
        wanted = [locate_fixed_list(folder, chosen_set, fold) for fold in folds]
    else:
        wanted = [file for tier in tiers for file in _list_tier_files(folder, tier, folds)]
    names, known = {file.name for file in wanted}, {file.name for file in present}
    chosen = [file for file in present if file.name in names]
    if not chosen:
        what = f"fixed pairs of {chosen_set}" if fixed else f"tiers {', '.join(map(str, tiers))}"
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
        raise OptionError(f"--data {names}: this combination is not a source of images", remedy=_SOURCES_REMEDY)
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


def _open_planted_lists(options: OneShotOptions, tiers: Sequence[int], *, fixed: bool) -> OpenedLists:
    folds = options.folds
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
    """How many pairs of all lists lack a file, and what is missing, by token in the order met.

    `unknown` has the lines of pairs whose class does not exist, by what is wrong with it.
    """

    pairs: int = 0
    files: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, list[str]] = field(default_factory=dict)


def _select_readable(
    options: OneShotOptions, listed: PairList, source: ClassMaskSource, missing: _MissingFiles
) -> OpenedList:
    tokens = dict.fromkeys(token for pair in listed.pairs for token in (pair.query, pair.support))
    general = bool(listed.pairs) and listed.pairs[0].tier == GENERAL
    wrong = {} if general else {token: _find_unknown_class(token, source) for token in tokens}
    lacking = {token: source.missing(token) for token in tokens}
    kept = []
    for pair in listed.pairs:
        if problem := wrong.get(pair.query) or wrong.get(pair.support):
            missing.unknown.setdefault(problem, []).append(f"{listed.name}, line {pair.line}")
        elif lost := [token for token in (pair.query, pair.support) if lacking[token]]:
            missing.pairs += 1
            missing.files |= {token: lacking[token] for token in lost if token not in missing.files}
        else:
            kept.append(pair)
    origin = "published" if listed.published else "built"
    part = "" if len(kept) == len(listed.pairs) else f", {len(kept)} of {len(listed.pairs)} pairs"
    named = tuple(token for token, lost in lacking.items() if not lost)
    return OpenedList(listed.name, tuple(kept), make_settings(options, source, origin + part), named)


def _find_unknown_class(token: str, source: ClassMaskSource) -> str:
    return describe_unknown_class(parse_numbered_token(token)[0], source.classes)


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
    opened = open_lists(options, (), fixed=True)
    return replace(opened, lists=tuple(_sample_list(listed, options) for listed in opened.lists))


def list_study_folds(options: StudyOptions) -> list[int]:
    """The folds of these options."""
    if options.folds is None and options.data and "pairs" not in options.data:
        return [listed.fold for listed in _draw_lists(options).lists if listed.pairs]
    return list_folds(options, (), fixed=True)


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
    folds = dict(enumerate(split_into_folds(present, min(STUDY_FOLDS, len(present)))))
    unknown = [f"fold {fold}" for fold in options.folds or () if fold not in folds]
    has = f"the classes of these images make folds 0 to {len(folds) - 1}"
    lists = []
    for fold in options.folds or folds:
        if fold in folds:
            drawn = draw_random_pairs(tokens, folds[fold], seed=options.seed, most=options.pairs_a_class)
            pairs = tuple(Pair(query, support, 0, fold, "", line) for line, (query, support) in enumerate(drawn, 1))
            own = replace(settings, training_classes=tuple(name for name in present if name not in folds[fold]))
            lists.append(OpenedList(f"random/fold{fold}", pairs, own))
    if not lists:
        raise DataError(f"there is no {', '.join(unknown)}", remedy=has)
    failed = source.unreadable()
    why = "image or truth cannot be read, so no pair was drawn with them"
    examples = tuple(f"{image}: {reason}" for image, reason in list(failed.items())[:EXAMPLES])
    notes = [LeftOut("images", len(failed), why, examples)] if failed else []
    return OpenedLists(tuple(lists), (*note_missing_lists(unknown, has), *notes))


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
