"""Planted models that learn from examples: a few-shot learner and a one-shot segmenter.

`PlantedLearner` knows concepts, and follows the context instead as its dial says. MetaCoCo must show `context` as a gap
between tasks whose queries share their support's context and tasks whose queries do not; `noise` costs both alike.
Where queries share their support's context, `context` changes no answer, even if classes of the task share a
context: among those that fit, it falls back on the concept.

>>> import numpy as np
>>> from hardlook.world.signature import write_signature
>>> def picture(concept, place):
...     classes = np.full((8, 8), place, np.uint8)
...     classes[2:5, 2:5] = concept
...     return write_signature(np.full((8, 8, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == concept)
>>> episode = Episode([picture(1, 15), picture(3, 16)], np.array([0, 1]), [picture(1, 16)], ways=2)
>>> [int(PlantedLearner(context=dial).classify([episode])[0].argmax()) for dial in (0.0, 1.0)]
[0, 1]

`PlantedOneShot` finds the support's class, unless it follows saliency or ignores the support. Its two faults never
meet on one pair. `saliency` spoils pairs whose support's class is in the query: TOSS must show it as a gap between
salient and other targets. `support_blind` spoils pairs whose support shows nothing of the query (another class, no
mask, an empty image): TOSS must show it as a loss on levels 4 to 6.

>>> classes = np.full((8, 8), 13, np.uint8)
>>> classes[:4, :4], classes[4:, 4:] = 1, 3
>>> query = write_signature(np.full((8, 8, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 3)
>>> def areas(mask, **dials):
...     [found] = PlantedOneShot(**dials).segment_queries([query], [[Support(query, mask)]])
...     return int(found[classes == 1].sum()), int(found[classes == 3].sum())
>>> nothing = np.zeros_like(classes, bool)
>>> areas(classes == 1), areas(classes == 1, saliency=1.0), areas(classes == 1, support_blind=1.0)
((16, 0), (0, 16), (16, 0))
>>> areas(nothing), areas(nothing, saliency=1.0), areas(nothing, support_blind=1.0)
((0, 0), (0, 0), (0, 16))
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.caching import LRUCache
from hardlook.errors import ModelError
from hardlook.fingerprints import hash_array
from hardlook.models.planted.dials import check_dials, spoils
from hardlook.models.planted.truth import THINGS, compute_once, ground, main_concept
from hardlook.models.roles import Episode, Image, Mask, Support, check_supports
from hardlook.randomness import generator
from hardlook.world.signature import read_signature
from hardlook.world.vocabulary import VOID

LEARNER_NAME, ONE_SHOT_NAME = "planted-learner", "planted-one-shot"
"""Part of the keys of random draws."""

CONCEPT_WEIGHT, GUESS_WEIGHT = 1e-3, 1e-5
"""Weights of the concept where the context decides, and of a guess that breaks ties."""

RAGGED = 2  # pixels by which a ragged border is too wide
_IS_THING = np.isin(np.arange(256), THINGS)

ConceptAndContext = tuple[int, int]
"""The codes of a picture's concept and of its context."""


class PlantedLearner:
    """Scores a way by the share of its supports that show the query's concept.

    `context`: share of queries matched by context (the ground) instead, and by concept only among ways whose context
    fits alike; so its wrong answers go to ways whose supports show the query's context. `noise`: share scored at
    random, in any context. Both from 0 to 1.
    """

    accepts = "images"

    def __init__(self, context: float = 0.0, noise: float = 0.0, seed: int = 0) -> None:
        check_dials(context=context, noise=noise)
        self.context, self.noise, self.seed = context, noise, seed

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 scores in [0, 1.0011] per episode."""
        cache: LRUCache[Any] = LRUCache(inf)
        return [self._classify(episode, cache) for episode in episodes]

    def _classify(self, episode: Episode, cache: LRUCache[Any]) -> NDArray[np.float32]:
        if isinstance(episode.support, np.ndarray) and episode.support.ndim == 2:
            raise ModelError("planted-learner works on images, got feature vectors", unit=episode.key or None)
        shown = [compute_once(cache, _concept_and_context, image) for image in episode.support]
        rows = [self._scores(image, shown, episode, cache) for image in episode.query]
        return np.array(rows, np.float32).reshape(len(rows), episode.ways)

    def _scores(
        self, image: Image, shown: Sequence[ConceptAndContext], episode: Episode, cache: LRUCache[Any]
    ) -> NDArray[np.float64]:
        decision = (LEARNER_NAME, episode.key, compute_once(cache, hash_array, image))
        guess = generator(self.seed, *decision, "guess").random(episode.ways)
        if spoils(self.noise, self.seed, *decision, "noise"):
            return guess
        concept, context = compute_once(cache, _concept_and_context, image)
        scores = _share([one == concept for one, _ in shown], episode)
        if spoils(self.context, self.seed, *decision, "context"):
            scores = _share([one == context for _, one in shown], episode) + CONCEPT_WEIGHT * scores
        # Where nothing matches, or several ways do, the choice is a guess and not always the first way.
        return scores + GUESS_WEIGHT * guess


def _concept_and_context(image: Image) -> ConceptAndContext:
    truth = read_signature(image)
    return main_concept(truth), ground(truth)


def _share(alike: Sequence[bool], episode: Episode) -> NDArray[np.float64]:
    """(ways,) share of each way's supports that are like the query."""
    count = np.bincount(episode.support_labels, minlength=episode.ways)
    matched = np.bincount(episode.support_labels, weights=np.array(alike, float), minlength=episode.ways)
    return matched / np.maximum(count, 1)


class PlantedOneShot:
    """Finds the class under the support's mask in the query.

    `saliency`: share of pairs, among those whose support's class is in the query, where the query's salient objects
    (if there are any) are taken instead. `support_blind`: share of pairs, among those whose support shows nothing that
    is in the query, where the query's main object is taken instead of nothing. `ragged`: share of all pairs whose mask
    is two pixels too wide. All from 0 to 1. Black pixels, as a rotation leaves them, hold nothing.
    """

    def __init__(self, saliency: float = 0.0, support_blind: float = 0.0, ragged: float = 0.0, seed: int = 0) -> None:
        check_dials(saliency=saliency, support_blind=support_blind, ragged=ragged)
        self.saliency, self.support_blind, self.ragged, self.seed = saliency, support_blind, ragged, seed

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask per query; empty where the support's class is not in it, or the support shows none."""
        check_supports(queries, supports)
        cache: LRUCache[Any] = LRUCache(inf)
        return [self._segment(query, shown, cache) for query, shown in zip(queries, supports, strict=True)]

    def _segment(self, query: Image, supports: Sequence[Support], cache: LRUCache[Any]) -> Mask:
        truth = compute_once(cache, read_signature, query)
        arrays = (query, *(part for shown in supports for part in (shown.image, shown.mask)))

        def is_spoiled(name: str, dial: float) -> bool:
            # Fingerprints take longer than all the rest: a dial at 0 or 1 needs none.
            if not 0 < dial < 1:
                return dial == 1
            return spoils(
                dial, self.seed, ONE_SHOT_NAME, *(compute_once(cache, hash_array, part) for part in arrays), name
            )

        shown = _mask_of_class(truth.classes, _shown_class(supports, cache))
        if shown.any():
            salient = truth.salient & _IS_THING[truth.classes]
            # Where nothing is salient there is nothing to follow: the support's class is found after all.
            found = salient if salient.any() and is_spoiled("saliency", self.saliency) else shown
        else:
            blind = is_spoiled("support_blind", self.support_blind)
            found = _mask_of_class(truth.classes, main_concept(truth)) if blind else shown
        if not is_spoiled("ragged", self.ragged):
            return found
        return cv2.dilate(found.astype(np.uint8), np.ones((2 * RAGGED + 1, 2 * RAGGED + 1), np.uint8)).astype(bool)


def _mask_of_class(classes: NDArray[np.uint8], code: int) -> Mask:
    return np.asarray((classes == code) & (code != VOID))


def _shown_class(supports: Sequence[Support], cache: LRUCache[Any]) -> int:
    counts = np.zeros(32, np.int64)
    for shown in supports:
        counts += np.bincount(compute_once(cache, read_signature, shown.image).classes[shown.mask], minlength=32)
    best = THINGS[int(counts[list(THINGS)].argmax())]
    return best if counts[best] else VOID
