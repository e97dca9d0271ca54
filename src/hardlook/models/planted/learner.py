"""A few-shot learner that knows concepts, and follows the context instead as its dial says.

MetaCoCo must show `context` as a gap between tasks whose queries share their support's context and tasks where they
do not; `noise` costs both alike. Where queries share their support's context `context` changes no answer at all, even
if classes of the task share a context: among those that fit, it falls back on the concept.

>>> import numpy as np
>>> from hardlook.world.signature import sign
>>> def picture(concept, place):
...     classes = np.full((8, 8), place, np.uint8)
...     classes[2:5, 2:5] = concept
...     return sign(np.full((8, 8, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == concept)
>>> episode = Episode([picture(1, 15), picture(3, 16)], np.array([0, 1]), [picture(1, 16)], ways=2)
>>> [int(PlantedLearner(context=dial).classify([episode])[0].argmax()) for dial in (0.0, 1.0)]
[0, 1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.planted.dials import checked, of_array, strikes
from hardlook.models.planted.glances import Glances
from hardlook.models.planted.subject import ground, main_concept
from hardlook.models.registry import register
from hardlook.models.roles import Episode, Image
from hardlook.randomness import generator
from hardlook.world.signature import read

NAME = "planted-learner"
SECOND_LOOK, TIE_BREAK = 1e-3, 1e-5
Seen = tuple[int, int]
"""The codes of a picture's concept and of its context."""


@register(NAME, role="few-shot-learner", summary="matches concepts, or contexts", licence="MIT")
class PlantedLearner:
    """Scores a way by the share of its supports that show the query's concept.

    `context`: share of queries matched by context (the ground) instead, and by concept only among ways whose context
    fits alike; so its wrong answers go to ways whose supports show the query's context. `noise`: share scored at
    random, in any context. Both from 0 to 1.
    """

    accepts = "images"

    def __init__(self, context: float = 0.0, noise: float = 0.0, seed: int = 0) -> None:
        checked(context=context, noise=noise)
        self.context = context
        self.noise = noise
        self.seed = seed

    def classify(self, episodes: Sequence[Episode]) -> list[NDArray[np.float32]]:
        """(queries, ways) float32 scores in [0, 1.0011] an episode."""
        glances = Glances()
        return [self._classify(episode, glances) for episode in episodes]

    def _classify(self, episode: Episode, glances: Glances) -> NDArray[np.float32]:
        if isinstance(episode.support, np.ndarray) and episode.support.ndim == 2:
            raise ModelError("planted-learner works on images; feature vectors came", unit=episode.key or None)
        shown = [glances.look(_seen, image) for image in episode.support]
        rows = [self._scores(image, shown, episode, glances) for image in episode.query]
        return np.array(rows, np.float32).reshape(len(rows), episode.ways)

    def _scores(self, image: Image, shown: Sequence[Seen], episode: Episode, glances: Glances) -> NDArray[np.float64]:
        decision = (NAME, episode.key, glances.look(of_array, image))
        guess = generator(self.seed, *decision, "guess").random(episode.ways)
        if strikes(self.noise, self.seed, *decision, "noise"):
            return guess
        concept, context = glances.look(_seen, image)
        scores = _share([one == concept for one, _ in shown], episode)
        if strikes(self.context, self.seed, *decision, "context"):
            scores = _share([one == context for _, one in shown], episode) + SECOND_LOOK * scores
        # Where nothing matches, or several ways do, the choice is a guess and not always the first way.
        return scores + TIE_BREAK * guess


def _seen(image: Image) -> Seen:
    truth = read(image)
    return main_concept(truth), ground(truth)


def _share(alike: Sequence[bool], episode: Episode) -> NDArray[np.float64]:
    """(ways,) share of each way's supports that are like the query."""
    count = np.bincount(episode.support_labels, minlength=episode.ways)
    matched = np.bincount(episode.support_labels, weights=np.array(alike, float), minlength=episode.ways)
    shares: NDArray[np.float64] = matched / np.maximum(count, 1)
    return shares
