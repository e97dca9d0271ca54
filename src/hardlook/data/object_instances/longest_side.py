"""Images whose longest side is limited, as TETRIS is benchmarked: image, mask and clicks made smaller alike.

>>> limited_size((4096, 2731)), limited_size((640, 480))
((2048, 1366), (640, 480))
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError

LONGEST = 2048

Size = tuple[int, int]


def limited_size(size: Size, longest: int | None = LONGEST) -> Size:
    """Width and height with the longest side at most `longest`; None leaves them as they are."""
    width, height = size
    side = max(size)
    if longest is None or side <= longest:
        return size
    # Half up in integers, so that no rounding mode of floats decides a size.
    return tuple(max(1, (2 * part * longest + side) // (2 * side)) for part in (width, height))  # type: ignore[return-value]


def limited_image(image: NDArray[np.uint8], longest: int | None = LONGEST) -> NDArray[np.uint8]:
    """The image (H, W, 3) uint8, averaged over areas where it is too large.

    >>> limited_image(np.zeros((4, 8, 3), np.uint8), 4).shape
    (2, 4, 3)
    """
    stored = (image.shape[1], image.shape[0])
    size = limited_size(stored, longest)
    if size == stored:
        return image
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def limited_mask(mask: NDArray[np.bool_], longest: int | None = LONGEST) -> NDArray[np.bool_]:
    """The mask (H, W) bool, each pixel that of the nearest centre.

    >>> limited_mask(np.array([[True, True, False, False]]), 2).tolist()
    [[True, False]]
    """
    height, width = mask.shape
    new_width, new_height = limited_size((width, height), longest)
    if (new_width, new_height) == (width, height):
        return mask
    # Centres, and not OpenCV's corners, so that the mask does not move against the averaged image.
    rows = (2 * np.arange(new_height) + 1) * height // (2 * new_height)
    columns = (2 * np.arange(new_width) + 1) * width // (2 * new_width)
    return np.ascontiguousarray(mask[np.ix_(rows, columns)])


def scaled_points(
    points: NDArray[np.float64], clicked: Size, shown: Size, *, unit: str | None = None
) -> NDArray[np.float64]:
    """Points (n, 2) as x, y on an image of size `clicked`, moved to one of size `shown` (both width, height).

    Pixel centres are whole numbers, so the middle of an image stays its middle. Results lie in 0..side - 1. Sizes of
    different proportions are a `DataError` that names `unit`: the image was turned or cut, or it is another one.

    >>> scaled_points(np.array([[3.5, 0.0]]), (8, 4), (4, 2)).tolist()
    [[1.5, 0.0]]
    """
    if clicked == shown:
        return points
    # Both may be rounded from a third size, each by half a pixel.
    if abs(clicked[0] * shown[1] - shown[0] * clicked[1]) > max(*clicked, *shown):
        came, here = ("x".join(map(str, size)) for size in (clicked, shown))
        remedy = "give the image that was clicked on, neither turned nor cut, or correct w and h"
        raise DataError(f"clicks on an image of {came}, but here it has {here}", unit=unit, remedy=remedy)
    ratio = np.array(shown, np.float64) / np.array(clicked, np.float64)
    moved = (points + 0.5) * ratio - 0.5
    return np.asarray(np.clip(moved, 0.0, np.array(shown, np.float64) - 1.0))
