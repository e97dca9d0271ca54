"""How crisp a saliency model's borders are: a mask is cut at .5, so what lies between is left to chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.mask_attributes import SIDE
from hardlook.randomness import generator
from hardlook.stats import Estimate, bootstrap_mean

LOW, HIGH, CUT = 0.1, 0.9, 0.5


@dataclass(frozen=True)
class Border:
    """One map at 512 x 512: the share of pixels between .1 and .9, and the width of that band in pixels.

    `width` is the band's area over the length of the contour at .5, NaN where there is no contour.
    """

    undecided: float
    width: float


@dataclass(frozen=True)
class BorderSummary:
    """A model over images: means with intervals; `blank` counts maps without a contour."""

    model: str
    undecided: Estimate
    width: Estimate | None
    blank: int
    borders: tuple[Border, ...]


def border_of(saliency: NDArray[np.float32]) -> Border:
    """The border of a map (H, W) in [0, 1]; a crisp one has nothing between .1 and .9.

    >>> crisp = np.zeros((64, 64), np.float32)
    >>> crisp[16:48, 16:48] = 1
    >>> faint = cv2.GaussianBlur(crisp, (0, 0), 6)
    >>> border_of(crisp).width < border_of(faint).width
    True
    """
    square = cv2.resize(saliency, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
    undecided = int(np.count_nonzero((square > LOW) & (square < HIGH)))
    inside = (square > CUT).astype(np.uint8)
    contours, _ = cv2.findContours(inside, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    length = sum(cv2.arcLength(contour, True) for contour in contours)
    return Border(undecided / SIDE**2, undecided / length if length else float("nan"))


def summarise_borders(model: str, borders: Sequence[Border], *, seed: int = 0) -> BorderSummary:
    """Means over images, with intervals that resample them."""
    widths = [border.width for border in borders if not np.isnan(border.width)]
    undecided = bootstrap_mean(
        [border.undecided for border in borders], rng=generator(seed, "undecided"), resampled="image", resamples=2000
    )
    width = None
    if widths:
        width = bootstrap_mean(widths, rng=generator(seed, "border width"), resampled="image", resamples=2000)
    return BorderSummary(model, undecided, width, len(borders) - len(widths), tuple(borders))
