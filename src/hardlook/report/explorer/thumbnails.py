"""Thumbnails of units: a benchmark's pictures of one unit as one small JPEG, truth and prediction laid over the image.

Pictures of the same image become one panel: its last overlay is taken for the prediction, and the first that is called
true, else the first, for the truth. With both, the prediction is filled and the truth outlined, in the colours of their
labels. Pictures of other images, such as the support of a one-shot pair, are panels of their own beside it. Panels are
kept small, so that another overlay is drawn without reading the unit again.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardlook.harness.sections import Picture
from hardlook.report.markup import element, escape
from hardlook.report.pictures import LABEL_SHARE, MASK_COLOUR, MASK_SHARE, check_picture, label_colour, resize_mask

Overlay = Literal["on", "truth", "prediction", "off"]
Pixels = NDArray[np.uint8]

# Twice as wide as a tile of the grid on most screens, which have two or more pixels per CSS pixel.
LONGEST = 320
MAX_PANELS, MAX_ENLARGED = 4, 4.0
GAP, BACKGROUND = 4, 128
_JPEG_QUALITY = 84
_TRUTH = re.compile(r"\b(true|truth)\b", re.IGNORECASE)
_POSITIVE, _NEGATIVE, _WHITE = (0, 119, 90), (179, 38, 30), (255, 255, 255)


@dataclass(frozen=True)
class Panel:
    """One image with up to two overlays, all of one small size; points are in pixels of that size."""

    image: Pixels
    truth: Picture | None = None
    prediction: Picture | None = None

    @property
    def is_overlaid(self) -> bool:
        """Whether there is anything to lay over the image."""
        return self.truth is not None or self.prediction is not None

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        layers = [layer for layer in (self.truth, self.prediction) if layer is not None]
        arrays = [self.image, *(part for layer in layers for part in (layer.mask, layer.label_map) if part is not None)]
        return sum(array.nbytes for array in arrays)


def build_panels(pictures: Sequence[Picture], longest: int = LONGEST) -> tuple[Panel, ...]:
    """The panels of a unit's pictures, at most four; images without an overlay only where no picture has one."""
    groups: list[list[Picture]] = []
    for picture in pictures:
        check_picture(picture)
        same = next((group for group in groups if _is_same_image(group[0].image, picture.image)), None)
        if same is None:
            groups.append([picture])
        else:
            same.append(picture)
    chosen = [group for group in groups if any(map(_is_painted, group))] or groups
    chosen = chosen[:MAX_PANELS]
    side = longest if len(chosen) == 1 else longest * 3 // 4
    return tuple(_build_panel(group, side) for group in chosen)


def encode_panels(panels: Sequence[Panel], overlay: Overlay = "on") -> bytes:
    """The panels as one JPEG: one alone, two side by side, more in two rows."""
    from PIL import Image

    buffer = io.BytesIO()
    # Without subsampling of the colours, or thin outlines lose theirs.
    drawn = _arrange([paint_panel(panel, overlay) for panel in panels])
    Image.fromarray(drawn).save(buffer, format="JPEG", quality=_JPEG_QUALITY, subsampling=0)
    return buffer.getvalue()


def paint_panel(panel: Panel, overlay: Overlay) -> Pixels:
    """The panel's image (H, W, 3) with the chosen overlay.

    >>> mask = np.array([[True, False]])
    >>> panel = Panel(np.zeros((1, 2, 3), np.uint8), Picture("truth", np.zeros((1, 2, 3), np.uint8), mask=mask))
    >>> [paint_panel(panel, overlay)[0].tolist() for overlay in ("truth", "prediction")]
    [[[255, 170, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]]
    """
    if overlay == "on" and panel.truth is not None and panel.prediction is not None:
        filled = _fill(panel.image, panel.prediction)
        return _draw_points(_outline(filled, panel.truth, halo=True), panel.prediction)
    shown = {"on": panel.prediction or panel.truth, "truth": panel.truth, "prediction": panel.prediction}.get(overlay)
    if shown is None:
        return panel.image
    return _draw_points(_outline(_fill(panel.image, shown), shown, halo=False), shown)


def draw_message(text: str) -> bytes:
    """A small SVG with a text in place of a picture, in lines of about 40 characters.

    >>> b"&lt;b&gt;" in draw_message("<b>")
    True
    """
    lines: list[str] = [""]
    for word in text.split():
        # A word longer than a line is cut: names of files may have any length.
        word = word if len(word) <= 40 else f"{word[:39]}\N{HORIZONTAL ELLIPSIS}"
        fits = len(lines[-1]) + len(word) < 40
        lines[-1 if fits else len(lines) :] = [f"{lines[-1]} {word}".strip() if fits else word]
    shown = lines[:8]
    top = 120 - 9 * (len(shown) - 1)
    texts = [
        element("text", escape(line), x=160, y=top + 18 * row, text_anchor="middle", font_size=13, fill="#888")
        for row, line in enumerate(shown)
    ]
    font = "system-ui, sans-serif"
    drawing = element(
        "svg", *texts, xmlns="http://www.w3.org/2000/svg", viewBox="0 0 320 240", font_family=font, role="img"
    )
    return str(drawing).encode()


def _is_same_image(one: Pixels, other: Pixels) -> bool:
    return one is other or (one.shape == other.shape and bool(np.array_equal(one, other)))


def _is_painted(picture: Picture) -> bool:
    return picture.mask is not None or picture.label_map is not None


def _build_panel(group: Sequence[Picture], longest: int) -> Panel:
    import cv2

    height, width = group[0].image.shape[:2]
    factor = min(MAX_ENLARGED, longest / max(height, width))
    size = max(1, round(width * factor)), max(1, round(height * factor))
    how = cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
    image = np.asarray(cv2.resize(group[0].image, size, interpolation=how), dtype=np.uint8)
    painted = [_resize_overlay(picture, image, size) for picture in group if _is_painted(picture)]
    if not painted:
        dotted = [_resize_overlay(picture, image, size) for picture in group if picture.points]
        return Panel(image, prediction=dotted[-1] if dotted else None)
    if len(painted) == 1:
        return Panel(image, painted[0])
    *others, prediction = painted
    return Panel(image, next((one for one in others if _TRUTH.search(one.label)), others[0]), prediction)


def _resize_overlay(picture: Picture, image: Pixels, size: tuple[int, int]) -> Picture:
    height, width = picture.image.shape[:2]
    across, down = size[0] / width, size[1] / height
    mask, label_map = picture.mask, picture.label_map
    if label_map is not None:
        rows = ((np.arange(size[1]) + 0.5) / down).astype(int).clip(0, height - 1)
        columns = ((np.arange(size[0]) + 0.5) / across).astype(int).clip(0, width - 1)
        label_map = label_map[np.ix_(rows, columns)].astype(np.int32)
    points = [((x + 0.5) * across, (y + 0.5) * down, positive) for x, y, positive in picture.points]
    mask = None if mask is None else resize_mask(mask, size)
    return replace(picture, image=image, mask=mask, label_map=label_map, points=points)


def _list_maps(layer: Picture) -> list[tuple[NDArray[np.int32], Pixels, float]]:
    """The label map, then the mask: numbers (H, W), -1 where nothing is drawn; their colours; how much is mixed in."""
    maps: list[tuple[NDArray[np.int32], Pixels, float]] = []
    if layer.label_map is not None:
        found = np.flatnonzero(np.bincount(layer.label_map[layer.label_map >= 0]))
        colours = np.zeros((int(found.max(initial=-1)) + 1, 3), np.uint8)
        for label in found.tolist():
            colours[label] = label_colour(label)
        maps.append((layer.label_map, colours, LABEL_SHARE))
    if layer.mask is not None:
        maps.append((layer.mask.astype(np.int32) - 1, np.array([MASK_COLOUR], np.uint8), MASK_SHARE))
    return [one for one in maps if len(one[1])]


def _fill(pixels: Pixels, layer: Picture) -> Pixels:
    import cv2

    for numbers, colours, share in _list_maps(layer):
        mixed = cv2.addWeighted(pixels, 1 - share, colours[numbers], share, 0)
        pixels = np.where(numbers[..., None] >= 0, mixed, pixels).astype(np.uint8)
    return pixels


def _outline(pixels: Pixels, layer: Picture, *, halo: bool) -> Pixels:
    """Lines along the inner borders of all regions, in their colours; a white halo sets them off from any filling."""
    import cv2

    result = pixels.copy()
    for numbers, colours, _ in _list_maps(layer):
        border = np.zeros(numbers.shape, np.bool_)
        across, down = numbers[:, 1:] != numbers[:, :-1], numbers[1:] != numbers[:-1]
        border[:, 1:] |= across
        border[:, :-1] |= across
        border[1:] |= down
        border[:-1] |= down
        border &= numbers >= 0
        if halo:
            result[cv2.dilate(border.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(np.bool_)] = _WHITE
        result[border] = colours[numbers[border]]
    return result


def _draw_points(pixels: Pixels, layer: Picture) -> Pixels:
    import cv2

    result = pixels.copy() if layer.points else pixels
    radius = max(3, max(pixels.shape[:2]) // 50) if layer.ordered else 2
    for x, y, positive in layer.points:
        place = round(x), round(y)
        cv2.circle(result, place, radius + 1, _WHITE, -1, cv2.LINE_AA)
        cv2.circle(result, place, radius, _POSITIVE if positive else _NEGATIVE, -1, cv2.LINE_AA)
    return result


def _arrange(parts: Sequence[Pixels]) -> Pixels:
    """The parts in rows of two, each in the middle of its cell."""
    if len(parts) == 1:
        return parts[0]
    height, width = max(part.shape[0] for part in parts), max(part.shape[1] for part in parts)
    rows = -(-len(parts) // 2)
    canvas = np.full((rows * (height + GAP) - GAP, 2 * (width + GAP) - GAP, 3), BACKGROUND, np.uint8)
    for place, part in enumerate(parts):
        top = place // 2 * (height + GAP) + (height - part.shape[0]) // 2
        left = place % 2 * (width + GAP) + (width - part.shape[1]) // 2
        canvas[top : top + part.shape[0], left : left + part.shape[1]] = part
    return canvas
