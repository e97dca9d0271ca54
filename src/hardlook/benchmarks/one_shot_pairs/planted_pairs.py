"""TOSS's tiers on the planted world, by the rules that build them on any data.

Eight concepts make two folds of four, the other four are tier 3. A target is salient where the planted saliency model
finds it, and easy where a planted segmenter with ragged borders still reaches an IoU of .75: small objects are hard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from hardlook.benchmarks.one_shot_pairs.options import OneShotOptions
from hardlook.benchmarks.one_shot_pairs.planted_scenes import PlantedScenes
from hardlook.data.toss_pairs import SPLITS, Pair
from hardlook.metrics.mask_attributes import mask_iou
from hardlook.models.planted.saliency import PlantedSaliency
from hardlook.models.planted.segmenter import PlantedSegmenter
from hardlook.models.roles import LabelMap, Mask
from hardlook.randomness import generator
from hardlook.tiers.generalisation import generalisation
from hardlook.tiers.partitions import Members, folds_of, members_of, partition_of
from hardlook.tiers.query_complexity import query_complexity
from hardlook.tiers.random_pairs import random_pairs
from hardlook.tiers.support_cognizance import support_cognizance
from hardlook.world.planted import PlantedWorld

PLANTED = "planted world"
FOLDS = 2
GENERAL_CLASSES = 4
MOST_BASES, MOST_FIXED = 12, 60
SALIENT = 0.5
Lists = list[tuple[str, tuple[Pair, ...]]]


def planted_world(options: OneShotOptions) -> PlantedWorld:
    """The world that stands in when no data is given."""
    return PlantedWorld(seed=options.seed, count=options.scenes)


def planted_source(options: OneShotOptions) -> PlantedScenes:
    """Its scenes as images with class masks."""
    return PlantedScenes(planted_world(options))


def planted_lists(options: OneShotOptions, tiers: Sequence[int], folds: Sequence[int] | None, *, fixed: bool) -> Lists:
    """The lists that were asked for, with their names; `folds` None means all, folds that there are not have none."""
    return [
        (name, pairs)
        for name, pairs in _all_lists(planted_world(options))
        if pairs
        and (folds is None or pairs[0].fold in folds or pairs[0].fold < 0)
        and (pairs[0].tier == 0 if fixed else pairs[0].tier in tiers)
    ]


@lru_cache(maxsize=4)
def _all_lists(world: PlantedWorld) -> tuple[tuple[str, tuple[Pair, ...]], ...]:
    source = PlantedScenes(world)
    salience, partitions = _measured(source)
    classes = {token: source.class_of(token) for token in partitions}
    members = members_of(partitions, classes)
    tokens = {name: [token for token in partitions if classes[token] == name] for name in source.classes}
    seen = source.classes[: len(source.classes) - GENERAL_CLASSES]
    lists: Lists = []
    for fold, names in enumerate(folds_of(seen, FOLDS)):
        lists += [(f"tier1/fold{fold}/{split}", _tier1(members, names, fold, split, world.seed)) for split in SPLITS]
        lists.append((f"tier2/fold{fold}", _tier2(tokens, names, fold, world)))
        drawn = random_pairs(tokens, names, seed=world.seed, most=MOST_FIXED)
        lists.append((f"fixed/fold{fold}", _numbered(Pair(query, support, 0, fold, "", 0) for query, support in drawn)))
    strangers = {name: {token: salience[token] for token in tokens[name]} for name in source.classes[len(seen) :]}
    general = generalisation(strangers, (), seed=world.seed)
    lists.append(
        ("tier3", _numbered(Pair(query, support, 3, -1, "", 0) for rows in general.values() for query, support in rows))
    )
    return tuple(lists)


def _measured(source: PlantedScenes) -> tuple[dict[str, float], dict[str, str]]:
    """The salience of every token, and its partition."""
    eye, supervised = PlantedSaliency(), PlantedSegmenter(ragged=1.0)
    salient: dict[str, Mask] = {}
    named: dict[str, LabelMap] = {}
    salience, partitions = {}, {}
    for token in source.tokens():
        scene = source.image_of(token)
        if scene not in salient:
            image = source.read_image(token)
            salient[scene] = eye.saliency([image])[0] > SALIENT
            named[scene] = supervised.segment([image])[0]
        mask = source.read_mask(token).mask
        label = supervised.labels.index(source.class_of(token))
        salience[token] = mask_iou(mask, salient[scene])
        partitions[token] = partition_of(mask_iou(mask, named[scene] == label), salience[token])
    return salience, partitions


def _tier1(members: Members, names: Sequence[str], fold: int, split: str, seed: int) -> tuple[Pair, ...]:
    cells = query_complexity(members, names, split, seed=seed)
    return _numbered(Pair(query, support, 1, fold, split, 0) for cell in cells for query, support in cell.pairs)


def _tier2(tokens: dict[str, list[str]], names: Sequence[str], fold: int, world: PlantedWorld) -> tuple[Pair, ...]:
    """Tier 2 from a dozen images a class; scenes in one context are alike, others are not."""
    some = {}
    for name in names:
        order = generator(world.seed, "planted tier 2", name).permutation(len(tokens[name]))
        some[name] = sorted(tokens[name][place] for place in order[:MOST_BASES])
    context = {token: world.context(int(token.partition("_")[2])) for own in some.values() for token in own}
    pairs = [(query, support) for own in some.values() for query in own for support in own if query != support]
    order = generator(world.seed, "planted tier 2", "pairs", fold).permutation(len(pairs))
    similar = {pairs[place]: context[pairs[place][0]] == context[pairs[place][1]] for place in order}
    return _numbered(support_cognizance(some, names, similar, fold=fold, seed=world.seed))


def _numbered(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    return tuple(replace(pair, line=number) for number, pair in enumerate(pairs, 1))
