"""Exact distance transforms in whole numbers, compiled; import it inside functions, numba is slow to load.

Meijster, Roerdink and Hesselink, "A general algorithm for computing distance transforms in linear time", 2000: first
the distance along each column, then the lower envelope of parabolas along each row. Only runs of True pixels are
visited in rows: what lies beyond the two False pixels that end a run is never nearer than they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.kernels.compiled import compiled

STRETCH = 32


@compiled
def column_distances(mask: NDArray[np.bool_], outside: int) -> NDArray[np.int32]:
    """(h, w) int32: how far each True pixel is from the next False one in its column; 0 at False pixels.

    `outside` is the distance that a False pixel just beyond the frame is given, 0 for background; a large number says
    that there is none.
    """
    height, width = mask.shape
    steps = np.empty((height, width), np.int32)
    for column in range(width):
        steps[0, column] = (outside + 1) * mask[0, column]
    for row in range(1, height):
        for column in range(width):
            steps[row, column] = (steps[row - 1, column] + 1) * mask[row, column]
    for column in range(width):
        steps[height - 1, column] = min(steps[height - 1, column], outside + 1)
    for row in range(height - 2, -1, -1):
        for column in range(width):
            steps[row, column] = min(steps[row, column], steps[row + 1, column] + 1)
    return steps


@compiled
def next_true(line: NDArray[np.bool_], start: int) -> int:
    """The first True place of a line (w,) from `start` on, its length where there is none."""
    place, width = start, len(line)
    # Most of a box is empty as a rule, so whole stretches are compared at once.
    while place + STRETCH <= width:
        found = False
        for ahead in range(STRETCH):
            found |= line[place + ahead]
        if found:
            break
        place += STRETCH
    while place < width and not line[place]:
        place += 1
    return place


@compiled
def squared(mask: NDArray[np.bool_], frame_is_background: bool) -> NDArray[np.int64]:
    """(h, w) int64 squared distances to the nearest False pixel, of which there is at least one (or the frame)."""
    height, width = mask.shape
    steps = column_distances(mask, 0 if frame_is_background else height + width)
    result = np.zeros((height, width), np.int64)
    site = np.empty(width + 2, np.int64)
    start = np.empty(width + 2, np.int64)
    rise = np.empty(width + 2, np.int64)
    for row in range(height):
        column = next_true(mask[row], 0)
        while column < width:
            first = column
            while column < width and mask[row, column]:
                column += 1
            low = first - 1 if first > 0 or frame_is_background else first
            high = column if column < width or frame_is_background else column - 1
            top = -1
            for here in range(low, high + 1):
                step = np.int64(steps[row, here]) if first <= here < column else np.int64(0)
                height_here = step * step
                begin = np.int64(low)
                while top >= 0:
                    # The first column where this parabola lies below the one before it.
                    gap = here * here - site[top] * site[top] + height_here - rise[top]
                    begin = gap // (2 * (here - site[top])) + 1
                    if begin > start[top]:
                        break
                    top -= 1
                    begin = np.int64(low)
                if top < 0 or begin <= high:
                    top += 1
                    site[top], start[top], rise[top] = here, begin, height_here
            for here in range(column - 1, first - 1, -1):
                while start[top] > here:
                    top -= 1
                result[row, here] = (here - site[top]) ** 2 + rise[top]
            column = next_true(mask[row], column)
    return result


@compiled
def deepest(mask: NDArray[np.bool_], taken: NDArray[np.int64]) -> tuple[int, int, int]:
    """Row, column and squared distance of the first pixel farthest from the background, frame included.

    `taken` (k, 2) rows and columns do not count, though they stay part of the mask. The distance is 0 where no pixel
    is left. A pixel is looked at only while its bounds by column and by run leave it a chance.
    """
    height, width = mask.shape
    steps = column_distances(mask, 0)
    best, best_row, best_column = np.int64(0), 0, 0
    for row in range(height):
        most = np.int32(0)
        for column in range(width):
            most = max(most, steps[row, column])
        end = 0 if np.int64(most) ** 2 > best else width
        while end < width:
            first = next_true(mask[row], end)
            end = first
            while end < width and mask[row, end]:
                end += 1
            if ((end - first + 1) // 2) ** 2 <= best:
                continue
            for here in range(first, end):
                reach = min(here - first, end - 1 - here) + 1
                value = min(np.int64(steps[row, here]), np.int64(reach)) ** 2
                away = 1
                while value > best and away * away < value:
                    # Inside the reach all neighbours belong to the run.
                    if away < reach:
                        left, right = np.int64(steps[row, here - away]), np.int64(steps[row, here + away])
                        value = min(value, away * away + min(left, right) ** 2)
                    away += 1
                if value > best:
                    free = True
                    for index in range(len(taken)):
                        if taken[index, 0] == row and taken[index, 1] == here:
                            free = False
                    if free:
                        best, best_row, best_column = value, row, here
    return best_row, best_column, int(best)
