"""Zoom-in: which part of a picture a network is shown at a click, and where its answer goes.

>>> expand_box((10, 19, 0, 99), (120, 160), ZoomIn(min_crop=20))
(4, 24, 0, 120)
>>> expand_box((10, 19, 0, 99), (120, 160), ZoomIn(min_crop=20), reading="ours")
(5, 24, 0, 119)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hardlook.networks.interactive.click_maps import Click
from hardlook.networks.interactive.predictor_settings import PredictorSettings, Reading, Size, ZoomIn

Box = tuple[int, int, int, int]
"""First and last row, first and last column, all inside."""

SECOND_PASS_BELOW = 0.5
"""Overlap of a first crop with the whole picture under which a prediction is repeated at once."""


@dataclass(frozen=True)
class View:
    """What the network is shown of a course: `shown` of the picture (None: all), resized to `sizes` one after another.

    `crop` is stored for the next click and `pasted` is where the answer goes (None: everywhere).
    """

    shown: Box | None
    crop: Box | None
    pasted: Box | None
    renewed: bool
    sizes: tuple[Size, ...]
    clicks: tuple[Click, ...]


def choose_view(
    settings: PredictorSettings, size: Size, clicks: Sequence[Click], box: Box | None, stored: Box | None
) -> View:
    """What to show of a picture (height, width) at the last of `clicks`.

    `box` is that of the last mask, None where there is none, and `stored` the crop of earlier clicks.
    """
    zoom = settings.zoom
    if zoom is None:
        return make_view(settings, size, clicks)
    released = settings.reading == "released"
    if len(clicks) <= zoom.skip_clicks or (box is None and zoom.skip_clicks >= 0):
        # Released: the answer for the whole picture goes where the crop of an earlier click was.
        kept = stored if released else None
        return make_view(settings, size, clicks, crop=kept, pasted=kept)
    if box is None:
        fresh = (0, size[0] - 1, 0, size[1] - 1)
    else:
        fresh = expand_box(include_clicks(box, clicks), size, zoom, settings.reading)
    renewed = (
        stored is None
        or zoom.every_click
        or not holds_clicks(stored, clicks, settings.reading)
        or box_overlap(fresh, stored) < zoom.recompute_below
    )
    crop = fresh if renewed or stored is None else stored
    return make_view(settings, size, clicks, shown=crop, crop=crop, pasted=crop, renewed=renewed)


def make_view(
    settings: PredictorSettings,
    size: Size,
    clicks: Sequence[Click],
    *,
    shown: Box | None = None,
    crop: Box | None = None,
    pasted: Box | None = None,
    renewed: bool = False,
) -> View:
    """The view with the sizes that its part of the picture is resized to, and the clicks there."""
    moved = list(clicks)
    sizes: list[Size] = []
    if shown is not None:
        size = (shown[1] - shown[0] + 1, shown[3] - shown[2] + 1)
        moved = [(row - shown[0], column - shown[2], sign) for row, column, sign in moved]
        if settings.zoom is not None and settings.zoom.target is not None:
            sizes.append(fit_size(size, settings.zoom.target))
    if settings.longest_side is not None and max(sizes[-1] if sizes else size) > settings.longest_side:
        sizes.append(fit_size(sizes[-1] if sizes else size, settings.longest_side))
    if settings.input_size is not None:
        sizes.append(settings.input_size)
    for new in sizes:
        moved, size = scale_clicks(moved, size, new, settings.reading), new
    return View(shown, crop, pasted, renewed, tuple(sizes), tuple(moved))


def fit_size(size: Size, target: int | Size) -> Size:
    """The target (height, width), or the size whose longest side is `target`, the other at least one pixel."""
    if not isinstance(target, int):
        return target
    scale = target / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def scale_clicks(clicks: Sequence[Click], old: Size, new: Size, reading: Reading) -> list[Click]:
    """Clicks in a resized picture."""
    if reading == "released":
        return [(new[0] * row / old[0], new[1] * column / old[1], sign) for row, column, sign in clicks]
    along = [(after - 1) / max(before - 1, 1) for before, after in zip(old, new, strict=True)]
    return [(row * along[0], column * along[1], sign) for row, column, sign in clicks]


def find_boxes(maps: Sequence[Tensor], threshold: float) -> list[Box | None]:
    """The tight box of each map over the threshold, None where there is nothing; all maps are of one size (H, W).

    Their boxes come from the device in one copy.
    """
    if not maps:
        return []
    masks = torch.stack(list(maps)) > threshold
    held = torch.cat([masks.any(2), masks.any(1)], 1).cpu().numpy()
    boxes: list[Box | None] = []
    for in_row, in_column in zip(*np.split(held, [masks.shape[1]], 1), strict=True):
        down, across = np.flatnonzero(in_row), np.flatnonzero(in_column)
        boxes.append((int(down[0]), int(down[-1]), int(across[0]), int(across[-1])) if len(down) else None)
    return boxes


def include_clicks(box: Box, clicks: Sequence[Click]) -> Box:
    """The box grown to hold the pixels of all positive clicks."""
    rows = [int(row) for row, _, positive in clicks if positive]
    columns = [int(column) for _, column, positive in clicks if positive]
    return min([box[0], *rows]), max([box[1], *rows]), min([box[2], *columns]), max([box[3], *columns])


def expand_box(box: Box, size: Size, zoom: ZoomIn, reading: Reading = "released") -> Box:
    """A crop of the expanded box, inside a picture (height, width)."""
    ends = []
    for first, last, length in ((*box[:2], size[0]), (*box[2:], size[1])):
        centre, side = (first + last) / 2, max(zoom.expansion * (last - first + 1), zoom.min_crop)
        half = side / 2 if reading == "released" else (side - 1) / 2
        ends += [max(0, round(centre - half)), min(length - 1, round(centre + half))]
    return ends[0], ends[1], ends[2], ends[3]


def holds_clicks(crop: Box, clicks: Sequence[Click], reading: Reading) -> bool:
    """Whether all positive clicks are inside; in the released reading the last row and column are outside."""
    more = 0 if reading == "released" else 1
    return all(
        crop[0] <= row < crop[1] + more and crop[2] <= column < crop[3] + more
        for row, column, positive in clicks
        if positive
    )


def box_overlap(one: Box, other: Box) -> float:
    """IoU of the rows times IoU of the columns."""
    product = 1.0
    for axis in (0, 2):
        (a, b), (c, d) = one[axis : axis + 2], other[axis : axis + 2]
        product *= max(0, min(b, d) - max(a, c) + 1) / max(1e-6, max(b, d) - min(a, c) + 1)
    return product
