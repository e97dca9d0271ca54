"""A semantic segmenter that knows the truth and names objects wrongly as often as its dials say.

Open metrics must forgive `sibling` more than `stranger`; both leave the borders alone, `ragged` leaves the names
alone and spoils the borders.

>>> import numpy as np
>>> from hardlook.world.signature import sign
>>> classes = np.full((8, 8), 1, np.uint8)
>>> cat = sign(np.full((8, 8, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> for dials in ({}, {"sibling": 1.0}, {"stranger": 1.0}):
...     segmenter = PlantedSegmenter(**dials)
...     segmenter.labels[segmenter.segment([cat])[0][0, 0]]
'cat'
'dog'
'car'
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardlook.models.planted.perception import Faults, perceive
from hardlook.models.registry import register
from hardlook.models.roles import Image, LabelMap
from hardlook.world.vocabulary import LABELS

NAME = "planted-segmenter"


@register(NAME, role="semantic-segmenter", summary="the truth, with siblings or strangers mixed up", licence="MIT")
class PlantedSegmenter:
    """Labels every pixel by the picture's signature.

    `sibling`, `stranger`: shares of objects called by the name of their sibling or stranger; `ragged`: share of
    objects whose border is off by up to three pixels. All from 0 to 1.
    """

    labels: Sequence[str] = tuple(label.name for label in LABELS)

    def __init__(self, sibling: float = 0.0, stranger: float = 0.0, ragged: float = 0.0, seed: int = 0) -> None:
        self.faults = Faults(sibling=sibling, stranger=stranger, ragged=ragged)
        self.seed = seed

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """One (H, W) int32 map an image: class code - 1, -1 for void."""
        return [perceive(image, self.faults, NAME, self.seed).codes.astype(np.int32) - 1 for image in images]
