"""The usual benchmark's rule as a click model: one pixel, the innermost of the error.

>>> error = np.array([[True, True, True, False]])
>>> Center().click_map(np.zeros((1, 4, 3), np.uint8), error, error, True).tolist()
[[1.0, 0.0, 0.0, 0.0]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.models.registry import register
from hardlook.models.roles import Image, Mask
from hardlook.regions.distances import innermost


@register("center", role="click-model", summary="the innermost pixel of the error, always", licence="MIT")
class Center:
    """The pixel farthest from the error's border, to which the frame's edge belongs; the first of equals.

    It has no second choice: where that pixel was clicked before, the loop falls back to the centre rule.
    """

    local = True

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64, 1 at one pixel and 0 elsewhere; all 0 where there is no error."""
        chances = np.zeros(error.shape)
        centre = innermost(error)
        if centre is not None:
            chances[centre[0], centre[1]] = 1.0
        return chances
