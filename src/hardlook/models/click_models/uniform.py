"""UD: every pixel of the error is as likely as every other.

>>> error = np.array([[True, True, False]])
>>> Uniform().click_map(np.zeros((1, 3, 3), np.uint8), error, error, True).tolist()
[[1.0, 1.0, 0.0]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.models.registry import register
from hardlook.models.roles import Image, Mask


@register("uniform", role="click-model", summary="every pixel of the error alike", licence="MIT")
class Uniform:
    """The error region itself; it looks at nothing else."""

    local = True

    def click_map(self, image: Image, target: Mask, error: Mask, positive: bool) -> NDArray[np.float64]:
        """(H, W) float64, 1 in the error region and 0 elsewhere."""
        return error.astype(np.float64)
