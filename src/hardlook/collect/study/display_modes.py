"""Pictures of what people are to click on, one per display mode.

`cut-out` shows the region in its place on grey, `shifted` moves it so that its place is not revealed, `silhouette`
shows its shape alone, `highlighted` the image with all else darkened; `text` has no picture. Errors of predictions are
coloured: missing pixels (fn) green, surplus pixels (fp) red, in hues that colour-blind people can tell apart.

>>> image = np.full((4, 6, 3), 200, np.uint8)
>>> mask = np.zeros((4, 6), bool)
>>> mask[1, 1] = True
>>> draw_cut_out(image, mask)[:, :, 0].tolist()[1]
[128, 200, 128, 128, 128, 128]
>>> find_shift(mask)
(1, 0)
"""

from __future__ import annotations

from math import hypot
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from hardlook.collect.study.settings import DisplayMode
from hardlook.data.click_names import ClickType
from hardlook.errors import OptionError
from hardlook.metrics.regions import find_bounding_box
from hardlook.models.roles import Image, Mask

GREY, DARK = 128, 40

# A bluish green and a dark red stay apart for colour-blind people, in hue or in lightness.
COLOURS: dict[ClickType, tuple[int, int, int]] = {"fn": (0, 158, 115), "fp": (204, 51, 17)}
WHITE, OUTLINE = (255, 255, 255), (255, 214, 10)
DIMMED = 0.3
MIN_SHIFT = 0.1  # of the image's diagonal; a smaller shift still reveals the place
_LINE = 1 / 200  # thickness of outlines, of the diagonal


def draw_target(mode: DisplayMode, image: Image, mask: Mask, click_type: ClickType = "first") -> Image:
    """The picture (H, W, 3) uint8 of a mask (H, W) bool in a display mode; text has none and is an `OptionError`."""
    if mode == "cut-out":
        return draw_cut_out(image, mask, click_type)
    if mode == "shifted":
        return draw_shifted(image, mask, click_type)
    if mode == "silhouette":
        return draw_silhouette(mask, click_type)
    if mode == "highlighted":
        return draw_highlighted(image, mask, click_type)
    raise OptionError(f"no picture in display mode {mode!r}", remedy="cut-out, shifted, silhouette or highlighted")


def draw_cut_out(image: Image, mask: Mask, click_type: ClickType = "first") -> Image:
    """The region's own pixels in their place on neutral grey; an error has a coloured outline."""
    picture = np.full_like(image, GREY)
    picture[mask] = image[mask]
    if click_type != "first":
        picture[outline_mask(mask)] = COLOURS[click_type]
    return picture


def draw_shifted(image: Image, mask: Mask, click_type: ClickType = "first") -> Image:
    """The cut-out moved by `find_shift(mask)`: no pixel of the region leaves the frame."""
    shift = find_shift(mask)
    return draw_cut_out(_moved(image, shift), _moved(mask, shift), click_type)


def find_shift(mask: Mask) -> tuple[int, int]:
    """How far (x, y) in whole pixels the shifted cut-out moves: its box to the middle of the frame.

    Where that is less than a tenth of the diagonal, it goes to the corner of the frame that is farthest away, and no
    further than the frame lets it: a region as large as the frame stays where it is.

    >>> middle = np.zeros((10, 10), bool)
    >>> middle[4:6, 3:6] = True
    >>> find_shift(middle)
    (4, -4)
    """
    box = find_bounding_box(mask)
    if box is None:
        return 0, 0
    height, width = mask.shape
    to_middle = ((width - box.width) // 2 - box.left, (height - box.height) // 2 - box.top)
    if not is_small_shift(to_middle, mask.shape):
        return to_middle
    across, along = (-box.left, width - box.right), (-box.top, height - box.bottom)
    # Of equally far corners the first: up before down, left before right.
    corners = [(right, down) for down in along for right in across]
    return max(corners, key=lambda shift: shift[0] ** 2 + shift[1] ** 2)


def is_small_shift(shift: tuple[int, int], shape: tuple[int, ...]) -> bool:
    """Whether a shift is less than a tenth of the diagonal of a frame of `shape` (H, W).

    >>> is_small_shift((3, 4), (30, 40)), is_small_shift((3, 3), (30, 40))
    (False, True)
    """
    return hypot(*shift) < MIN_SHIFT * hypot(shape[0], shape[1])


def draw_silhouette(mask: Mask, click_type: ClickType = "first") -> Image:
    """The region's shape on dark grey: white, or the colour of the error."""
    picture = np.full((*mask.shape, 3), DARK, np.uint8)
    picture[mask] = WHITE if click_type == "first" else COLOURS[click_type]
    return picture


def draw_highlighted(image: Image, mask: Mask, click_type: ClickType = "first") -> Image:
    """The image, dark but for the region, which keeps its pixels and has an outline."""
    dark = (np.arange(256) * DIMMED).astype(np.uint8)
    picture: Image = dark[image]
    picture[mask] = image[mask]
    picture[outline_mask(mask)] = OUTLINE if click_type == "first" else COLOURS[click_type]
    return picture


def outline_mask(mask: Mask) -> Mask:
    """The pixels (H, W) just outside a mask, in a line that is visible at any size: 1/200 of the diagonal.

    >>> outline_mask(np.array([[False, False, False, True]])).tolist()
    [[False, True, True, False]]
    """
    thick = max(2, round(hypot(*mask.shape) * _LINE))
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * thick + 1, 2 * thick + 1))
    around, box = np.zeros_like(mask), find_bounding_box(mask)
    if box is not None:
        part = box.grown(thick, mask.shape).slices
        around[part] = (cv2.dilate(mask[part].astype(np.uint8), disc) > 0) & ~mask[part]
    return around


def _moved(frame: NDArray[Any], shift: tuple[int, int]) -> NDArray[Any]:
    """A frame (H, W, ...) moved by whole pixels (x, y); pixels from outside are 0."""
    picture = np.zeros_like(frame)
    (right, down), (height, width) = shift, frame.shape[:2]
    kept = frame[max(-down, 0) : height - max(down, 0), max(-right, 0) : width - max(right, 0)]
    top, left = max(down, 0), max(right, 0)
    picture[top : top + kept.shape[0], left : left + kept.shape[1]] = kept
    return picture
