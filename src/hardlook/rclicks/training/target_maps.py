"""What the clickability network learns: people's clicks on one region as a map that sums to 1.

Clicks are counted, blurred, divided by the maximum, multiplied with the blurred error mask, and divided by their sum.
The width of the first blur is given in pixels of a frame of 1920 x 1080 and grows with the image's diagonal. That of
the mask has two readings: `released` is 1 / (100 sqrt 2) of the diagonal cut to a whole number, `paper` 1 % of it.

>>> click_blur((321, 481))
(1.31..., 11)
>>> [mask_sigma(shape) for shape in ((321, 481), (1365, 2048), (99, 99))]
[4.0, 17.0, 0.0]
"""

from __future__ import annotations

import math
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.models.roles import Mask

MaskSigma = Literal["released", "paper"]
FRAME_DIAGONAL = math.hypot(1920, 1080)
SIGMA = 5.0
# Beyond four widths a Gaussian is below the precision of float32; the published code cuts there.
REACH = 4


def click_blur(shape: tuple[int, ...], sigma: float = SIGMA) -> tuple[float, int]:
    """Sigma and odd kernel width in pixels on an image of `shape` (height, width); `sigma` is for 1920 x 1080."""
    scaled = sigma * math.hypot(shape[0], shape[1]) / FRAME_DIAGONAL
    kernel = math.ceil(7 * scaled)
    return scaled, kernel + (kernel + 1) % 2


def mask_sigma(shape: tuple[int, ...], reading: MaskSigma = "released") -> float:
    """The blur of the error mask in pixels of the image; 0 leaves it as it is."""
    diagonal = math.hypot(shape[0], shape[1])
    return float(int(5 * diagonal / (500 * math.sqrt(2)))) if reading == "released" else 0.01 * diagonal


def click_map(
    clicks: NDArray[np.integer], error: Mask, *, sigma: float = SIGMA, reading: MaskSigma = "released"
) -> NDArray[np.float64]:
    """(H, W) float64 that sums to 1, from clicks (n, 2) x, y in pixels and the error mask (H, W).

    Clicks beyond the frame are moved to its edge.

    >>> error = np.zeros((99, 99), bool)
    >>> error[40:60, 40:60] = True
    >>> made = click_map(np.array([[50, 45], [50, 46]]), error)
    >>> round(float(made.sum()), 9), bool(made[45, 50] == made[46, 50] == made.max()), float(made[30, 30])
    (1.0, True, 0.0)
    """
    if len(clicks) == 0:
        raise DataError("there are no clicks to make a map of", remedy="leave the region out")
    height, width = error.shape
    counts = np.zeros((height, width))
    x, y = np.clip(clicks[:, 0], 0, width - 1), np.clip(clicks[:, 1], 0, height - 1)
    np.add.at(counts, (y, x), 1)
    blurred = _apply_blur(counts, *click_blur(error.shape, sigma))
    blur = mask_sigma(error.shape, reading)
    near = _apply_blur(error.astype(np.float64), blur, 2 * int(REACH * blur + 0.5) + 1)
    both: NDArray[np.float64] = blurred / blurred.max() * near
    total = both.sum()
    if total <= 0:
        raise DataError(f"none of {len(clicks)} clicks falls near the error region", remedy="leave the region out")
    return np.asarray(both / total)


def _apply_blur(values: NDArray[np.float64], sigma: float, kernel: int) -> NDArray[np.float64]:
    if sigma == 0:
        return values
    return np.asarray(cv2.GaussianBlur(values, (kernel, kernel), sigma, sigmaY=sigma, borderType=cv2.BORDER_CONSTANT))
