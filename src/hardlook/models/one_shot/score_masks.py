"""From the scores of a query's cells to a mask of the query's size.

>>> mask_of(np.array([[1, -1]], np.float32), (2, 4)).tolist()
[[True, True, False, False], [True, True, False, False]]
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.models.roles import Mask


def mask_of(scores: NDArray[np.float32], size: tuple[int, int]) -> Mask:
    """The pixels (H, W) whose score is above 0, scores (h, w) interpolated bilinearly between the cells' centres."""
    resized = cv2.resize(scores, size[::-1], interpolation=cv2.INTER_LINEAR)
    above: Mask = resized > 0
    return above


def above_share(scores: NDArray[np.float32], share: float) -> NDArray[np.float32]:
    """Scores (h, w) scaled so that the least is 0 and the most is 1, less `share`; all below 0 where they are equal.

    >>> above_share(np.array([[2, 3, 6]], np.float32), 0.5).tolist()
    [[-0.5, -0.25, 0.5]]
    """
    low, high = scores.min(), scores.max()
    if not high > low:
        return np.full_like(scores, -1)
    above: NDArray[np.float32] = (scores - low) / (high - low) - np.float32(share)
    return above
