"""Pictures to files: images, label maps in grey, label maps with VOC's colours.

>>> voc_palette()[:9]
[0, 0, 0, 128, 0, 0, 0, 128, 0]
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import PIL.Image
from numpy.typing import NDArray

from hardlook.errors import DataError

IMAGE_FORMATS = ("png", "jpg")


def save_image(path: Path, image: NDArray[np.uint8]) -> None:
    """Write an RGB image (H, W, 3) uint8; the suffix says how. JPEG loses the signature."""
    stored = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    options = [cv2.IMWRITE_JPEG_QUALITY, 95] if path.suffix == ".jpg" else []
    if not cv2.imwrite(str(path), stored, options):
        raise DataError("the picture could not be written", file=path, remedy="check space and rights")


def save_labels(path: Path, labels: NDArray[np.uint8], *, colours: bool = False) -> None:
    """Write a label map (H, W) uint8 as a PNG, grey or with VOC's palette; either way the indices are stored."""
    picture = PIL.Image.fromarray(labels)
    if colours:
        picture.putpalette(voc_palette())
    picture.save(path)


def voc_palette() -> list[int]:
    """VOC's 256 colours, flat: bit k of an index goes, by k modulo 3, to red, green or blue, highest bit first."""
    palette = []
    for index in range(256):
        for channel in range(3):
            palette.append(sum((index >> (3 * bit + channel) & 1) << (7 - bit) for bit in range(3)))
    return palette
