"""An image encoder that sees the concept, and the context instead as its dial says.

>>> import numpy as np
>>> from hardlook.world.signature import sign
>>> classes = np.full((20, 16), 1, np.uint8)
>>> picture = sign(np.full((20, 16, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> seen = PlantedEncoder().encode([picture])
>>> seen.vectors.shape, seen.maps[0].shape
((1, 64), (64, 3, 2))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardlook.models.planted.dials import checked
from hardlook.models.planted.space import DIMENSION, turned
from hardlook.models.planted.views import map_of, vector_of
from hardlook.models.registry import register
from hardlook.models.roles import Features, Image


@register("planted-encoder", role="encoder", summary="vectors of the concept, or of its context", licence="MIT")
class PlantedEncoder:
    """Vectors and maps from the picture's signature.

    `context`: weight of the context against the concept; `turn`: turns the whole space by up to a right angle,
    which leaves every distance as it was. Both from 0 to 1.
    """

    dimension: int = DIMENSION

    def __init__(self, context: float = 0.0, turn: float = 0.0, seed: int = 0) -> None:
        checked(context=context, turn=turn)
        self.context = context
        self.turn = turn
        self.seed = seed

    def encode(self, images: Sequence[Image]) -> Features:
        """Vectors (N, 64), and a map (64, ceil(H/8), ceil(W/8)) an image."""
        vectors = np.array([vector_of(image, self.context, self.seed) for image in images]).reshape(-1, DIMENSION)
        maps = [map_of(image, self.context) for image in images]
        return Features(
            vectors=turned(vectors, self.turn).astype(np.float32),
            maps=[
                np.moveaxis(turned(np.moveaxis(cells, 0, -1), self.turn), -1, 0).astype(np.float32) for cells in maps
            ],
        )
