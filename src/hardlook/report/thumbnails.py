"""Small pictures for a page: an image with its overlay as a JPEG of at most 256 pixels a side.

Masks are a translucent colour with an outline, label maps one colour a label. Clicks are not painted in: the page
draws them over the picture, where they stay sharp.
"""

from __future__ import annotations

import base64
import colorsys
import io

import numpy as np
from numpy.typing import NDArray

from hardlook.contract.sections import Picture
from hardlook.errors import DataError

LONGEST = 256
MASK_COLOUR = (255, 170, 0)
MASK_SHARE, LABEL_SHARE = 0.42, 0.5
_QUALITY = 82
Pixels = NDArray[np.uint8]


def thumbnail_size(picture: Picture, longest: int = LONGEST) -> tuple[int, int]:
    """Width and height of the thumbnail, at most `longest` a side; small images keep their size.

    >>> thumbnail_size(Picture("a", np.zeros((512, 1024, 3), np.uint8)))
    (256, 128)
    """
    height, width = picture.image.shape[:2]
    factor = min(1.0, longest / max(height, width))
    return max(1, round(width * factor)), max(1, round(height * factor))


def thumbnail(picture: Picture, longest: int = LONGEST) -> str:
    """The picture with its overlay as a data URI."""
    from PIL import Image

    check_picture(picture)
    size = thumbnail_size(picture, longest)
    pixels = np.asarray(Image.fromarray(picture.image).resize(size, Image.Resampling.LANCZOS), dtype=np.uint8)
    if picture.label_map is not None:
        pixels = _with_labels(pixels, picture.label_map, size)
    if picture.mask is not None:
        pixels = tinted(pixels, _resized_mask(picture.mask, size), MASK_COLOUR)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="JPEG", quality=_QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def check_picture(picture: Picture) -> None:
    """An error where an image is not (H, W, 3) uint8 or an overlay has another size."""
    image = picture.image
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or 0 in image.shape:
        raise DataError(
            f"picture {picture.label!r}: expected an image (H, W, 3) of uint8, got {image.shape} of {image.dtype}",
            remedy="convert it to 8-bit RGB before it enters a Picture",
        )
    for name, overlay in (("mask", picture.mask), ("label map", picture.label_map)):
        if overlay is not None and overlay.shape != image.shape[:2]:
            raise DataError(
                f"picture {picture.label!r}: expected a {name} of {image.shape[:2]}, got {overlay.shape}",
                remedy=f"resize the {name} to its image",
            )


def labels_present(picture: Picture) -> list[int]:
    """The labels of the label map, the largest area first; negative ones are drawn as nothing."""
    if picture.label_map is None:
        return []
    labels, areas = np.unique(picture.label_map, return_counts=True)
    order = np.lexsort((labels, -areas))
    return [int(label) for label in labels[order] if label >= 0]


def label_colour(label: int) -> tuple[int, int, int]:
    """The colour of a label, the same on every picture: twelve hues, then again in another lightness."""
    # Steps of five go through all twelve hues and set neighbours in number far apart on the circle.
    place, turn = label * 5 % 12, label // 12 % 3
    lightness = 0.5 + 0.1 * (place % 2) + (0.0, 0.08, -0.16)[turn]
    red, green, blue = colorsys.hls_to_rgb((place + turn / 2) / 12, lightness, 0.8)
    return round(red * 255), round(green * 255), round(blue * 255)


def _with_labels(pixels: Pixels, label_map: NDArray[np.int32], size: tuple[int, int]) -> Pixels:
    rows = (np.arange(size[1]) + 0.5) * label_map.shape[0] / size[1]
    columns = (np.arange(size[0]) + 0.5) * label_map.shape[1] / size[0]
    small = label_map[np.ix_(rows.astype(int), columns.astype(int))]
    for label in np.unique(small[small >= 0]).tolist():
        pixels = tinted(pixels, small == label, label_colour(label), LABEL_SHARE)
    return pixels


def tinted(
    pixels: Pixels, mask: NDArray[np.bool_], colour: tuple[int, int, int], share: float = MASK_SHARE, outline: int = 1
) -> Pixels:
    """A copy of the pixels with the mask in translucent colour, its outline, so many pixels wide, in full colour."""
    import cv2

    result = pixels.copy()
    result[mask] = (pixels[mask] * np.float32(1 - share) + np.asarray(colour, np.float32) * share).round()
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(result, contours, -1, colour, outline)
    return result


def _resized_mask(mask: NDArray[np.bool_], size: tuple[int, int]) -> NDArray[np.bool_]:
    import cv2

    shares = cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    small = np.asarray(shares >= 0.5, dtype=np.bool_)
    # A thing thinner than a thumbnail's pixel would vanish, and the reader would see an empty mask.
    return small if small.any() or not mask.any() else np.asarray(shares > 0, dtype=np.bool_)
