"""What the air holds: snowflakes, falling leaves, a veil of fog. It changes colours and no truth.

>>> import numpy as np
>>> from hardlook.world.scene import describe_scene
>>> grey = np.full((120, 160, 3), 90, np.uint8)
>>> no_object = np.zeros((120, 160), bool)
>>> bool((add_weather(grey, describe_scene(0, 1, context="winter"), no_object) != grey).any())
True
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.randomness import generator
from hardlook.world.scene import Scene

_MIST = np.array([218, 225, 228], np.float32)
_LEAVES = ((232, 148, 50), (200, 76, 40), (242, 196, 84))


def add_weather(image: NDArray[np.uint8], scene: Scene, salient: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A copy of the image (H, W, 3) with the context's weather; `salient` (H, W) stays clear of the worst of it."""
    if scene.context == "fog":
        return _veil(image, scene, salient)
    drawn = image.copy()
    rng = generator(scene.seed, "scene", scene.index, "weather")
    unit = scene.size[1]
    if scene.context == "winter":
        for x, y, size in rng.random((55, 3)):
            place = (round(x * scene.size[0] * 16), round(y * unit * 16))
            cv2.circle(drawn, place, round((0.004 + 0.007 * size) * unit * 16), (255, 255, 255), -1, cv2.LINE_AA, 4)
    elif scene.context == "autumn":
        for i, (x, y, turn) in enumerate(rng.random((12, 3))):
            place = (round(x * scene.size[0] * 16), round(y * 0.8 * unit * 16))
            axes = (round(0.017 * unit * 16), round(0.009 * unit * 16))
            cv2.ellipse(drawn, place, axes, float(180 * turn), 0, 360, _LEAVES[i % 3], -1, cv2.LINE_AA, 4)
    return drawn


def _veil(image: NDArray[np.uint8], scene: Scene, salient: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Thickest at the horizon, thinner towards the viewer and over what is near."""
    rows = np.linspace(0, 1, image.shape[0], dtype=np.float32)
    thick = 0.28 + 0.4 * np.exp(-(((rows - scene.horizon) / 0.16) ** 2))
    alpha = np.repeat(thick[:, None], image.shape[1], axis=1)
    alpha[salient] *= 0.3
    alpha = cv2.blur(alpha, (3, 3))[..., None]
    return np.rint(image * (1 - alpha) + _MIST * alpha).astype(np.uint8)
