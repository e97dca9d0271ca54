"""DT: the deeper inside the error, the likelier, in proportion to the distance to its border.

The frame's edge is no border: an error that runs out of the picture is as deep there as inside.

>>> error = np.array([[True, True, True, False]])
>>> Distance().click_map(np.zeros((1, 4, 3), np.uint8), error, error, True).tolist()
[[3.0, 2.0, 1.0, 0.0]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.models.registry import register
from hardlook.models.roles import Image, Mask
from hardlook.regions.distances import squared_distances


@register("distance", role="click-model", summary="likelier the deeper inside the error", licence="MIT")
class Distance:
    """The exact distance in pixels of each error pixel to the nearest pixel outside; all equal where none is."""

    local = True

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64 in pixels, at least 1 in the error region and 0 elsewhere."""
        distances = np.zeros(error.shape)
        distances[error] = np.sqrt(squared_distances(error, frame_is_background=False)[error])
        return distances
