"""Dusk and autumn: low light, and leaves.

>>> day = np.full((60, 80, 3), 180, np.uint8)
>>> evening = dusk(day, np.random.default_rng(0))
>>> bool(evening.mean() < 110), bool(evening[..., 0].mean() > evening[..., 1].mean())
(True, True)
"""

from __future__ import annotations

import cv2
import numpy as np

from hardlook.contexts.looks.shades import Pixels, gradient, grey_of, mixed, rounded

_LEAVES = ((214, 110, 28), (186, 52, 28), (232, 168, 44), (150, 74, 30))


def dusk(image: Pixels, rng: np.random.Generator) -> Pixels:
    """The light after sunset: dark, violet above, an orange glow at a low height, shadows gone blue."""
    height, width = image.shape[:2]
    glow_at = 0.45 + 0.2 * rng.random()
    light = gradient(
        (height, width),
        (0.0, (0.40, 0.30, 0.52)),
        (glow_at - 0.15, (0.78, 0.42, 0.42)),
        (glow_at, (1.0, 0.55, 0.30)),
        (glow_at + 0.2, (0.55, 0.33, 0.32)),
        (1.0, (0.30, 0.22, 0.30)),
    )
    # A curve that deepens the dark parts: at dusk what is dark has no detail left.
    tone = 255 * (image.astype(np.float32) / 255) ** 1.25
    x, y = np.meshgrid(np.linspace(0, 1, width, dtype=np.float32), np.linspace(0, 1, height, dtype=np.float32))
    sun = 0.2 + 0.6 * rng.random()
    halo = np.exp(-(((x - sun) / 0.28) ** 2) - ((y - glow_at) / 0.16) ** 2)[..., None]
    return rounded(tone * light + halo * np.array([86, 40, 6], np.float32) + np.array([8, 4, 14], np.float32))


def autumn(image: Pixels, rng: np.random.Generator) -> Pixels:
    """Greens gone to orange, golden light, and leaves: falling, and lying along the lower edge."""
    hue, saturation, value = cv2.split(cv2.cvtColor(image, cv2.COLOR_RGB2HSV).astype(np.float32))
    # OpenCV's hue runs to 180: yellow-green to blue-green (about 25 to 90) moves to red-orange (6 to 20).
    leafy = np.clip((hue - 20) / 10, 0, 1) * np.clip((100 - hue) / 12, 0, 1)
    turned = hue * (1 - leafy) + (6 + (np.clip(hue, 25, 90) - 25) * 14 / 65) * leafy
    richer = np.clip(saturation * (1 + 0.5 * leafy), 0, 255)
    rotated = cv2.cvtColor(rounded(np.stack([turned, richer, value], axis=-1)), cv2.COLOR_HSV2RGB)
    golden = rotated.astype(np.float32) * np.array([1.06, 0.9, 0.66], np.float32)
    amber = grey_of(image)[..., None] / 255 * np.array([255, 176, 84], np.float32)
    return _with_leaves(rounded(mixed(golden, amber, 0.28) + 6), rng)


def _with_leaves(picture: Pixels, rng: np.random.Generator) -> Pixels:
    height, width = picture.shape[:2]
    unit = min(height, width)
    falling = rng.random((round(16 * height * width / unit**2), 4))
    lying = rng.random((round(60 * width / unit), 4))
    lying[:, 1] = 1 - 0.13 * lying[:, 1] ** 1.5
    drawn = picture.copy()
    for x, y, turn, kind in np.concatenate([falling, lying]):
        size = (0.026 + 0.02 * kind) * unit
        base = np.array(_LEAVES[int(kind * 997) % len(_LEAVES)], np.float32)
        colour = tuple(float(channel) for channel in base * (0.85 + 0.3 * turn))
        _draw_leaf(drawn, (x * width, y * height), size, 2 * np.pi * turn, colour)
    return drawn


def _draw_leaf(
    drawn: Pixels, centre: tuple[float, float], size: float, angle: float, colour: tuple[float, ...]
) -> None:
    """A pointed leaf with a stalk and a midrib."""
    along = np.linspace(-1, 1, 9)
    half = 0.45 * np.cos(along * np.pi / 2) ** 0.8 * (1 - 0.25 * along)
    outline = np.concatenate([np.stack([along, half], 1), np.stack([along[::-1], -half[::-1]], 1)])
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    points = np.rint((outline @ turn * size + centre) * 16).astype(np.int32)
    cv2.fillPoly(drawn, [points], colour, cv2.LINE_AA, 4)
    ends = np.rint((np.array([[-1.4, 0.0], [0.7, 0.0]]) @ turn * size + centre) * 16).astype(np.int32)
    rib = tuple(0.6 * channel for channel in colour)
    cv2.line(drawn, tuple(map(int, ends[0])), tuple(map(int, ends[1])), rib, 1, cv2.LINE_AA, 4)
