"""The units of TOSS: the pairs of the lists, once for each number of shots.

They are sorted by fold, class and query image, so that the supports of a class are needed again while they are still
in memory: in the order of the lists each image of the published tier 1 would be read and encoded seven times.

With K shots a pair has its own support and K - 1 further images of its class, drawn by seed, none of them the query.

>>> draw_supports("1_a", "1_b", 3, ("1_a", "1_b", "1_c", "1_d"), image_of=lambda token: token[2:], seed=0, pair="x")
('1_b', '1_c', '1_d')
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from hardlook.caching import ArrayCache
from hardlook.data.toss_pairs import L2_OR_L3, Pair
from hardlook.errors import DataError, OptionError
from hardlook.harness.benchmark import Unit, UnitList
from hardlook.harness.scorecard import LeftOut
from hardlook.randomness import generator
from hardlook.toss.folds import list_folds
from hardlook.toss.options import COMPLEXITY, GENERAL, TossOptions
from hardlook.toss.pair_lists import EXAMPLES, OpenedList, find_pair, list_pair_sources, open_lists
from hardlook.toss.pairs import Labels, OneShotPair, SupportContent, add_salient_mask, add_similarity, read_pair

Pools = dict[tuple[str, str], tuple[str, ...]]
_UNIT_ID = re.compile(r"(?:tier([123])|fixed)(?:-fold(\d{1,9}))?(?:-([a-zA-Z][\w+]*))?-(\d{5,12})")
CONTENTS: dict[str, SupportContent] = {"L5": "no mask", "L6": "nothing"}


def list_sources(options: TossOptions) -> Mapping[str, Path | str]:
    """Pair lists and images, or the planted world; and the auxiliary models."""
    sources = dict(list_pair_sources(options))
    if saliency := options.saliency_model():
        sources["saliency model"] = saliency.fingerprint("saliency")
    if encoder := options.encoder_model():
        sources["encoder model"] = encoder.fingerprint("encoder")
    return sources


def list_run_folds(options: TossOptions) -> list[int]:
    """The folds of these options."""
    return list_folds(options, options.tiers, fixed=options.fixed)


def list_units(options: TossOptions) -> UnitList:
    """One unit per pair and number of shots, by fold, class and query image."""
    opened = open_lists(options, options.tiers, fixed=options.fixed, per_fold=options.per_fold)
    pairs = [pair for listed in opened.lists for pair in listed.pairs]
    if options.saliency and not any(pair.tier == COMPLEXITY for pair in pairs):
        raise OptionError("--saliency is used in tier 1 alone, and no pair is of it", remedy="omit it, or run tier 1")
    if options.encoder and not any(pair.split == L2_OR_L3 for pair in pairs):
        what = "--encoder separates L2 from L3, and no list pools them"
        raise OptionError(what, remedy="omit it; lists of `hardlook build toss` name L2 and L3 already")
    pools = collect_class_pools(opened.lists) if max(options.shots) > 1 else {}
    units: list[Unit] = []
    without: defaultdict[int, list[str]] = defaultdict(list)
    for listed in opened.lists:
        units += _make_units(listed, options, pools, without)
    if without and not units:
        what = f"--shots {min(without)}: no class has that many images beside the query"
        raise DataError(what, remedy="give fewer --shots, or more images")
    why = "the lists of the run name too few images of their class that are there"
    notes = [
        LeftOut(f"pairs of {shots} shots", len(names), why, tuple(names[:EXAMPLES]))
        for shots, names in sorted(without.items())
    ]
    units.sort(key=lambda unit: (unit.payload.slices["fold"], unit.payload.slices["class"], unit.group))
    return UnitList(units, [*opened.left_out, *notes])


def find_units(options: TossOptions, ids: Collection[str]) -> Mapping[str, Unit] | None:
    """The units with these ids, from their lines in the lists, for drawing them: see `find_pair` for what they lack.

    None on the planted world, and for several shots, whose further supports come from all lists.
    """
    if "pairs" not in options.data or max(options.shots) > 1:
        return None
    found = {}
    for name in ids:
        if not (parts := _UNIT_ID.fullmatch(name)):
            continue
        tier, fold, split, line = int(parts[1] or 0), int(parts[2] or -1), parts[3] or "", int(parts[4])
        place = (tier, -1 if tier == GENERAL else fold, split if tier == COMPLEXITY else "")
        listed = find_pair(options, options.tiers, place, line, fixed=options.fixed)
        if listed is None or (tier == GENERAL and options.per_fold != (fold >= 0)):
            continue
        if tier == GENERAL:  # the models of all folds answer it
            listed = replace(listed, pairs=(replace(listed.pairs[0], fold=fold),))
        (unit,) = _make_units(listed, options, {}, {})
        if unit.id == name:
            found[name] = unit
    return found


def prepare_unit(unit: Unit, cache: ArrayCache) -> Unit:
    """Read query, truth and supports; add saliency (tier 1) and similarity (where the list pools L2 and L3)."""
    pair = read_pair(unit.payload, unit.id, cache)
    if pair.settings.saliency and pair.slices["tier"] == COMPLEXITY:
        pair = add_salient_mask(pair, cache)
    if pair.settings.encoder and pair.slices["split"] == L2_OR_L3:
        pair = add_similarity(pair, cache)
    return replace(unit, payload=pair)


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


def collect_class_pools(lists: Iterable[OpenedList]) -> Pools:
    """Where further supports come from: by source and class, one token of each image, sorted.

    The pool of a class is every readable image that any list of the run names with it, even if the other image of
    its pair cannot be read. Images that no list names stay out: to find them all label maps would be read.
    """
    images: dict[tuple[str, str], dict[str, str]] = {}
    for listed in lists:
        source, key = listed.settings.source, listed.settings.key
        named = {*listed.named, *(token for pair in listed.pairs for token in (pair.query, pair.support))}
        # Tier 3 writes one image under several numbers: the first token represents it.
        for token in sorted(named, reverse=True):
            images.setdefault((key, source.class_of(token)), {})[source.image_of(token)] = token
    return {place: tuple(sorted(tokens.values())) for place, tokens in images.items()}


def draw_supports(
    query: str, support: str, shots: int, pool: Sequence[str], *, image_of: Callable[[str], str], seed: int, pair: str
) -> tuple[str, ...] | None:
    """The support first, then others of the pool (tokens of its class) drawn for this `pair` without the query's image.

    More shots keep those of fewer: the supports of 5 shots hold those of 3. None if the pool has too few images.
    """
    if shots == 1:
        return (support,)
    taken = {image_of(query), image_of(support)}
    free = [token for token in pool if image_of(token) not in taken]
    if len(free) < shots - 1:
        return None
    order = generator(seed, "shots", pair).permutation(len(free))
    return (support, *(free[position] for position in order[: shots - 1]))


def _make_units(
    listed: OpenedList, options: TossOptions, pools: Pools, without: Mapping[int, list[str]]
) -> Iterator[Unit]:
    """The units of a list; pairs whose class has too few images go to `without`, by number of shots."""
    settings = replace(listed.settings, saliency=options.saliency_model(), encoder=options.encoder_model())
    # A list names a token in many pairs.
    class_of, image_of = cache(settings.source.class_of), cache(settings.source.image_of)
    for shots in options.shots:
        for pair in listed.pairs:
            name, class_name = unit_id(pair, 1), class_of(pair.query)
            # The models of all folds get the same further supports.
            drawn_for = unit_id(replace(pair, fold=-1), 1) if pair.tier == GENERAL else name
            tokens = (pair.query, pair.support, shots, pools.get((settings.key, class_of(pair.support)), ()))
            supports = draw_supports(*tokens, image_of=image_of, seed=options.seed, pair=drawn_for)
            if supports is None:
                without[shots].append(name)
                continue
            slices: Labels = {
                "tier": pair.tier,
                "fold": pair.fold,
                "split": pair.split,
                "class": class_name,
                "shots": shots,
                "mixed": pair.tier == GENERAL and class_name != class_of(pair.support),
            }
            content = CONTENTS.get(pair.split, "as it is")
            payload = OneShotPair(settings, pair.query, supports, slices, pair.transform, content)
            # An image with two classes is two groups: in one it would bring the other class's supports along.
            yield Unit(unit_id(pair, shots), payload, group=f"{class_name}/{image_of(pair.query)}")
