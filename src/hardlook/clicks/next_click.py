"""Which error the next click corrects, and its centre.

The larger error is the one with the larger inscribed circle, measured to the pixels outside it and to the frame's
edge; pixels clicked before do not count, though the error keeps its shape. A tie goes to the surplus. All of it in
whole numbers, so that no tie is left to rounding.

>>> from hardlook.clicks.error_regions import Truth, compare
>>> target = np.zeros((7, 9), bool)
>>> target[1:6, 1:6] = True
>>> found = compare(Truth.of(target, np.zeros_like(target)), np.zeros_like(target))
>>> choice = choose_error(found, np.empty((0, 2), int))
>>> choice.positive, choice.row, choice.column
(True, 3, 3)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardlook.clicks.error_regions import Comparison, Region
from hardlook.regions.distances import innermost

Pixels = NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """The error to correct: its region, whether that takes a positive click, and its innermost free pixel."""

    region: Region
    positive: bool
    row: int
    column: int


def choose_error(found: Comparison, clicked: Pixels) -> Choice | None:
    """The error to correct next; None where nothing is left to click.

    `clicked` (k, 2) holds the rows and columns of all clicks so far. The chosen region is all of the missing or all of
    the surplus pixels, clicked ones included.
    """
    missing, surplus = _centre(found.missing, clicked), _centre(found.surplus, clicked)
    if found.missing is not None and missing is not None and (surplus is None or missing[2] > surplus[2]):
        return Choice(found.missing, True, *missing[:2])
    if found.surplus is not None and surplus is not None:
        return Choice(found.surplus, False, *surplus[:2])
    return None


def _centre(region: Region | None, clicked: Pixels) -> tuple[int, int, int] | None:
    """Row and column in the frame, and squared distance."""
    if region is None:
        return None
    centre = innermost(region.mask, clicked - (region.box.top, region.box.left))
    return None if centre is None else (centre[0] + region.box.top, centre[1] + region.box.left, centre[2])
