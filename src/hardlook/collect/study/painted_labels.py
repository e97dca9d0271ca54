"""A picture with its label map painted over it and the labels named below, in their colours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.contract.sections import Picture
from hardlook.report.thumbnails import LABEL_SHARE, check_picture, label_colour, labels_present, tinted

_PAPER, _INK = (255, 255, 255), (20, 20, 20)
_TEXT_SHARE, _LEAST_TEXT = 1 / 24, 13
_OUTLINE = 640


def painted_labels(picture: Picture) -> NDArray[np.uint8]:
    """(H + legend, W, 3) uint8: the image with each label in its colour, and a legend of names below.

    Names are broken into lines at the image's width. A picture without a label of its own gets no legend.

    >>> bare = Picture("a", np.zeros((40, 90, 3), np.uint8), label_map=np.full((40, 90), -1, np.int32))
    >>> named = Picture("a", bare.image, label_map=np.zeros((40, 90), np.int32), label_names=["cat"])
    >>> painted_labels(bare).shape, painted_labels(named).shape[0] > 40
    ((40, 90, 3), True)
    """
    check_picture(picture)
    pixels = picture.image
    labels = labels_present(picture)
    outline = max(1, round(max(pixels.shape[:2]) / _OUTLINE))
    # By place and not by number, as in reports: here each picture stands alone, and neighbours must not look alike.
    colours = {label: label_colour(place) for place, label in enumerate(labels)}
    for label, colour in colours.items():
        assert picture.label_map is not None
        pixels = tinted(pixels, picture.label_map == label, colour, LABEL_SHARE, outline)
    if not labels:
        return pixels
    return np.concatenate([pixels, _legend([(picture.label_names[n], colours[n]) for n in labels], pixels)])


def _legend(labels: list[tuple[str, tuple[int, int, int]]], above: NDArray[np.uint8]) -> NDArray[np.uint8]:
    from PIL import Image, ImageDraw, ImageFont

    height, width = above.shape[:2]
    size = max(_LEAST_TEXT, round(max(height, width) * _TEXT_SHARE))
    font, line, gap = ImageFont.load_default(size=size), round(size * 1.5), round(size * 0.4)
    places, x, y = [], gap, 0
    for name, colour in labels:
        wide = size + gap + round(font.getlength(name)) + 2 * gap
        if x > gap and x + wide > width:
            x, y = gap, y + line
        places.append((name, colour, x, y))
        x += wide
    strip = Image.new("RGB", (width, y + line), _PAPER)
    pen = ImageDraw.Draw(strip)
    for name, colour, left, top in places:
        square = (left, top + round(size * 0.3), left + size, top + round(size * 1.3))
        pen.rectangle(square, fill=colour, outline=_INK)
        pen.text((left + size + gap, top + line / 2), name, fill=_INK, font=font, anchor="lm")
    return np.asarray(strip, np.uint8)
