"""A saliency model that knows what is salient, and looks at the centre instead as its dial says.

>>> import numpy as np
>>> from hardlook.world.signature import write_signature
>>> classes = np.full((32, 32), 13, np.uint8)
>>> classes[:8, :8] = 1
>>> picture = write_signature(np.full((32, 32, 3), 90, np.uint8), classes, np.zeros_like(classes), classes == 1)
>>> looks = [PlantedSaliency(centre=dial).saliency([picture])[0] for dial in (0.0, 1.0)]
>>> [bool(look[3, 3] > look[16, 16]) for look in looks]
[True, False]
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.models.planted.dials import check_dials
from hardlook.models.roles import Image
from hardlook.world.signature import read_signature

BLUR = 0.01  # of the diagonal
BLOB = 0.2  # of the side
FAINTEST = 0.8


class PlantedSaliency:
    """Maps salience from the picture's signature.

    `centre`: weight of a blob in the middle against the truth; `faint`: loss of contrast, which moves no value
    across .5 and must change no benchmark. Both from 0 to 1.
    """

    def __init__(self, centre: float = 0.0, faint: float = 0.0) -> None:
        check_dials(centre=centre, faint=faint)
        self.centre, self.faint = centre, faint

    def saliency(self, images: Sequence[Image]) -> list[NDArray[np.float32]]:
        """One (H, W) float32 map in [0, 1] per image."""
        return [self._map(image) for image in images]

    def _map(self, image: Image) -> NDArray[np.float32]:
        height, width = image.shape[:2]
        sigma = max(BLUR * float(np.hypot(height, width)), 0.5)
        true = cv2.GaussianBlur(
            read_signature(image).salient.astype(np.float32), (0, 0), sigma, borderType=cv2.BORDER_REPLICATE
        )
        mixed = (1 - self.centre) * true + self.centre * _blob(height, width)
        return np.clip(0.5 + (mixed - 0.5) * (1 - FAINTEST * self.faint), 0, 1).astype(np.float32)


def _blob(height: int, width: int) -> NDArray[np.float64]:
    down = (np.arange(height) - (height - 1) / 2) / (BLOB * height)
    across = (np.arange(width) - (width - 1) / 2) / (BLOB * width)
    return np.exp(-0.5 * (down[:, None] ** 2 + across**2))
