"""Clicks as seeds on a shrunken frame: what classical segmenters start from.

A classical method is slow on a full frame and its seeds are small, so it works on a frame with a bounded longest side
and takes a disc around each click. Where discs of both signs meet, the nearest click decides, and of two at the same
distance the later one.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.roles import Clicks, Image, Mask

# The nearest cell's centre is at most .71 cells from any click, so a disc this wide always holds a cell.
SMALLEST_RADIUS = 0.75


@dataclass(frozen=True)
class ClickSeeds:
    """Where the clicks fall on the working frame (h, w).

    `side` int8: the sign of the nearest click, 1 or -1; `squared` float64: the squared distance to it in cells;
    `seed` int8: the same sign within the clicks' discs and 0 elsewhere.
    """

    side: NDArray[np.int8]
    squared: NDArray[np.float64]
    seed: NDArray[np.int8]


def working_shape(shape: tuple[int, int], longest: int) -> tuple[int, int]:
    """Height and width with the longest side at most `longest`; a frame is never enlarged and never empty.

    >>> working_shape((480, 640), 160), working_shape((8, 8), 160), working_shape((1, 900), 160)
    ((120, 160), (8, 8), (1, 160))
    """
    scale = min(1.0, longest / max(shape))
    return max(round(shape[0] * scale), 1), max(round(shape[1] * scale), 1)


def shrink(image: Image, shape: tuple[int, int]) -> Image:
    """The image (h, w, 3) at the working shape, each cell the mean of what it covers."""
    if image.shape[:2] == shape:
        return np.ascontiguousarray(image)
    return np.asarray(cv2.resize(image, shape[::-1], interpolation=cv2.INTER_AREA))


def enlarge(scores: NDArray[np.float32], shape: tuple[int, int]) -> NDArray[np.float32]:
    """Scores (h, w) at the full shape, linear between the cells' centres."""
    return np.asarray(cv2.resize(scores, shape[::-1], interpolation=cv2.INTER_LINEAR))


def compute_seeds(prompt: Clicks, full: tuple[int, int], working: tuple[int, int], radius: float) -> ClickSeeds:
    """The seeds of a prompt with at least one click; `radius` is a share of the working frame's longest side.

    >>> prompt = Clicks(np.array([[0, 0], [7, 0]], np.float32), np.array([True, False]))
    >>> compute_seeds(prompt, (1, 8), (1, 8), radius=0.125).seed.tolist()
    [[1, 1, 0, 0, 0, 0, -1, -1]]
    """
    down, across = np.arange(working[0])[:, None], np.arange(working[1])
    side = np.zeros(working, np.int8)
    squared = np.full(working, np.inf)
    rows, columns = clicked_pixels(prompt, full)
    for row, column, positive in zip(rows, columns, np.asarray(prompt.positive, bool), strict=True):
        y = (row + 0.5) * working[0] / full[0] - 0.5
        x = (column + 0.5) * working[1] / full[1] - 0.5
        distance = (down - y) ** 2 + (across - x) ** 2
        nearer = distance <= squared
        side[nearer] = 1 if positive else -1
        squared[nearer] = distance[nearer]
    reach = max(radius * max(working), SMALLEST_RADIUS)
    return ClickSeeds(side, squared, np.where(squared <= reach**2, side, 0).astype(np.int8))


def clicked_pixels(prompt: Clicks, shape: tuple[int, int]) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Rows and columns (n,) of the pixels that the clicks hit, kept inside the frame."""
    pixels = np.rint(np.asarray(prompt.points, np.float64).reshape(-1, 2)).astype(int)
    return np.clip(pixels[:, 1], 0, shape[0] - 1), np.clip(pixels[:, 0], 0, shape[1] - 1)


def keep_clicks(mask: Mask, prompt: Clicks) -> Mask:
    """The mask with every clicked pixel on its click's side: shrinking may have put it on the other."""
    kept = mask.copy()
    rows, columns = clicked_pixels(prompt, (mask.shape[0], mask.shape[1]))
    for row, column, positive in zip(rows, columns, np.asarray(prompt.positive, bool), strict=True):
        kept[row, column] = positive
    return kept


def check_sizes(size: int, radius: float) -> None:
    """An `OptionError` unless the working size is at least 8 and the radius a share from 0 to 1."""
    if size < 8:
        raise OptionError(f"a working size of {size} shows nothing", remedy="give size=8 or more")
    if not 0 <= radius <= 1:
        raise OptionError(
            f"radius {radius} is no share of the frame's longest side", remedy="radius goes from 0 to 1, .02 is usual"
        )
