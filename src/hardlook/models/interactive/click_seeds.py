"""Clicks as seeds on a shrunken frame: what classical segmenters start from.

A classical method is slow on a full frame and its seeds are small, so it works on a frame with a bounded longest side
and takes a disc around each click. Where discs of both signs meet, the nearest click decides, and of two at the same
distance the later one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import OptionError
from hardlook.models.roles import Clicks, Image, Mask, Prompted

# The nearest cell's centre is at most .71 cells from any click, so a disc this wide always holds a cell.
SMALLEST_RADIUS = 0.75


@dataclass(frozen=True)
class ClickSeeds:
    """(h, w) each: `side` 1 or -1 of the nearest click, `squared` distance in cells, `seed` its side or 0 off discs.

    `box`: the cells inside the prompt's box, None without one.
    """

    side: NDArray[np.int8]
    squared: NDArray[np.float64]
    seed: NDArray[np.int8]
    box: Mask | None = None


def shrink(image: Image, longest: int) -> Image:
    """The image (h, w, 3) with its longest side at most `longest`, each cell the mean of what it covers.

    A frame is never enlarged and never empty.

    >>> [shrink(np.zeros((*shape, 3), np.uint8), 160).shape[:2] for shape in ((480, 640), (8, 8), (1, 900))]
    [(120, 160), (8, 8), (1, 160)]
    """
    height, width = image.shape[:2]
    scale = min(1.0, longest / max(height, width))
    shape = max(round(height * scale), 1), max(round(width * scale), 1)
    if (height, width) == shape:
        return np.ascontiguousarray(image)
    return np.asarray(cv2.resize(image, shape[::-1], interpolation=cv2.INTER_AREA))


def compute_seeds(prompt: Clicks, full: tuple[int, int], working: tuple[int, int], radius: float) -> ClickSeeds:
    """The seeds of a prompt with at least one click; `radius` is a share of the working frame's longest side.

    >>> prompt = Clicks(np.array([[0, 0], [7, 0]], np.float32), np.array([True, False]))
    >>> compute_seeds(prompt, (1, 8), (1, 8), radius=0.125).seed.tolist()
    [[1, 1, 0, 0, 0, 0, -1, -1]]
    """
    down, across = np.arange(working[0])[:, None], np.arange(working[1])
    side = np.zeros(working, np.int8)
    squared = np.full(working, np.inf)
    for row, column, positive in zip(*prompt.pixels(full), np.asarray(prompt.positive, bool), strict=True):
        y = (row + 0.5) * working[0] / full[0] - 0.5
        x = (column + 0.5) * working[1] / full[1] - 0.5
        distance = (down - y) ** 2 + (across - x) ** 2
        nearer = distance <= squared
        side[nearer] = 1 if positive else -1
        squared[nearer] = distance[nearer]
    reach = max(radius * max(working), SMALLEST_RADIUS)
    box = None if prompt.box is None else _scale_box(prompt.box, full, working)
    return ClickSeeds(side, squared, np.where(squared <= reach**2, side, 0).astype(np.int8), box)


def _scale_box(corners: NDArray[np.float32], full: tuple[int, int], working: tuple[int, int]) -> Mask:
    """The cells (h, w) that a box x0, y0, x1, y1 of the full frame touches."""
    scale = np.array([working[1] / full[1], working[0] / full[0]])
    low = np.floor(np.asarray(corners[:2], np.float64) * scale).astype(int).clip(0)
    high = np.ceil((np.asarray(corners[2:], np.float64) + 1.0) * scale).astype(int)
    box = np.zeros(working, bool)
    box[low[1] : high[1], low[0] : high[0]] = True
    return box


def threshold_probabilities(probabilities: NDArray[np.generic], prompt: Clicks, full: tuple[int, int]) -> Mask:
    """The mask (H, W) where probabilities (h, w), interpolated, exceed .5; clicked pixels get their click's label."""
    mask: Mask = cv2.resize(probabilities.astype(np.float32), full[::-1], interpolation=cv2.INTER_LINEAR) > 0.5
    for row, column, positive in zip(*prompt.pixels(full), np.asarray(prompt.positive, bool), strict=True):
        mask[row, column] = positive
    return mask


@dataclass(frozen=True)
class SeededSession:
    """An opened image of `full` shape (H, W); `segment` gives probabilities of `working` shape (h, w) from seeds."""

    full: tuple[int, int]
    working: tuple[int, int]
    radius: float
    segment: Callable[[ClickSeeds], NDArray[np.generic]]

    def predict(self, prompts: Sequence[Clicks]) -> list[Prompted]:
        """One mask per prompt, empty without a positive click or a box; a prompt's state is ignored."""
        return [Prompted(self._mask(prompt)) for prompt in prompts]

    def _mask(self, prompt: Clicks) -> Mask:
        if prompt.box is None and not np.any(prompt.positive):
            return np.zeros(self.full, bool)
        seeds = compute_seeds(prompt, self.full, self.working, self.radius)
        return threshold_probabilities(self.segment(seeds), prompt, self.full)


def check_sizes(size: int, radius: float) -> None:
    """An `OptionError` unless the working size is at least 8 and the radius a share from 0 to 1."""
    if size < 8:
        raise OptionError(f"a working size of {size} shows nothing", remedy="give size=8 or more")
    if not 0 <= radius <= 1:
        remedy = "radius goes from 0 to 1, .02 is usual"
        raise OptionError(f"radius {radius} is no share of the frame's longest side", remedy=remedy)
