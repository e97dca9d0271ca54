"""A text encoder that knows which words are siblings, and forgets it as its dial says.

>>> encoder = PlantedTextEncoder()
>>> cat, dog, car = encoder.encode_text(["cat", "a photo of a dog", "car"])
>>> bool(cat @ dog > cat @ car)
True
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hardlook.models.planted.dials import checked
from hardlook.models.planted.space import DIMENSION, drawn, of_text, turned
from hardlook.models.registry import register
from hardlook.models.roles import Vectors


@register("planted-text-encoder", role="text-encoder", summary="words by meaning, or by spelling", licence="MIT")
class PlantedTextEncoder:
    """Vectors of the vocabulary's words.

    `forgetful`: weight of a direction drawn from the letters against the meaning, so that siblings drift apart;
    `turn`: turns the whole space, which leaves every cosine as it was. Both from 0 to 1.
    """

    dimension: int = DIMENSION

    def __init__(self, forgetful: float = 0.0, turn: float = 0.0, seed: int = 0) -> None:
        checked(forgetful=forgetful, turn=turn)
        self.forgetful = forgetful
        self.turn = turn
        self.seed = seed

    def encode_text(self, texts: Sequence[str]) -> Vectors:
        """(N, 64) float32."""
        rows = [(1 - self.forgetful) * of_text(t) + self.forgetful * drawn(self.seed, "spelling", t) for t in texts]
        return turned(np.array(rows).reshape(-1, DIMENSION), self.turn).astype(np.float32)
