"""A one-shot segmenter that finds the support's class, unless it follows salience or never looks at the support.

The two faults meet on no pair. `saliency` spoils pairs whose support's class is in the query: TOSS must show it as a
gap between salient and other targets. `support_blind` spoils pairs whose support shows nothing of the query (another
class, no mask, an empty image): TOSS must show it as a loss on levels 4 to 6.

>>> import numpy as np
>>> from hardlook.world.signature import sign
>>> classes = np.full((8, 8), 13, np.uint8)
>>> classes[:4, :4], classes[4:, 4:] = 1, 3
>>> picture = sign(np.full((8, 8, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 3)
>>> def areas(mask, **dials):
...     [found] = PlantedOneShot(**dials).segment_queries([picture], [[Support(picture, mask)]])
...     return int(found[classes == 1].sum()), int(found[classes == 3].sum())
>>> nothing = np.zeros_like(classes, bool)
>>> areas(classes == 1), areas(classes == 1, saliency=1.0), areas(classes == 1, support_blind=1.0)
((16, 0), (0, 16), (16, 0))
>>> areas(nothing), areas(nothing, saliency=1.0), areas(nothing, support_blind=1.0)
((0, 0), (0, 0), (0, 16))
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import ModelError
from hardlook.models.planted.dials import checked, of_array, strikes
from hardlook.models.planted.glances import Glances
from hardlook.models.planted.subject import THINGS, main_concept
from hardlook.models.registry import register
from hardlook.models.roles import Image, Mask, Support
from hardlook.world.signature import read
from hardlook.world.vocabulary import VOID

NAME = "planted-one-shot"
RAGGED = 2  # pixels that a ragged border stands out
_THINGS = np.isin(np.arange(256), THINGS)


@register(NAME, role="one-shot-segmenter", summary="the support's class, or whatever is salient", licence="MIT")
class PlantedOneShot:
    """Finds the class under the support's mask in the query.

    `saliency`: share of pairs, among those whose support's class is in the query, where the query's salient objects
    (if there are any) are taken instead. `support_blind`: share of pairs, among those whose support shows nothing that
    is in the query, where the query's main object is taken instead of nothing. `ragged`: share of all pairs whose mask
    is two pixels too wide. All from 0 to 1. Black pixels, as a rotation leaves them, hold nothing.
    """

    def __init__(self, saliency: float = 0.0, support_blind: float = 0.0, ragged: float = 0.0, seed: int = 0) -> None:
        checked(saliency=saliency, support_blind=support_blind, ragged=ragged)
        self.saliency = saliency
        self.support_blind = support_blind
        self.ragged = ragged
        self.seed = seed

    def segment_queries(self, queries: Sequence[Image], supports: Sequence[Sequence[Support]]) -> list[Mask]:
        """One mask a query; empty where the support's class is not in it, or the support shows none."""
        if len(queries) != len(supports):
            raise ModelError(f"{len(queries)} queries came with {len(supports)} lists of supports")
        glances = Glances()
        return [self._segment(query, shown, glances) for query, shown in zip(queries, supports, strict=True)]

    def _segment(self, query: Image, supports: Sequence[Support], glances: Glances) -> Mask:
        truth = glances.look(read, query)
        arrays = (query, *(part for shown in supports for part in (shown.image, shown.mask)))

        def struck(name: str, dial: float) -> bool:
            # Fingerprints take longer than all the rest: a dial at 0 or 1 needs none.
            if not 0 < dial < 1:
                return dial == 1
            return strikes(dial, self.seed, NAME, *(glances.look(of_array, part) for part in arrays), name)

        shown = _all_of(truth.classes, _shown_class(supports, glances))
        if shown.any():
            salient = truth.salient & _THINGS[truth.classes]
            # Where nothing is salient there is nothing to follow: the support's class is found after all.
            found = salient if salient.any() and struck("saliency", self.saliency) else shown
        else:
            blind = struck("support_blind", self.support_blind)
            found = _all_of(truth.classes, main_concept(truth)) if blind else shown
        if not struck("ragged", self.ragged):
            return found
        square = np.ones((2 * RAGGED + 1, 2 * RAGGED + 1), np.uint8)
        widened: Mask = cv2.dilate(found.astype(np.uint8), square).astype(bool)
        return widened


def _all_of(classes: NDArray[np.uint8], code: int) -> Mask:
    found: Mask = (classes == code) & (code != VOID)
    return found


def _shown_class(supports: Sequence[Support], glances: Glances) -> int:
    counts = np.zeros(32, np.int64)
    for shown in supports:
        counts += np.bincount(glances.look(read, shown.image).classes[shown.mask], minlength=32)
    best = THINGS[int(counts[list(THINGS)].argmax())]
    return best if counts[best] else VOID
