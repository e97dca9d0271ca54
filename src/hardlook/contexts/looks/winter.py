"""Snow and fog: what falls, what lies, and what hangs in the air.

>>> from hardlook.contexts.looks.shades import grey_of
>>> dark = np.full((60, 80, 3), 60, np.uint8)
>>> for look in (snow, fog):
...     bool(grey_of(look(dark, np.random.default_rng(0))).mean() > 90)
True
True
"""

from __future__ import annotations

import cv2
import numpy as np

from hardlook.contexts.looks.shades import Pixels, Plane, gradient, grey_of, mixed, odd, rounded, smooth_noise

_SNOW = np.array([240, 245, 252], np.float32)
_MIST = np.array([206, 211, 214], np.float32)


def snow(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Cold pale light, a bank of snow along the lower edge, a white rim on what faces up, falling flakes."""
    shape = image.shape[:2]
    pale = mixed(image, np.repeat(grey_of(image)[..., None], 3, axis=2), 0.55)
    cold = pale * np.array([0.86, 0.93, 1.02], np.float32) + np.array([20, 26, 34], np.float32)
    covered = mixed(cold, _SNOW[None, None], _lying(image, rng))
    shaded = covered + (smooth_noise(shape, 10, rng)[..., None] - 0.5) * 10
    return rounded(mixed(shaded, _SNOW[None, None] + 6, _flakes(shape, rng)))


def fog(image: Pixels, rng: np.random.Generator) -> Pixels:
    """A grey veil, thicker far away (higher up) and in drifts, that takes contrast, colour and sharpness."""
    height, width = image.shape[:2]
    soft = np.asarray(cv2.GaussianBlur(image, (0, 0), max(0.6, 0.008 * min(height, width))), np.uint8)
    dull = mixed(soft, np.repeat(grey_of(soft)[..., None], 3, axis=2), 0.5)
    far = gradient((height, width), (0.0, (0.86, 0, 0)), (0.55, (0.7, 0, 0)), (1.0, (0.5, 0, 0)))[..., 0]
    drifts = smooth_noise((height, width), 2, rng)
    return rounded(mixed(dull, _MIST[None, None], np.clip(far + 0.24 * (drifts - 0.5), 0, 0.92)))


def _lying(image: Pixels, rng: np.random.Generator) -> Plane:
    """(H, W) in [0, 1]: the bank at the lower edge and rims where a bright area stands above a dark one."""
    height, width = image.shape[:2]
    crest = 0.82 + 0.08 * (
        cv2.resize(rng.random((1, 6), np.float32), (width, 1), interpolation=cv2.INTER_CUBIC)[0] - 0.5
    )
    depth = np.linspace(0, 1, height, dtype=np.float32)[:, None] - crest[None]
    bank = np.clip(depth / 0.05, 0, 1)
    calm = cv2.GaussianBlur(grey_of(image), (0, 0), max(0.8, 0.012 * min(height, width)))
    # Falling brightness from one row to the next is where the top of something meets the light behind it.
    falls = np.clip(-cv2.Sobel(calm, cv2.CV_32F, 0, 1, ksize=3) / 120, 0, 1)
    thick = odd(0.035 * height)
    rim = cv2.dilate(falls, np.ones((thick, 1), np.uint8), anchor=(0, 0))
    rim = cv2.GaussianBlur(rim, (0, 0), max(0.6, 0.006 * height))
    return np.asarray(np.maximum(bank, np.clip(rim * 1.1, 0, 0.75)), np.float32)


def _flakes(shape: tuple[int, int], rng: np.random.Generator) -> Plane:
    """(H, W) in [0, 1]: flakes far (small, many) and near (large, soft, few)."""
    height, width = shape
    unit = min(height, width)
    total = np.zeros(shape, np.float32)
    for count, size, blur, strength in ((170, 0.006, 0.002, 0.8), (60, 0.012, 0.004, 0.95), (12, 0.024, 0.01, 0.8)):
        layer = np.zeros(shape, np.float32)
        for x, y, scale in rng.random((round(count * height * width / unit**2), 3)):
            centre = (round(x * width * 16), round(y * height * 16))
            radius = round(max(0.5, size * unit * (0.7 + 0.6 * scale)) * 16)
            cv2.circle(layer, centre, radius, strength, -1, cv2.LINE_AA, 4)
        total = np.maximum(total, cv2.GaussianBlur(layer, (0, 0), max(0.4, blur * unit)))
    return np.clip(total, 0, 1)
