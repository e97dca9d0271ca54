"""Contracts of models that learn from a few examples: one-shot segmenters and few-shot learners.

>>> from hardlook.models.planted.few_shot import PlantedLearner
>>> [(probe.check, len(probe.value.query)) for probe in FEW_SHOT.probes(PlantedLearner())]
[('episode', 4), ('several shots', 3), ('uneven shots', 2), ('one query', 1)]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hardlook.models.conformance.checks import RoleContract, describe_difference, find_array_faults, split_answers
from hardlook.models.conformance.probes import Probe, pictures, scene, scenes_by_concept, subject_of
from hardlook.models.roles import Episode, Support
from hardlook.randomness import generator

ENCODED: Mapping[str, tuple[int, ...]] = {"features": (16,), "maps": (16, 3, 4)}
"""Shape of one image in episodes of encoded images: a vector (D,) or a map (C, h, w), not square."""


def _pairs(model: Any) -> list[Probe]:
    images = pictures()
    shown = {name: Support(image, subject_of(image)) for name, image in pictures().items()}
    first, unmasked = shown["ordinary image"], np.zeros(images["tall image"].shape[:2], bool)
    pairs = [Probe(name, (image, [first])) for name, image in images.items()]
    return [
        *pairs,
        Probe("support of another size", (images["ordinary image"].copy(), [shown["wide image"]])),
        Probe("tiny support", (images["ordinary image"].copy(), [shown["tiny image"]])),
        Probe("several supports", (images["tall image"].copy(), list(shown.values())[:3])),
        Probe("support without a mask", (images["wide image"].copy(), [Support(images["tall image"], unmasked)])),
        Probe("black support", (images["tall image"].copy(), [shown["black image"]])),
    ]


def _segment_queries(model: Any, pairs: list[Any]) -> list[Any]:
    queries, supports = [query for query, _ in pairs], [shown for _, shown in pairs]
    return split_answers(model.segment_queries(queries, supports), len(pairs), "pairs")


def _query_mask_faults(model: Any, pair: Any, mask: Any) -> list[str]:
    height, width = pair[0].shape[:2]
    return find_array_faults("mask", mask, np.bool_, {"H": height, "W": width})


def _episodes(model: Any) -> list[Probe]:
    return [
        Probe("episode", _episode(model, "plain", ways=3, shots=[1, 1, 1], queries=4)),
        Probe("several shots", _episode(model, "shots", ways=2, shots=[3, 3], queries=3)),
        Probe("uneven shots", _episode(model, "uneven", ways=3, shots=[1, 3, 2], queries=2)),
        Probe("one query", _episode(model, "single", ways=2, shots=[1, 1], queries=1)),
    ]


def _episode(model: Any, key: str, ways: int, shots: list[int], queries: int) -> Episode:
    labels = np.repeat(np.arange(ways), shots).astype(np.int64)
    if model.accepts in ENCODED:
        random, shape = generator(0, "conformance", key), ENCODED[model.accepts]
        centres = random.standard_normal((ways, *shape))
        support = (centres[labels] + 0.1 * random.standard_normal((len(labels), *shape))).astype(np.float32)
        query = (centres[np.arange(queries) % ways] + 0.1).astype(np.float32)
        return Episode(support, labels, query, ways, key)
    shown = scenes_by_concept()
    support_scenes = [shown[way][shot] for way in range(ways) for shot in range(shots[way])]
    query_scenes = [shown[index % ways][-1 - index // ways] for index in range(queries)]
    images = [[scene(index).image.copy() for index in scenes] for scenes in (support_scenes, query_scenes)]
    return Episode(images[0], labels, images[1], ways, key)


def _score_faults(model: Any, episode: Episode, scores: Any) -> list[str]:
    return find_array_faults("scores", scores, np.float32, {"queries": len(episode.query), "ways": episode.ways})


def _accepts_faults(model: Any) -> list[str]:
    right = model.accepts in ("images", *ENCODED)
    return [] if right else [f'accepts: expected "images", "features" or "maps", got {model.accepts!r}']


def _query_order_faults(model: Any) -> list[str]:
    episode = _episode(model, "plain", ways=3, shots=[1, 1, 1], queries=4)
    [straight] = split_answers(model.classify([episode]), 1, "episodes")
    [turned] = split_answers(model.classify([replace(episode, query=episode.query[::-1])]), 1, "episodes")
    words = describe_difference("scores", straight, np.asarray(turned)[::-1])
    return [f"expected rows that follow the queries, but {words} when the queries are turned round"] if words else []


ONE_SHOT = RoleContract(
    input_name="pairs",
    probes=_pairs,
    call=_segment_queries,
    find_faults=_query_mask_faults,
    compare=lambda first, second: describe_difference("mask", first, second),
)

FEW_SHOT = RoleContract(
    input_name="episodes",
    probes=_episodes,
    call=lambda model, episodes: split_answers(model.classify(episodes), len(episodes), "episodes"),
    find_faults=_score_faults,
    compare=lambda first, second: describe_difference("scores", first, second),
    attribute_faults=_accepts_faults,
    extra_checks=(("order of queries", _query_order_faults),),
)
