"""What several looks are made of: smooth noise, mixing, light from above to below.

>>> cloud = smooth_noise((40, 60), 8, np.random.default_rng(0))
>>> cloud.shape, float(cloud.min()), float(cloud.max())
((40, 60), 0.0, 1.0)
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Plane = NDArray[np.float32]


def smooth_noise(shape: tuple[int, int], cells: int, rng: np.random.Generator, octaves: int = 3) -> Plane:
    """(H, W) float32 in [0, 1]: clouds of about `cells` patches along the shorter side, with finer ones on top."""
    height, width = shape
    total = np.zeros(shape, np.float32)
    for octave in range(octaves):
        across = cells * 2**octave
        short = min(height, width)
        grid = (max(2, round(across * height / short)), max(2, round(across * width / short)))
        coarse = rng.random(grid, dtype=np.float32)
        total += cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC) / 2**octave
    low, high = float(total.min()), float(total.max())
    return (total - low) / (high - low) if high > low else np.zeros(shape, np.float32)


def mixed(image: NDArray[np.generic], other: NDArray[np.generic], share: Plane | float) -> Plane:
    """(H, W, 3) float32 between two pictures; `share` (H, W) or one number in [0, 1] is how much is the other.

    >>> float(mixed(np.zeros((1, 1, 3), np.uint8), np.full((1, 1, 3), 200, np.uint8), 0.25)[0, 0, 0])
    50.0
    """
    weight = np.asarray(share, np.float32)
    weight = weight[..., None] if weight.ndim == 2 else weight
    return np.asarray(image.astype(np.float32) * (1 - weight) + other.astype(np.float32) * weight, np.float32)


def rounded(picture: NDArray[np.generic]) -> Pixels:
    """The picture as uint8, values beyond 0-255 cut off.

    >>> rounded(np.array([-3.0, 99.6, 300.0])).tolist()
    [0, 100, 255]
    """
    return np.asarray(np.clip(np.rint(picture), 0, 255), np.uint8)


def gradient(shape: tuple[int, int], *stops: tuple[float, tuple[float, float, float]]) -> Plane:
    """(H, W, 3) float32: colours at heights 0 (top) to 1 (bottom), blended in between.

    >>> gradient((3, 1), (0.0, (0, 0, 0)), (1.0, (100, 50, 0)))[1, 0].tolist()
    [50.0, 25.0, 0.0]
    """
    rows = np.linspace(0, 1, shape[0])
    places = [place for place, _ in stops]
    channels = [np.interp(rows, places, [colour[channel] for _, colour in stops]) for channel in range(3)]
    column = np.stack(channels, axis=-1).astype(np.float32)[:, None]
    return np.ascontiguousarray(np.broadcast_to(column, (*shape, 3)))


def grey_of(image: Pixels) -> Plane:
    """(H, W) float32 brightness 0-255, by the weights of Rec. 601."""
    return np.asarray(image.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32))


def odd(number: float) -> int:
    """The nearest odd whole number from 3 on, as OpenCV's kernels want it.

    >>> odd(0.4), odd(6.2)
    (3, 7)
    """
    return max(3, round((number - 1) / 2) * 2 + 1)
