"""The planted world as a source of images and class masks, and TOSS's tiers on it by the rules for any data.

Eight concepts make two folds of four, the other four are tier 3. A target is salient if the planted saliency model
finds it, and easy if a planted segmenter with ragged borders still reaches an IoU of .75: small objects are hard.

>>> source = PlantedScenes(PlantedWorld(count=24))
>>> token = source.tokens()[0]
>>> source.class_of(token), source.read_image(token).shape, bool(source.read_mask(token).mask.any())
('cat', (120, 160, 3), True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hardlook.data.class_masks import ClassMask
from hardlook.data.toss_pairs import SPLITS, Pair
from hardlook.metrics.mask_attributes import mask_iou
from hardlook.models.planted.saliency import PlantedSaliency
from hardlook.models.planted.segmenters import PlantedSegmenter
from hardlook.models.roles import Image, LabelMap, Mask
from hardlook.randomness import generator
from hardlook.toss.options import OneShotOptions
from hardlook.toss.tiers.rules import (
    assign_partition,
    build_generalisation,
    build_query_complexity,
    build_support_cognizance,
    draw_random_pairs,
    group_members,
    split_into_folds,
)
from hardlook.world.planted import PlantedWorld
from hardlook.world.render import RenderedScene
from hardlook.world.vocabulary import CONCEPTS, VOID

PLANTED = "planted world"
FOLDS = 2
GENERAL_CLASSES = 4
MAX_BASES, MAX_FIXED = 12, 60  # images of a class in tier 2, pairs of a class in the fixed lists
SALIENT = 0.5
MIN_PIXELS = 40  # an object with fewer visible pixels is not a target
NOT_LABELLED = 255


@dataclass(frozen=True)
class PlantedScenes:
    """Scenes of a world; the token `3_0007` is the third concept in scene 7."""

    world: PlantedWorld

    @property
    def classes(self) -> tuple[str, ...]:
        """The concepts, in the vocabulary's order."""
        return tuple(label.name for label in CONCEPTS)

    def paths(self) -> Mapping[str, Path]:
        """No files: scenes are drawn."""
        return {}

    def class_of(self, token: str) -> str:
        """The concept of a token."""
        return self.classes[_parse(token)[0] - 1]

    def image_of(self, token: str) -> str:
        """The scene of a token."""
        return f"scene-{token.partition('_')[2]}"

    def missing(self, token: str) -> str:
        """Nothing is missing: scenes are drawn."""
        return ""

    def read_image(self, token: str) -> Image:
        """The picture (120, 160, 3)."""
        return render_scene(self.world, _parse(token)[1]).image

    def read_mask(self, token: str) -> ClassMask:
        """The concept's visible pixels."""
        number, scene = _parse(token)
        classes = render_scene(self.world, scene).classes
        return ClassMask(classes == CONCEPTS[number - 1].code, classes == VOID)

    def read_classes(self, image: str) -> NDArray[np.int32]:
        """Concept numbers (H, W), 0 for anything else, 255 where nothing is labelled."""
        classes = render_scene(self.world, int(image.removeprefix("scene-"))).classes
        numbers = np.zeros(256, np.int32)
        numbers[[label.code for label in CONCEPTS]] = np.arange(1, len(CONCEPTS) + 1)
        numbers[VOID] = NOT_LABELLED
        return numbers[classes]

    def tokens(self) -> tuple[str, ...]:
        """Every concept that is seen in every scene, by concept, then scene."""
        seen = []
        for scene in range(len(self.world)):
            counts = np.bincount(render_scene(self.world, scene).classes.ravel(), minlength=32)
            seen += [(number, scene) for number, label in enumerate(CONCEPTS, 1) if counts[label.code] >= MIN_PIXELS]
        return tuple(f"{number}_{scene:04d}" for number, scene in sorted(seen))

    def unreadable(self) -> Mapping[str, str]:
        """No scene: they are drawn."""
        return {}


@lru_cache(maxsize=512)
def render_scene(world: PlantedWorld, scene: int) -> RenderedScene:
    """A scene, drawn once: many tokens and pairs share it."""
    return world[scene]


def _parse(token: str) -> tuple[int, int]:
    """The numbers of the concept, from 1, and of the scene."""
    number, _, scene = token.partition("_")
    return int(number), int(scene)


def make_planted_world(options: OneShotOptions) -> PlantedWorld:
    """The world that is used if no data is given."""
    return PlantedWorld(seed=options.seed, count=options.scenes)


def list_tested_concepts() -> tuple[tuple[str, ...], ...]:
    """The concepts of each fold; those of tier 3 are in none.

    >>> list_tested_concepts()[1]
    ('house', 'barn', 'apple', 'pear')
    """
    return split_into_folds([label.name for label in CONCEPTS[: len(CONCEPTS) - GENERAL_CLASSES]], FOLDS)


def list_planted_pairs(
    options: OneShotOptions, tiers: Sequence[int], folds: Sequence[int] | None, *, fixed: bool
) -> list[tuple[str, tuple[Pair, ...]]]:
    """The lists of these tiers and folds with their names; `folds` None means all, unknown folds have none."""
    return [
        (name, pairs)
        for name, pairs in _make_lists(make_planted_world(options))
        if pairs
        and (folds is None or pairs[0].fold in folds or pairs[0].fold < 0)
        and (pairs[0].tier == 0 if fixed else pairs[0].tier in tiers)
    ]


@lru_cache(maxsize=4)
def _make_lists(world: PlantedWorld) -> tuple[tuple[str, tuple[Pair, ...]], ...]:
    source = PlantedScenes(world)
    salience, partitions = _measure_scenes(source)
    classes = {token: source.class_of(token) for token in partitions}
    members = group_members(partitions, classes)
    tokens = {name: [token for token in partitions if classes[token] == name] for name in source.classes}
    folds = list_tested_concepts()
    lists: dict[str, list[Pair]] = {}
    for fold, names in enumerate(folds):
        for split in SPLITS:
            cells = build_query_complexity(members, names, split, seed=world.seed)
            lists[f"tier1/fold{fold}/{split}"] = [Pair(*pair, 1, fold, split) for cell in cells for pair in cell.pairs]
        lists[f"tier2/fold{fold}"] = _make_tier_2(tokens, names, fold, world)
        drawn = draw_random_pairs(tokens, names, seed=world.seed, most=MAX_FIXED)
        lists[f"fixed/fold{fold}"] = [Pair(*pair, 0, fold) for pair in drawn]
    general = {
        name: {token: salience[token] for token in tokens[name]} for name in source.classes[sum(map(len, folds)) :]
    }
    built = build_generalisation(general, (), seed=world.seed)
    lists["tier3"] = [Pair(*pair, 3, -1) for pairs in built.values() for pair in pairs]
    return tuple(
        (name, tuple(replace(pair, line=number) for number, pair in enumerate(pairs, 1)))
        for name, pairs in lists.items()
    )


def _measure_scenes(source: PlantedScenes) -> tuple[dict[str, float], dict[str, str]]:
    """The salience of every token, and its partition."""
    saliency, supervised = PlantedSaliency(), PlantedSegmenter(ragged=1.0)
    answers: dict[str, tuple[Mask, LabelMap]] = {}
    salience, partitions = {}, {}
    for token in source.tokens():
        scene = source.image_of(token)
        if scene not in answers:
            image = source.read_image(token)
            answers[scene] = saliency.saliency([image])[0] > SALIENT, supervised.segment([image])[0]
        salient, named = answers[scene]
        mask = source.read_mask(token).mask
        label = supervised.labels.index(source.class_of(token))
        salience[token] = mask_iou(mask, salient)
        partitions[token] = assign_partition(mask_iou(mask, named == label), salience[token])
    return salience, partitions


def _make_tier_2(tokens: dict[str, list[str]], names: Sequence[str], fold: int, world: PlantedWorld) -> list[Pair]:
    """Tier 2 from a dozen images per class; scenes in one context are similar, others are not."""
    some = {}
    for name in names:
        order = generator(world.seed, "planted tier 2", name).permutation(len(tokens[name]))
        some[name] = sorted(tokens[name][place] for place in order[:MAX_BASES])
    context = {token: world.context(_parse(token)[1]) for own in some.values() for token in own}
    pairs = [(query, support) for own in some.values() for query in own for support in own if query != support]
    order = generator(world.seed, "planted tier 2", "pairs", fold).permutation(len(pairs))
    similar = {pairs[place]: context[pairs[place][0]] == context[pairs[place][1]] for place in order}
    return build_support_cognizance(some, names, similar, fold=fold, seed=world.seed)
