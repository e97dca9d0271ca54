"""A panoptic segmenter that knows the truth and misnames, roughens or misses objects as its dials say.

>>> import numpy as np
>>> from hardlook.world.signature import sign
>>> classes = np.full((16, 16), 13, np.uint8)
>>> classes[4:12, 2:10] = 1
>>> picture = sign(np.full((16, 16, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> [answer] = PlantedPanoptic(stranger=1.0).segment_panoptic([picture])
>>> {segment: PlantedPanoptic.labels[label] for segment, label in answer.labels.items()}
{1: 'car', 2: 'sky'}
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardlook.models.planted.perception import Faults, perceive
from hardlook.models.registry import register
from hardlook.models.roles import Image, Segments
from hardlook.world.vocabulary import LABELS, VOID

NAME = "planted-panoptic"


@register(NAME, role="panoptic-segmenter", summary="the true segments, misnamed, roughened or missed", licence="MIT")
class PlantedPanoptic:
    """Finds the objects and the stuff of the picture's signature.

    `sibling`, `stranger`: shares of objects called by the name of their sibling or stranger; `ragged`: share with
    borders off by up to three pixels; `missed`: share left blank. All from 0 to 1.
    """

    labels: Sequence[str] = tuple(label.name for label in LABELS)
    things: Sequence[bool] = tuple(label.thing for label in LABELS)

    def __init__(
        self, sibling: float = 0.0, stranger: float = 0.0, ragged: float = 0.0, missed: float = 0.0, seed: int = 0
    ) -> None:
        self.faults = Faults(sibling=sibling, stranger=stranger, ragged=ragged, missed=missed)
        self.seed = seed

    def segment_panoptic(self, images: Sequence[Image]) -> list[Segments]:
        """One `Segments` an image: an object a segment, then one segment for each stuff."""
        return [self._segment(image) for image in images]

    def _segment(self, image: Image) -> Segments:
        perceived = perceive(image, self.faults, NAME, self.seed)
        segments = np.zeros(perceived.owner.shape, np.int32)
        labels: dict[int, int] = {}
        for index, thing in enumerate(perceived.things):
            mask = perceived.owner == index + 1
            if thing.seen and mask.any():
                labels[len(labels) + 1] = thing.called - 1
                segments[mask] = len(labels)
        stuff = np.where(perceived.owner == 0, perceived.codes, VOID)
        for code in np.unique(stuff[stuff != VOID]):
            labels[len(labels) + 1] = int(code) - 1
            segments[stuff == code] = len(labels)
        return Segments(segments, labels)
