"""An encoder of images and texts into one space, which sees the concept, or the context as its dial says.

>>> import numpy as np
>>> from hardlook.world.signature import sign
>>> classes = np.full((16, 16), 16, np.uint8)
>>> classes[4:12, 4:12] = 1
>>> picture = sign(np.full((16, 16, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> for dial in (0.0, 1.0):
...     encoder = PlantedImageTextEncoder(context=dial)
...     texts = encoder.encode_text(["a photo of a cat", "a photo of beach"])
...     ["cat", "beach"][int((encoder.encode_images([picture]) @ texts.T).argmax())]
'cat'
'beach'
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardlook.models.planted.dials import checked
from hardlook.models.planted.space import DIMENSION, of_text, turned
from hardlook.models.planted.views import vector_of
from hardlook.models.registry import register
from hardlook.models.roles import Image, Vectors


@register(
    "planted-image-text-encoder",
    role="image-text-encoder",
    summary="images near the words of their concept, or of their context",
    licence="MIT",
)
class PlantedImageTextEncoder:
    """Images and texts as unit vectors of one space.

    `context`: weight of the context against the concept in an image; `turn`: turns the whole space, which leaves
    every cosine as it was. Both from 0 to 1.
    """

    dimension: int = DIMENSION

    def __init__(self, context: float = 0.0, turn: float = 0.0, seed: int = 0) -> None:
        checked(context=context, turn=turn)
        self.context = context
        self.turn = turn
        self.seed = seed

    def encode_images(self, images: Sequence[Image]) -> Vectors:
        """(N, 64) float32 of unit length."""
        return self._unit([vector_of(image, self.context, self.seed) for image in images])

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, 64) float32 of unit length."""
        return self._unit([of_text(text) for text in texts])

    def _unit(self, rows: Sequence[NDArray[np.float64]]) -> Vectors:
        vectors = turned(np.array(rows).reshape(-1, DIMENSION), self.turn)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: Vectors = (vectors / lengths).astype(np.float32)
        return unit
