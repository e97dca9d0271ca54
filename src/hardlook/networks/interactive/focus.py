"""The region of a picture that FocalClick's refiner looks at after a click.

It holds what the click has changed: where the mask was empty, the object; else the connected change at the click, or,
if that is small beside the object, a square around the click.

Readings: the released code errs in four places, `ours` in none of them.

| place | released | ours |
|---|---|---|
| pixels of the coarse mask | logit over .49: probability over .62 | probability over .49 |
| nothing has changed at the click | the box of all that has not changed | a square around the click |
| fewer than ten pixels | the whole picture | a box as of any others; the whole picture only of none |
| last row and column of a box | not refined | refined |

>>> import numpy as np
>>> mask = np.zeros((100, 100)); mask[40:60, 30:50] = 1
>>> choose_region(mask, np.zeros_like(mask), (50, 40), (0, 99, 0, 99), Focus(), reading="ours")
(36, 64, 26, 54)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Region = tuple[int, int, int, int]
"""First row and the row after the last, first column and the column after the last."""

FEWEST = 10
"""Pixels under which the released code takes the whole picture."""


@dataclass(frozen=True)
class Focus:
    """How the region is chosen and what becomes of the rest.

    A change lower or narrower than `small` of the object's box is small: the square around the click has sides of twice
    `half_side` of the object's longer side. Any box grows by `expansion`. After more than `late_clicks` clicks only the
    region is new, the rest stays as it was. A pixel is in a mask over `threshold`.
    """

    expansion: float = 1.4
    small: float = 1 / 3
    half_side: float = 0.2
    late_clicks: int = 10
    threshold: float = 0.49


def choose_region(
    coarse: NDArray[Any],
    previous: NDArray[Any],
    click: tuple[int, int],
    bounds: tuple[int, int, int, int],
    focus: Focus,
    *,
    reading: Literal["released", "ours"] = "released",
) -> Region | None:
    """The region inside `bounds` (first and last row, first and last column), None where nothing of it is inside.

    Of probabilities (H, W), coarse and previous ones, and the last click (row, column).
    """
    released = reading == "released"
    level = 1 / (1 + np.exp(-focus.threshold)) if released else focus.threshold
    mask, before = coarse > level, previous > focus.threshold
    box = _find_box(mask, released)
    if before.any():
        sides = [last - first for first, last in (box[:2], box[2:])]
        change = _find_change(mask ^ before, click, released)
        if change is None or any(
            last - first < focus.small * side
            for (first, last), side in zip((change[:2], change[2:]), sides, strict=True)
        ):
            half = focus.half_side * max(sides)
            change = (click[0] - half, click[0] + half, click[1] - half, click[1] + half)
        box = change
    ends: list[int] = []
    for axis, length in enumerate(mask.shape):
        first, last = box[2 * axis : 2 * axis + 2]
        start, stop = _expand(first, last, focus.expansion, released)
        ends += [max(0, start, bounds[2 * axis]), min(length, stop, bounds[2 * axis + 1] + 1)]
    return None if ends[0] >= ends[1] or ends[2] >= ends[3] else (ends[0], ends[1], ends[2], ends[3])


def _expand(first: float, last: float, expansion: float, released: bool) -> tuple[int, int]:
    half = expansion * (last - first + 1) / 2
    if released:
        return int((first + last) / 2 - half), int((first + last) / 2 + half)
    centre = (first + last + 1) / 2
    return round(centre - half), round(centre + half)


def _find_box(mask: NDArray[np.bool_], released: bool) -> tuple[float, float, float, float]:
    """First and last row, first and last column of a mask; of too few pixels those of the whole picture."""
    height, width = mask.shape
    if released and mask.sum() < FEWEST:
        return 0, height, 0, width
    if not mask.any():
        return 0, height - 1, 0, width - 1
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return float(rows[0]), float(rows[-1]), float(columns[0]), float(columns[-1])


def _find_change(
    changed: NDArray[np.bool_], click: tuple[int, int], released: bool
) -> tuple[float, float, float, float] | None:
    """The box of the connected change at the click (eight neighbours), None where there is none."""
    labels, _ = ndimage.label(changed, np.ones((3, 3)))
    if labels[click] == 0 and not released:
        return None
    return _find_box(labels == labels[click], released)
