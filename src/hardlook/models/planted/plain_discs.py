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

from hardlook.models.roles import Clicks, Prompted

RADIUS = 0.2  # of the picture's shorter side


@dataclass(frozen=True)
class PlainDiscs:
    """An opened picture of which only the size, in pixels, is known."""

    height: int
    width: int

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask a prompt; the state is how far each pixel is from its nearest click so far, squared."""
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Clicks) -> Prompted:
        known = 0
        mask, nearest = np.zeros((self.height, self.width), bool), np.full((self.height, self.width), np.inf)
        if prompt.state is not None:
            known, mask, nearest = prompt.state
        rows, columns = np.ogrid[: self.height, : self.width]
        farthest = (RADIUS * min(self.height, self.width)) ** 2
        points = np.asarray(prompt.points, float).reshape(-1, 2)
        for (x, y), positive in zip(points[known:], prompt.positive[known:], strict=True):
            squared = (columns - x) ** 2 + (rows - y) ** 2
            nearer = squared < nearest
            nearest = np.minimum(squared, nearest)
            mask = np.where(nearer, bool(positive) & (squared <= farthest), mask)
        return Prompted(mask, (len(points), mask, nearest))
