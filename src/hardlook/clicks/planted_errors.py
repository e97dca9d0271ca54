"""Segmentations that went wrong in a known way, so that there is something to correct in later rounds.

>>> import numpy as np
>>> from hardlook.randomness import generator
>>> target = np.zeros((40, 60), bool)
>>> target[10:30, 20:40] = True
>>> missing, surplus = (planted_error(target, kind, generator(0, kind)) for kind in ("fn", "fp"))
>>> bool((missing <= target).all()), bool((surplus & target).any()), surplus.any()
(True, False, np.True_)
"""

from __future__ import annotations

import numpy as np

from hardlook.clicks.clicked_stem import ClickType
from hardlook.models.roles import Mask
from hardlook.regions.boxes import box_of

LOST = (0.25, 0.75)  # shares of the object that the earlier mask may lack
SHIFT = (0.3, 0.8)  # how far a surplus copy lies from the object, in its width and height
LEAST_PIXELS = 24


def planted_error(target: Mask, click_type: ClickType, rng: np.random.Generator) -> Mask:
    """The error region (H, W) of a previous mask made by spoiling `target` (H, W) bool.

    `first`: the whole object. `fn`: what lies beyond a straight cut, a quarter to three quarters of the object.
    `fp`: what a shifted copy of the object covers beside it. A region can be small or, where the frame leaves no
    room for a copy, empty.

    >>> target = np.ones((4, 4), bool)
    >>> bool(planted_error(target, "first", np.random.default_rng(0)).all())
    True
    """
    angle, share = rng.uniform(0, 2 * np.pi), rng.random()
    down, across = float(np.sin(angle)), float(np.cos(angle))
    box = box_of(target)
    if click_type == "first" or box is None:
        return target.copy()
    if click_type == "fn":
        rows, columns = np.nonzero(target)
        along = down * rows + across * columns
        beyond = along >= np.quantile(along, 1 - _between(LOST, share))
        missing = np.zeros_like(target)
        missing[rows[beyond], columns[beyond]] = True
        return missing
    step = _between(SHIFT, share)
    return _moved(target, round(down * step * box.height), round(across * step * box.width)) & ~target


def _between(bounds: tuple[float, float], share: float) -> float:
    low, high = bounds
    return low + share * (high - low)


def _moved(mask: Mask, down: int, across: int) -> Mask:
    """The mask shifted by whole pixels; what leaves the frame is lost."""
    rows, columns = np.nonzero(mask)
    rows, columns = rows + down, columns + across
    inside = (rows >= 0) & (rows < mask.shape[0]) & (columns >= 0) & (columns < mask.shape[1])
    moved = np.zeros_like(mask)
    moved[rows[inside], columns[inside]] = True
    return moved
