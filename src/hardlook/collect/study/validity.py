"""Whether a click lies inside the region that it was meant for, or near it.

A click at (x, y), continuous from the image's upper left corner, falls on the pixel of column floor(x) and row
floor(y). It is inside where the mask has that pixel, and near where the centre of some pixel of the mask lies within
the radius of that pixel's centre. Clicks beyond the frame are inside nothing; near holds for them as well.

>>> mask = np.zeros((20, 20), bool)
>>> mask[10, 10] = True
>>> [judgement.tolist() for judgement in judge_points(mask, np.array([[10.9, 10.0], [13.5, 14.5], [14.0, 14.0]]), 5.0)]
[[True, False, False], [True, True, False]]
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from math import floor
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from hardlook.collect.study.folder import Study
from hardlook.collect.study.pictures import read_mask
from hardlook.collect.study.tasks import ClickTask
from hardlook.errors import DataError
from hardlook.models.roles import Mask

KEPT_BYTES = 128 * 2**20
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Verdict:
    """What is said of one click; whatever is inside is near."""

    inside: bool
    near: bool


def judge_points(mask: Mask, points: NDArray[np.float64], radius: float) -> tuple[Flags, Flags]:
    """`inside` and `near` (n,) bool of points (n, 2), each (x, y) in pixels, against a mask (H, W) bool.

    Distances are compared squared and whole, so that a click at exactly `radius` pixels is near on every machine.
    """
    found = np.asarray(points, np.float64)
    if mask.ndim != 2 or found.ndim != 2 or found.shape[1] != 2 or not np.isfinite(found).all():
        raise DataError(f"expected a mask (H, W) and finite points (n, 2), got {mask.shape} and {found.shape}")
    if not 0 <= radius < np.inf:
        raise DataError(f"a click radius of {radius}", remedy="give 0 or more pixels")
    columns, rows = np.floor(found.T).astype(np.int64)
    height, width = mask.shape
    framed = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
    inside = np.zeros(len(found), bool)
    inside[framed] = mask[rows[framed], columns[framed]]
    near = inside.copy()
    for i in np.flatnonzero(~inside):
        near[i] = _within(mask, int(rows[i]), int(columns[i]), radius)
    return inside, near


def _within(mask: Mask, row: int, column: int, radius: float) -> bool:
    """Whether some pixel of the mask is at most `radius` away; only the square around the click is looked at."""
    reach = floor(radius)
    top, left = max(row - reach, 0), max(column - reach, 0)
    square = mask[top : max(row + reach + 1, 0), left : max(column + reach + 1, 0)]
    rows, columns = np.nonzero(square)
    squared = (rows + (top - row)) ** 2 + (columns + (left - column)) ** 2
    return bool((squared <= radius * radius).any())


class Judge:
    """Judges clicks on the tasks of a study; masks are read when needed and the latest kept, for many threads.

    `kept_bytes` bounds the memory of kept masks; the latest is kept whatever its size.
    """

    def __init__(self, study: Study, kept_bytes: int = KEPT_BYTES) -> None:
        self._study, self._most = study, kept_bytes
        self._kept: OrderedDict[str, Mask] = OrderedDict()
        self._bytes, self._lock = 0, Lock()

    def click(self, task_id: str, x: float, y: float) -> Verdict:
        """The verdict on a click at (x, y) in pixels of the task's image."""
        inside, near = judge_points(self.mask(task_id), np.array([[x, y]]), self._study.settings.click_radius)
        return Verdict(bool(inside[0]), bool(near[0]))

    def mask(self, task_id: str) -> Mask:
        """The region (H, W) bool of a task of clicks; not to be written to."""
        task = self._study.by_id.get(task_id)
        if not isinstance(task, ClickTask):
            raise DataError("no task of clicks of this id", file=self._study.path, unit=task_id)
        with self._lock:
            if task.mask in self._kept:
                self._kept.move_to_end(task.mask)
                return self._kept[task.mask]
        # Read outside of the lock: a slow disk holds up nobody else, and at worst two threads read one mask.
        mask = read_mask(self._study.file(task.mask), (task.width, task.height))
        mask.flags.writeable = False
        with self._lock:
            if task.mask not in self._kept:
                self._kept[task.mask] = mask
                self._bytes += mask.nbytes
            while self._bytes > self._most and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return mask
