"""The part of a frame around an object, enlarged where it is small, with points moved along.

>>> mask = np.zeros((400, 600), bool)
>>> mask[100:130, 200:240] = True
>>> close = close_up(mask)
>>> close.cut(mask).shape, close.moved([(200.0, 100.0)])
((248, 288), [(65.5, 65.5)])
>>> close_up(mask, points=[(0, 0)]).box
Box(top=0, left=0, bottom=146, right=256)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardlook.regions.boxes import Box, box_of

MARGIN = 0.4  # of the region's longer side
LEAST_SHOWN = 40  # pixels
LARGE_ENOUGH = 256  # pixels: smaller parts are enlarged


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


def close_up(*masks: NDArray[np.bool_], points: Iterable[tuple[float, float]] = ()) -> CloseUp:
    """The part of the frame around all of the masks (H, W) and points (x, y); all of it where the masks are empty."""
    together = np.logical_or.reduce(masks)
    height, width = together.shape
    box = box_of(together) or Box(0, 0, height, width)
    margin = round(MARGIN * max(box.height, box.width, LEAST_SHOWN))
    for x, y in points:
        row, column = round(y), round(x)
        box = Box(min(box.top, row), min(box.left, column), max(box.bottom, row + 1), max(box.right, column + 1))
    shown = box.grown(margin, (height, width))
    return CloseUp(shown, max(1, -(-LARGE_ENOUGH // max(shown.height, shown.width))))
