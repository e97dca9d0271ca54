"""The light of a scene: its context's colour of light, brightest from above, kept off what shines by itself.

>>> dark = light_up(np.full((2, 2, 3), 200, np.uint8), np.zeros((2, 2), np.uint8), np.ones((2, 2)), "night")
>>> bright = light_up(np.full((2, 2, 3), 200, np.uint8), np.full((2, 2), 255, np.uint8), np.ones((2, 2)), "night")
>>> int(dark.max()) < int(bright.min())
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.world.settings import SETTINGS


def shade_from_above(masks: list[NDArray[np.bool_]], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Factors (H, W) that make each object a touch brighter at its top and darker at its foot."""
    factors = np.ones(shape, np.float32)
    for mask in masks:
        rows = np.flatnonzero(mask.any(axis=1))
        if len(rows):
            top, bottom = int(rows[0]), int(rows[-1]) + 1
            slope = np.linspace(1.06, 0.86, bottom - top, dtype=np.float32)[:, None]
            np.copyto(factors[top:bottom], slope, where=mask[top:bottom])
    return factors


def light_up(
    image: NDArray[np.uint8], glow: NDArray[np.uint8], shade: NDArray[np.floating], context: str
) -> NDArray[np.uint8]:
    """The image (H, W, 3) under the context's light; `glow` (H, W) 0-255 is each pixel's own share of light."""
    light = np.asarray(SETTINGS[context].light, np.float32)
    own = glow[..., None].astype(np.float32) / 255
    lit = image * ((light + (1 - light) * own) * shade[..., None])
    return np.rint(np.minimum(lit, 255)).astype(np.uint8)
