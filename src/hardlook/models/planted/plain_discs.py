"""Discs around clicks: what the planted interactive model draws on a picture whose truth it cannot know.

A floor for real images. A pixel belongs to the mask when the click nearest to it is positive and not too far.

>>> import numpy as np
>>> session = PlainDiscs(height=40, width=60)
>>> clicks = Clicks(np.array([[30, 20], [30, 30]], np.float32), np.array([True, False]))
>>> [answer] = session.predict([clicks])
>>> bool(answer.mask[20, 30]), bool(answer.mask[30, 30]), bool(answer.mask[20, 59])
(True, False, False)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hardlook.models.roles import Clicks, Mask, Prompted

RADIUS = 0.2  # of the picture's shorter side


@dataclass(frozen=True)
class PlainDiscs:
    """An opened picture of which only the size, in pixels, is known."""

    height: int
    width: int

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask a prompt."""
        return [Prompted(self._mask(prompt)) for prompt in prompts]

    def _mask(self, prompt: Clicks) -> Mask:
        mask = np.zeros((self.height, self.width), bool)
        nearest = np.full(mask.shape, np.inf)
        rows, columns = np.ogrid[: self.height, : self.width]
        farthest = (RADIUS * min(self.height, self.width)) ** 2
        for (x, y), positive in zip(np.asarray(prompt.points, float).reshape(-1, 2), prompt.positive, strict=True):
            squared = (columns - x) ** 2 + (rows - y) ** 2
            nearer = squared < nearest
            nearest = np.where(nearer, squared, nearest)
            mask = np.where(nearer, bool(positive) & (squared <= farthest), mask)
        return mask
