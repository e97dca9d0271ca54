"""Click models that need no weights: `uniform` (UD), `distance` (DT) and `center`, the usual rule of benchmarks.

>>> error = np.array([[True, True, True, False]])
>>> models = (Uniform(), Distance(), Center())
>>> [model.click_map(np.zeros((1, 4, 3), np.uint8), error, error, True).tolist() for model in models]
[[[1.0, 1.0, 1.0, 0.0]], [[3.0, 2.0, 1.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.regions import find_innermost_pixel, squared_distances
from hardlook.models.roles import Image, Mask


class Uniform:
    """Every pixel of the error is as likely as every other."""

    local = True

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64, 1 in the error region and 0 elsewhere."""
        return error.astype(np.float64)


class Distance:
    """The exact distance in pixels of each error pixel to the nearest pixel outside the error.

    Only pixels of the image count: the image's edge is not a border of the error. If the error covers the whole image,
    all pixels are equally likely.
    """

    local = True

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64 in pixels, at least 1 in the error region and 0 elsewhere."""
        distances = np.zeros(error.shape)
        distances[error] = np.sqrt(squared_distances(error, frame_is_background=False)[error])
        return distances


class Center:
    """The pixel farthest from the error's border, to which the image's edge belongs; the first one if several are.

    No other pixel has a chance: if that pixel was clicked before, the simulation falls back to the centre rule.
    """

    local = True

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64, 1 at one pixel and 0 elsewhere; all 0 where there is no error."""
        chances = np.zeros(error.shape)
        centre = find_innermost_pixel(error)
        if centre is not None:
            chances[centre[0], centre[1]] = 1.0
        return chances
