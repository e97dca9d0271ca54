"""Pictures around an object: a part of the frame, enlarged where it is small, with points moved along.

>>> mask = np.zeros((400, 600), bool)
>>> mask[100:130, 200:240] = True
>>> close = close_up(mask)
>>> close.cut(mask).shape, close.moved([(200.0, 100.0)])
((248, 288), [(65.5, 65.5)])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.models.roles import Image, Mask
from hardlook.regions.boxes import Box, box_of

MARGIN = 0.4  # of the region's longer side
LEAST_SHOWN = 40  # pixels
LARGE_ENOUGH = 256  # pixels: smaller parts are enlarged
FAINT = 0.08  # square root of a value over the highest
COLOURS = cv2.COLORMAP_INFERNO
GROUP_COLOURS = cv2.COLORMAP_VIRIDIS


@dataclass(frozen=True)
class CloseUp:
    """A part of the frame, every pixel of it a square of `factor` a side."""

    box: Box
    factor: int

    def cut(self, pixels: NDArray[Any]) -> NDArray[Any]:
        """The part of (H, W, ...) pixels."""
        part = pixels[self.box.slices]
        return np.ascontiguousarray(part.repeat(self.factor, 0).repeat(self.factor, 1))

    def moved(self, points: Iterable[Any]) -> list[tuple[float, float]]:
        """Points (x, y) of the frame where they lie in the part."""
        return [
            (
                (float(x) - self.box.left + 0.5) * self.factor - 0.5,
                (float(y) - self.box.top + 0.5) * self.factor - 0.5,
            )
            for x, y in points
        ]


def close_up(*masks: Mask) -> CloseUp:
    """The part of the frame around all of the masks (H, W); the whole frame where they are empty."""
    together = np.logical_or.reduce(masks)
    height, width = together.shape
    box = box_of(together) or Box(0, 0, height, width)
    shown = box.grown(round(MARGIN * max(box.height, box.width, LEAST_SHOWN)), (height, width))
    return CloseUp(shown, max(1, -(-LARGE_ENOUGH // max(shown.height, shown.width))))


def heat(image: Image, values: NDArray[np.floating]) -> Image:
    """A map (H, W), at least 0, over the image in grey: dark violet where it is low, yellow at its highest."""
    peak = float(values.max())
    share = np.sqrt(values / peak) if peak > 0 else np.zeros(values.shape)
    colours = np.asarray(cv2.applyColorMap(np.rint(255 * share).astype(np.uint8), COLOURS)[..., ::-1], np.uint8)
    # Next to nothing fades out, else the blur of a single click would end in a dark square.
    return _over(image, colours, np.minimum(share / FAINT, 1.0) * (0.55 + 0.35 * share))


def painted(image: Image, numbers: NDArray[np.integer], count: int) -> Image:
    """Ordered labels (H, W), 0 to count - 1 and -1 for none, over the image in grey: violet first, yellow last."""
    colours = ramp(count)[np.clip(numbers, 0, count - 1)]
    return _over(image, colours, np.where(numbers >= 0, 0.8, 0.0))


def ramp(count: int) -> NDArray[np.uint8]:
    """The colours (count, 3) of ordered labels."""
    places = np.rint(np.linspace(0, 255, count)).astype(np.uint8)[:, None]
    return np.asarray(cv2.applyColorMap(places, GROUP_COLOURS)[:, 0, ::-1], np.uint8)


def _over(image: Image, colours: NDArray[np.uint8], share: NDArray[np.floating]) -> Image:
    grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY).astype(np.float64)[..., None] * 0.6 + 50
    drawn = grey * (1 - share[..., None]) + colours * share[..., None]
    return np.asarray(np.rint(drawn.clip(0, 255)), np.uint8)
