"""A click model that clicks in the middle of an error, or at its edge as its dial says.

It reads only the error mask, so it serves on any picture.

>>> import numpy as np
>>> error = np.zeros((9, 9), bool)
>>> error[1:8, 1:8] = True
>>> picture = np.zeros((9, 9, 3), np.uint8)
>>> maps = [PlantedClicks(edge=dial).click_map(picture, error, error, True) for dial in (0.0, 1.0)]
>>> [bool(chance[4, 4] > chance[1, 1]) for chance in maps], bool((maps[1][error] > 0).all())
([True, False], True)
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.models.planted.dials import checked
from hardlook.models.registry import register
from hardlook.models.roles import Image, Mask

FLOOR = 1e-3
LOUDEST = 10.0


@register(
    "planted-clicks", role="click-model", summary="clicks in the middle of the error, or at its edge", licence="MIT"
)
class PlantedClicks:
    """Where a click falls, by depth inside the error region.

    `edge`: weight of the border against the middle; `loud`: a factor on the whole map, up to ten, which the
    caller's normalisation undoes. Both from 0 to 1.
    """

    def __init__(self, edge: float = 0.0, loud: float = 0.0) -> None:
        checked(edge=edge, loud=loud)
        self.edge = edge
        self.loud = loud

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64, above 0 all over the error region and 0 elsewhere."""
        framed = np.pad(error.astype(np.uint8), 1)
        depth = cv2.distanceTransform(framed, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)[1:-1, 1:-1].astype(np.float64)
        relative = depth / max(float(depth.max()), 1.0)
        chance = (1 - self.edge) * relative**2 + self.edge * (1 - relative) ** 2 + FLOOR
        clicked: NDArray[np.float64] = np.where(error, chance * (1 + (LOUDEST - 1) * self.loud), 0.0)
        return clicked
