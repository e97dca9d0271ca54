"""The box around a mask, so that work on a region need not touch the rest of the frame.

>>> mask = np.zeros((6, 9), bool)
>>> mask[2:4, 3:8] = True
>>> box = box_of(mask)
>>> box, box.height, box.width, bool(mask[box.slices].all())
(Box(top=2, left=3, bottom=4, right=8), 2, 5, True)
>>> box.grown(2, mask.shape)
Box(top=0, left=1, bottom=6, right=9)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Box:
    """Rows `top` to `bottom` and columns `left` to `right`, in pixels, the far edges exclusive."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def slices(self) -> tuple[slice, slice]:
        """What cuts the box out of an array (H, W, ...)."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    @property
    def height(self) -> int:
        """Rows in the box."""
        return self.bottom - self.top

    @property
    def width(self) -> int:
        """Columns in the box."""
        return self.right - self.left

    @property
    def diagonal(self) -> float:
        """The length of its diagonal in pixels, far edges exclusive.

        >>> Box(0, 0, 3, 4).diagonal
        5.0
        """
        return hypot(self.height, self.width)

    def grown(self, margin: int, shape: tuple[int, ...]) -> Box:
        """The box with `margin` pixels more on each side, as far as a frame of `shape` (H, W) has them."""
        return Box(
            max(self.top - margin, 0),
            max(self.left - margin, 0),
            min(self.bottom + margin, shape[0]),
            min(self.right + margin, shape[1]),
        )


def box_of(mask: NDArray[np.bool_]) -> Box | None:
    """The smallest box around the True pixels of a mask (H, W); None where there are none.

    >>> box_of(np.zeros((2, 2), bool)) is None
    True
    """
    rows = np.asarray(mask.any(axis=1))
    if not rows.any():
        return None
    top, bottom = _ends(rows)
    # Only the rows that have something are looked at for columns.
    left, right = _ends(np.asarray(mask[top:bottom].any(axis=0)))
    return Box(top, left, bottom, right)


def _ends(line: NDArray[np.bool_]) -> tuple[int, int]:
    return int(line.argmax()), len(line) - int(line[::-1].argmax())
