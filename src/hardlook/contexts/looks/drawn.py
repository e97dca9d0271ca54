"""Sketch, grey and blur: the picture by other means.

>>> photo = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
>>> pencil = sketch(photo, np.random.default_rng(1))
>>> bool((grey(photo, np.random.default_rng(1)).std(axis=2) == 0).all()), pencil.shape
(True, (40, 40, 3))
"""

from __future__ import annotations

import cv2
import numpy as np

from hardlook.contexts.looks.shades import Pixels, Plane, grey_of, rounded, smooth_noise


def sketch(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Pencil on paper: outlines, hatching where it is dark, the paper's grain."""
    height, width = image.shape[:2]
    unit = min(height, width)
    calm = cv2.bilateralFilter(rounded(grey_of(image)), 0, 30, max(1.0, 0.008 * unit)).astype(np.float32)
    around = cv2.GaussianBlur(calm, (0, 0), max(1.2, 0.016 * unit))
    # Dodging: a tone divided by its surroundings leaves only what is darker than they are, the lines.
    lines = np.clip(calm / np.maximum(around, 1), 0, 1)
    outline = np.clip((lines - 0.72) / 0.25, 0, 1)
    tone = cv2.GaussianBlur(calm, (0, 0), max(0.8, 0.01 * unit)) / 255
    hatched = 1 - 0.42 * _hatching((height, width), unit, rng) * np.clip((0.55 - tone) / 0.45, 0, 1)
    grain = 0.97 + 0.03 * smooth_noise((height, width), max(8, unit // 6), rng, octaves=2)
    paper = np.array([250, 247, 240], np.float32)
    lead = np.array([52, 52, 56], np.float32)
    left = (outline * hatched * grain)[..., None]
    return rounded(lead + (paper - lead) * left)


def grey(image: Pixels, rng: np.random.Generator) -> Pixels:
    """A black-and-white photograph; `rng` is not used."""
    return np.repeat(rounded(grey_of(image))[..., None], 3, axis=2)


def blur(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Out of focus: a Gaussian of 2.5 to 3.5 % of the shorter side."""
    sigma = (0.025 + 0.01 * rng.random()) * min(image.shape[:2])
    return np.asarray(cv2.GaussianBlur(image, (0, 0), max(1.0, sigma)), np.uint8)


def _hatching(shape: tuple[int, int], unit: int, rng: np.random.Generator) -> Plane:
    """(H, W) in [0, 1]: slanted strokes, a little uneven."""
    rows, columns = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    apart = max(3.0, 0.03 * unit)
    slant = np.pi / 4 + 0.2 * (rng.random() - 0.5)
    wobble = smooth_noise(shape, 6, rng) * apart
    phase = (columns * np.cos(slant) + rows * np.sin(slant) + wobble) / apart
    return np.asarray(0.5 + 0.5 * np.cos(2 * np.pi * phase), np.float32)
