"""A picture at full size as PNG, with its mask or label map painted over it or left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.contract.sections import Picture
from hardlook.report.thumbnails import MASK_COLOUR, check_picture, label_colour, labels_present

_MASK_SHARE, _LABEL_SHARE = 0.42, 0.5
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
    if overlay and picture.label_map is not None:
        for label in labels_present(picture):
            pixels = _tinted(pixels, picture.label_map == label, label_colour(label), _LABEL_SHARE)
    if overlay and picture.mask is not None:
        pixels = _tinted(pixels, picture.mask, MASK_COLOUR, _MASK_SHARE)
    return pixels


def png_of(picture: Picture, *, overlay: bool = True) -> bytes:
    """The painted picture as a PNG."""
    import cv2

    _, encoded = cv2.imencode(".png", painted(picture, overlay=overlay)[:, :, ::-1])
    return encoded.tobytes()


def _tinted(pixels: Pixels, mask: NDArray[np.bool_], colour: tuple[int, int, int], share: float) -> Pixels:
    """The mask in translucent colour, its outline in full colour."""
    import cv2

    result = pixels.copy()
    result[mask] = (pixels[mask] * (1 - share) + np.asarray(colour, np.float32) * share).round().astype(np.uint8)
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(result, contours, -1, colour, max(1, round(max(mask.shape) / _OUTLINE)))
    return result
