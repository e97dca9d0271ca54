"""Pictures with their overlays, as thumbnails for reports and at full size for the explorer.

Masks are a translucent colour with an outline, label maps one colour per label. Clicks are not painted in: pages draw
them over the picture, where they stay sharp.
"""

from __future__ import annotations

import base64
import colorsys
import io

import numpy as np
from numpy.typing import NDArray

from hardlook.errors import DataError
from hardlook.harness.rounding import format_percent
from hardlook.harness.sections import Picture
from hardlook.report.formatting import format_count
from hardlook.report.markup import strip_backticks

LONGEST = 256
MASK_COLOUR = (255, 170, 0)
MASK_SHARE, LABEL_SHARE = 0.42, 0.5
_JPEG_QUALITY = 82

# The outline of a full-size picture is one pixel wide for each of this many pixels of its longer side.
_SIDE_PER_OUTLINE = 640
Pixels = NDArray[np.uint8]


def compute_thumbnail_size(picture: Picture, longest: int = LONGEST) -> tuple[int, int]:
    """Width and height of the thumbnail, at most `longest` per side; small images keep their size.

    >>> compute_thumbnail_size(Picture("a", np.zeros((512, 1024, 3), np.uint8)))
    (256, 128)
    """
    height, width = picture.image.shape[:2]
    factor = min(1.0, longest / max(height, width))
    return max(1, round(width * factor)), max(1, round(height * factor))


def encode_thumbnail(picture: Picture, longest: int = LONGEST) -> str:
    """The picture with its overlay as a data URI."""
    from PIL import Image

    check_picture(picture)
    size = compute_thumbnail_size(picture, longest)
    pixels = np.asarray(Image.fromarray(picture.image).resize(size, Image.Resampling.LANCZOS), dtype=np.uint8)
    if picture.label_map is not None:
        pixels = _with_labels(pixels, picture.label_map, size)
    if picture.mask is not None:
        pixels = tint_mask(pixels, resize_mask(picture.mask, size), MASK_COLOUR)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="JPEG", quality=_JPEG_QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def paint_overlay(picture: Picture, *, overlay: bool = True) -> Pixels:
    """The picture with its overlay: (H, W, 3) uint8, as large as the image.

    >>> mask = np.array([[True, False]])
    >>> paint_overlay(Picture("a", np.zeros((1, 2, 3), np.uint8), mask=mask))[0].tolist()
    [[255, 170, 0], [0, 0, 0]]
    """
    check_picture(picture)
    pixels: Pixels = picture.image
    outline = max(1, round(max(pixels.shape[:2]) / _SIDE_PER_OUTLINE))
    if overlay and picture.label_map is not None:
        for label in list_labels(picture):
            pixels = tint_mask(pixels, picture.label_map == label, label_colour(label), LABEL_SHARE, outline)
    if overlay and picture.mask is not None:
        pixels = tint_mask(pixels, picture.mask, MASK_COLOUR, MASK_SHARE, outline)
    return pixels


def encode_png(picture: Picture, *, overlay: bool = True) -> bytes:
    """The picture with its overlay as a PNG of full size."""
    import cv2

    _, encoded = cv2.imencode(".png", paint_overlay(picture, overlay=overlay)[:, :, ::-1])
    return encoded.tobytes()


def check_picture(picture: Picture) -> None:
    """Raise an error where the image is not (H, W, 3) uint8 or an overlay has another size."""
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


def list_labels(picture: Picture) -> list[int]:
    """The labels of the label map, the largest area first; negative ones are not drawn."""
    if picture.label_map is None:
        return []
    labels, areas = np.unique(picture.label_map, return_counts=True)
    order = np.lexsort((labels, -areas))
    return [int(label) for label in labels[order] if label >= 0]


def label_colour(label: int) -> tuple[int, int, int]:
    """The colour of a label, the same on every picture: twelve hues, then again in another lightness."""
    # Steps of five go through all twelve hues and give consecutive labels distant hues.
    place, turn = label * 5 % 12, label // 12 % 3
    lightness = 0.5 + 0.1 * (place % 2) + (0.0, 0.08, -0.16)[turn]
    red, green, blue = colorsys.hls_to_rgb((place + turn / 2) / 12, lightness, 0.8)
    return round(red * 255), round(green * 255), round(blue * 255)


def _with_labels(pixels: Pixels, label_map: NDArray[np.int32], size: tuple[int, int]) -> Pixels:
    rows = (np.arange(size[1]) + 0.5) * label_map.shape[0] / size[1]
    columns = (np.arange(size[0]) + 0.5) * label_map.shape[1] / size[0]
    small = label_map[np.ix_(rows.astype(int), columns.astype(int))]
    for label in np.unique(small[small >= 0]).tolist():
        pixels = tint_mask(pixels, small == label, label_colour(label), LABEL_SHARE)
    return pixels


def tint_mask(
    pixels: Pixels, mask: NDArray[np.bool_], colour: tuple[int, int, int], share: float = MASK_SHARE, outline: int = 1
) -> Pixels:
    """A copy of the pixels with the mask in translucent colour, its outline, `outline` pixels wide, in full colour."""
    import cv2

    result = pixels.copy()
    result[mask] = (pixels[mask] * np.float32(1 - share) + np.asarray(colour, np.float32) * share).round()
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(result, contours, -1, colour, outline)
    return result


def resize_mask(mask: NDArray[np.bool_], size: tuple[int, int]) -> NDArray[np.bool_]:
    """The mask at another size, (width, height): pixels that it covers by half; all that it touches if none is."""
    import cv2

    enlarged = size[0] > mask.shape[1]
    shares = cv2.resize(mask.astype(np.float32), size, interpolation=cv2.INTER_LINEAR if enlarged else cv2.INTER_AREA)
    resized = np.asarray(shares >= 0.5, dtype=np.bool_)
    # A mask thinner than a pixel of the thumbnail would vanish.
    return resized if resized.any() or not mask.any() else np.asarray(shares > 0, dtype=np.bool_)


def list_legend(picture: Picture, most: int) -> list[tuple[str, str]]:
    """Name and CSS colour of the labels in the picture, largest first, at most `most`."""
    names = dict(enumerate(map(str, picture.label_names)))
    return [
        (names.get(label, f"label {label}"), "rgb({},{},{})".format(*label_colour(label)))
        for label in list_labels(picture)[:most]
    ]


def describe_picture(picture: Picture, unit: str, *, most_labels: int, overlay: bool = True) -> str:
    """The text alternative: what the picture is, of which unit, and what is painted over it."""
    words = [f"{strip_backticks(picture.label) or 'picture'} of {unit}"]
    if overlay and picture.mask is not None:
        words.append(f"a mask over {format_percent(picture.mask.mean(), 1, gap='')} of the image")
    if overlay and picture.label_map is not None:
        words.append("labels: " + (", ".join(name for name, _ in list_legend(picture, most_labels)) or "none"))
    if overlay and picture.points:
        positive = sum(point[2] for point in picture.points)
        words.append(f"{format_count(positive, 'positive click')}, {len(picture.points) - positive} negative")
    return "; ".join(words)
