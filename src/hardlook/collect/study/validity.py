"""Whether a click is valid: inside the region that was to be clicked, or near it.

A click at (x, y), continuous from the image's upper left corner, falls on the pixel of column floor(x) and row
floor(y). It is inside where the mask has that pixel, and near where the centre of some pixel of the mask lies within
the radius of that pixel's centre. Clicks beyond the frame are inside nothing; they can be near.

>>> mask = np.zeros((20, 20), bool)
>>> mask[10, 10] = True
>>> [flags.tolist() for flags in classify_points(mask, np.array([[10.9, 10.0], [13.5, 14.5], [14.0, 14.0]]), 5.0)]
[[True, False, False], [True, True, False]]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from hardlook.caching import ArrayCache
from hardlook.collect.study.folder import Study
from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.tasks import ClickTask, RatingTask, ReviewTask, Task
from hardlook.errors import DataError
from hardlook.models.roles import Mask

CACHE_BYTES = 128 * 2**20

# Of 1 to 10: what people at least say of a value that fits, and at most of one that does not.
_HIGH_RATING, _LOW_RATING = 8, 3
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class ClickValidity:
    """Whether one click is inside its region, and near it; whatever is inside is near."""

    inside: bool
    near: bool


def classify_points(mask: Mask, points: NDArray[np.float64], radius: float) -> tuple[Flags, Flags]:
    """`inside` and `near` (n,) bool of points (n, 2), each (x, y) in pixels, against a mask (H, W) bool.

    Squared distances are whole numbers, so that a click at exactly `radius` pixels is near on every machine.
    """
    points = np.asarray(points, np.float64)
    if mask.ndim != 2 or points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise DataError(f"expected a mask (H, W) and finite points (n, 2), got {mask.shape} and {points.shape}")
    if not 0 <= radius < np.inf:
        raise DataError(f"a click radius of {radius}", remedy="pass 0 or more pixels")
    columns, rows = np.floor(points.T).astype(np.int64)
    height, width = mask.shape
    in_frame = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    inside = np.zeros(len(points), bool)
    inside[in_frame] = mask[rows[in_frame], columns[in_frame]]
    near = inside.copy()
    for i in np.flatnonzero(~inside):
        near[i] = _is_within(mask, int(rows[i]), int(columns[i]), radius)
    return inside, near


def _is_within(mask: Mask, row: int, column: int, radius: float) -> bool:
    """Whether some pixel of the mask is at most `radius` away; only the square around the click is searched."""
    reach = floor(radius)
    top, left = max(row - reach, 0), max(column - reach, 0)
    square = mask[top : max(row + reach + 1, 0), left : max(column + reach + 1, 0)]
    rows, columns = np.nonzero(square)
    squared = (rows + (top - row)) ** 2 + (columns + (left - column)) ** 2
    return bool((squared <= radius * radius).any())


def passes_check(task: Task, value: int | None) -> bool:
    """Whether a review or a rating of an attention check is what anybody would say who looks at it.

    A review has its known answer; the two labels of a rating are alike, so that only a value of 1 fits them.

    >>> from dataclasses import replace
    >>> same = RatingTask("check-0", "attention-check/0", "pair", ("cup", "cup"), "", 1.0)
    >>> passes_check(same, 9), passes_check(same, 2), passes_check(replace(same, value=0.0), 2)
    (True, False, True)
    """
    if value is None:
        return False
    if isinstance(task, ReviewTask):
        return value == task.answer
    fits = isinstance(task, RatingTask) and task.value >= 0.5
    return value >= _HIGH_RATING if fits else value <= _LOW_RATING


class ClickValidator:
    """Validates clicks on a study's tasks, with masks in a cache of `cache_bytes`; safe to share between threads."""

    def __init__(self, study: Study, cache_bytes: int = CACHE_BYTES) -> None:
        self._study, self._masks = study, ArrayCache(cache_bytes)

    def validate(self, task_id: str, x: float, y: float) -> ClickValidity:
        """The validity of a click at (x, y) in pixels of the task's image."""
        inside, near = classify_points(self.mask(task_id), np.array([[x, y]]), self._study.settings.click_radius)
        return ClickValidity(bool(inside[0]), bool(near[0]))

    def mask(self, task_id: str) -> Mask:
        """The region (H, W) bool of a click task, read-only."""
        task = self._study.by_id.get(task_id)
        if not isinstance(task, ClickTask):
            raise DataError("no click task with this id", file=self._study.path, unit=task_id)
        name, size = task.mask, (task.width, task.height)
        return self._masks.get_or_create(name, lambda: read_mask(self._study.file(name), size))
