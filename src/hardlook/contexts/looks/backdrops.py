"""Grass and water behind an object whose mask is known.

>>> image, mask = np.full((60, 80, 3), 200, np.uint8), np.zeros((60, 80), bool)
>>> mask[20:40, 30:50] = True
>>> meadow = grass(image, np.random.default_rng(0), mask)
>>> meadow[30, 40].tolist(), bool(meadow[5, 5, 1] > meadow[5, 5, 0])
([200, 200, 200], True)
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.contexts.looks.shades import Pixels, gradient, mixed, rounded, smooth_noise

_BLADES = ((74, 132, 44), (96, 158, 58), (56, 108, 36), (122, 176, 74))


def grass(image: Pixels, rng: np.random.Generator, mask: NDArray[np.bool_]) -> Pixels:
    """The object on a meadow that fills the picture, blades longer towards the viewer; `mask` (H, W) is the object."""
    shape = image.shape[:2]
    unit = min(shape)
    ground = gradient(shape, (0.0, (142, 178, 92)), (1.0, (66, 122, 40)))
    meadow = rounded(ground * (0.85 + 0.3 * smooth_noise(shape, 5, rng)[..., None]))
    count = round(900 * shape[0] * shape[1] / unit**2)
    strokes = rng.random((count, 4))
    for x, y, lean, kind in strokes[np.argsort(strokes[:, 1])]:
        root = np.array([x * shape[1], y * shape[0] * 1.05])
        tip = root + np.array([(lean - 0.5) * 0.05, -(0.02 + 0.08 * y)]) * unit
        start, end = (tuple(map(int, np.rint(point * 16))) for point in (root, tip))
        shade = 0.75 + 0.4 * lean
        colour = tuple(float(channel * shade) for channel in _BLADES[int(kind * 997) % len(_BLADES)])
        cv2.line(meadow, start, end, colour, max(1, round(0.008 * unit)), cv2.LINE_AA, 4)
    return _pasted(image, meadow, mask, shadow=0.35)


def water(image: Pixels, rng: np.random.Generator, mask: NDArray[np.bool_]) -> Pixels:
    """The object before a lake: sky at the top, ripples that widen towards the viewer; `mask` (H, W) is the object."""
    height, width = shape = image.shape[:2]
    horizon = 0.22 + 0.08 * rng.random()
    depth = np.clip((np.linspace(0, 1, height, dtype=np.float32) - horizon) / (1 - horizon), 0, 1)[:, None]
    sky = gradient(shape, (0.0, (150, 196, 232)), (horizon, (222, 236, 244)), (1.0, (222, 236, 244)))
    sea = gradient(shape, (horizon, (124, 176, 206)), (1.0, (22, 86, 136)))
    columns = np.linspace(0, width / height, width, dtype=np.float32)[None]
    # Rows of waves crowd together towards the horizon, as seen from the shore.
    near = 26 * np.log1p(9 * depth)
    drift = smooth_noise(shape, 4, rng)
    waves = np.sin(near + 5 * drift + 3 * np.sin(7 * columns + 2 * near / 9 + 6 * rng.random()))
    fine = np.sin(2.7 * near + 9 * smooth_noise(shape, 7, rng) + 17 * columns)
    lit = (
        (20 * waves + 9 * fine)[..., None] * np.array([0.75, 0.95, 1.0], np.float32) * (0.25 + 0.75 * depth[..., None])
    )
    foam = np.clip((waves * fine - 0.72) / 0.28, 0, 1)[..., None] * 70 * depth[..., None]
    scene = np.where(depth[..., None] > 0, sea + lit + foam, sky)
    return _pasted(image, rounded(scene), mask, shadow=0.25)


def _pasted(image: Pixels, scene: Pixels, mask: NDArray[np.bool_], shadow: float) -> Pixels:
    """The object over the scene: a soft shadow below it, and an edge that is a pixel or two wide."""
    solid = mask.astype(np.float32)
    unit = min(mask.shape)
    fallen = cv2.GaussianBlur(solid, (0, 0), max(1.0, 0.03 * unit))
    shift = np.array([[1, 0, 0], [0, 1, 0.03 * unit]], np.float32)
    fallen = cv2.warpAffine(fallen, shift, (mask.shape[1], mask.shape[0]))
    darker = scene.astype(np.float32) * (1 - shadow * fallen[..., None])
    edge = cv2.GaussianBlur(solid, (0, 0), max(0.5, 0.004 * unit))
    # The rim of a mask often holds background: it fades inwards, and the inside stays as it was.
    return rounded(mixed(darker, image, np.asarray(np.clip((edge - 0.5) / 0.45, 0, 1), np.float32)))
