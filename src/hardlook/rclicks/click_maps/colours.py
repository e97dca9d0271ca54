"""Click maps and ordered labels drawn in colour over a grey image."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.models.roles import Image

FAINT = 0.08  # square root of a value over the highest
COLOURS = cv2.COLORMAP_INFERNO
GROUP_COLOURS = cv2.COLORMAP_VIRIDIS


def draw_heat_map(image: Image, values: NDArray[np.floating]) -> Image:
    """A map (H, W), at least 0, over the image in grey: dark violet where it is low, yellow at its highest."""
    peak = float(values.max())
    share = np.sqrt(values / peak) if peak > 0 else np.zeros(values.shape)
    colours = np.asarray(cv2.applyColorMap(np.rint(255 * share).astype(np.uint8), COLOURS)[..., ::-1], np.uint8)
    # Next to nothing fades out, else the blur of a single click would end in a dark square.
    return _blend(image, colours, np.minimum(share / FAINT, 1.0) * (0.55 + 0.35 * share))


def draw_labels(image: Image, numbers: NDArray[np.integer], count: int) -> Image:
    """Ordered labels (H, W), 0 to count - 1 and -1 for none, over the image in grey: violet first, yellow last."""
    return _blend(image, label_colours(count)[np.clip(numbers, 0, count - 1)], np.where(numbers >= 0, 0.8, 0.0))


def label_colours(count: int) -> NDArray[np.uint8]:
    """The colours (count, 3) of ordered labels."""
    places = np.rint(np.linspace(0, 255, count)).astype(np.uint8)[:, None]
    return np.asarray(cv2.applyColorMap(places, GROUP_COLOURS)[:, 0, ::-1], np.uint8)


def _blend(image: Image, colours: NDArray[np.uint8], share: NDArray[np.floating]) -> Image:
    grey = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY).astype(np.float64)[..., None] * 0.6 + 50
    drawn = grey * (1 - share[..., None]) + colours * share[..., None]
    return np.asarray(np.rint(drawn.clip(0, 255)), np.uint8)
