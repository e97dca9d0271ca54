"""A picture at full size as PNG, with its mask or label map painted over it or left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.contract.sections import Picture
from hardlook.report.thumbnails import (
    LABEL_SHARE,
    MASK_COLOUR,
    MASK_SHARE,
    check_picture,
    label_colour,
    labels_present,
    tinted,
)

# One pixel of outline for each so many pixels of the longer side: seen on a large photograph, fine on a small one.
_OUTLINE = 640
Pixels = NDArray[np.uint8]


def painted(picture: Picture, *, overlay: bool = True) -> Pixels:
    """(H, W, 3) uint8, as large as the image.

    >>> mask = np.array([[True, False]])
    >>> painted(Picture("a", np.zeros((1, 2, 3), np.uint8), mask=mask))[0].tolist()
    [[255, 170, 0], [0, 0, 0]]
    """
    check_picture(picture)
    pixels: Pixels = picture.image
    outline = max(1, round(max(pixels.shape[:2]) / _OUTLINE))
    if overlay and picture.label_map is not None:
        for label in labels_present(picture):
            pixels = tinted(pixels, picture.label_map == label, label_colour(label), LABEL_SHARE, outline)
    if overlay and picture.mask is not None:
        pixels = tinted(pixels, picture.mask, MASK_COLOUR, MASK_SHARE, outline)
    return pixels


def png_of(picture: Picture, *, overlay: bool = True) -> bytes:
    """The painted picture as a PNG."""
    import cv2

    _, encoded = cv2.imencode(".png", painted(picture, overlay=overlay)[:, :, ::-1])
    return encoded.tobytes()
