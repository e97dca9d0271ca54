"""Where a mask errs: what it misses of the target and what it has too much, and which error is clicked next.

The larger error is the one with the larger inscribed circle, measured to the pixels outside it and to the frame's
edge; pixels clicked before do not count, though the error keeps its shape. A tie goes to the surplus. All of it in
whole numbers, so that no tie is left to rounding.

>>> target, mask = np.zeros((2, 8, 9), bool)
>>> target[1:5, 1:5], mask[1:5, 3:7] = True, True
>>> errors = compare_masks(GroundTruth.of(target, np.zeros_like(target)), mask)
>>> errors.intersection, errors.union, errors.missing.box, errors.surplus.box
(8, 24, Box(top=0, left=0, bottom=6, right=4), Box(top=0, left=4, bottom=6, right=8))
>>> choice = choose_error(errors, np.empty((0, 2), int))
>>> choice.positive, choice.row, choice.column
(False, 1, 5)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hardlook.metrics.regions import Box, find_bounding_box, find_innermost_pixel
from hardlook.models.roles import Mask


@dataclass(frozen=True)
class Region:
    """A part of the frame: `mask` (h, w) bool in `box`, which has one pixel of margin where the frame has one."""

    box: Box
    mask: Mask = field(repr=False)


@dataclass(frozen=True)
class GroundTruth:
    """The target of an instance, worked out once for all courses.

    `target` (H, W) bool without ignored pixels; `covered` (H, W) bool, where a mask may be set without harm: target
    and ignored pixels; `area` of the target in pixels; `region` is the target's.
    """

    target: Mask = field(repr=False)
    covered: Mask = field(repr=False)
    area: int
    region: Region

    @classmethod
    def of(cls, target: Mask, ignore: Mask) -> GroundTruth:
        """The truth of `target` (H, W) bool, of which at least one pixel lies outside `ignore` (H, W) bool."""
        counted = target & ~ignore
        region = _region(counted, Box(0, 0, *counted.shape))
        if region is None:
            raise ValueError("target: expected at least one pixel outside ignore, got none")
        return cls(counted, target | ignore, int(np.count_nonzero(counted)), region)


@dataclass(frozen=True)
class MaskComparison:
    """A mask against the truth, ignored pixels out: counts in pixels, and the two error regions that there are."""

    intersection: int
    union: int
    missing: Region | None
    surplus: Region | None


def compare_masks(truth: GroundTruth, mask: Mask) -> MaskComparison:
    """What `mask` (H, W) bool gets right and where it errs; only the two boxes are compared."""
    tight = find_bounding_box(mask)
    if tight is None:
        return MaskComparison(0, truth.area, truth.region, None)
    inside, around = truth.region.box, tight.grown(1, mask.shape)
    # Of two truth values the first is greater where it holds and the second does not.
    missing = truth.target[inside.slices] > mask[inside.slices]
    surplus = mask[around.slices] > truth.covered[around.slices]
    missed, extra = int(np.count_nonzero(missing)), int(np.count_nonzero(surplus))
    return MaskComparison(
        truth.area - missed,
        truth.area + extra,
        _region(missing, inside) if missed else None,
        _region(surplus, around) if extra else None,
    )


def _region(mask: Mask, box: Box) -> Region | None:
    """The region of a mask cut out by `box`, which has a margin itself where the frame has one."""
    tight = find_bounding_box(mask)
    if tight is None:
        return None
    own = tight.grown(1, mask.shape)
    placed = Box(box.top + own.top, box.left + own.left, box.top + own.bottom, box.left + own.right)
    return Region(placed, np.ascontiguousarray(mask[own.slices]))


Pixels = NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """The error to correct: its region, whether that takes a positive click, and its innermost free pixel."""

    region: Region
    positive: bool
    row: int
    column: int


def choose_error(errors: MaskComparison, clicked: Pixels) -> Choice | None:
    """The error to correct next; None where nothing is left to click.

    `clicked` (k, 2) holds the rows and columns of all clicks so far. The chosen region is all of the missing or all of
    the surplus pixels, clicked ones included.
    """
    missing, surplus = _centre(errors.missing, clicked), _centre(errors.surplus, clicked)
    if errors.missing is not None and missing is not None and (surplus is None or missing[2] > surplus[2]):
        return Choice(errors.missing, True, *missing[:2])
    if errors.surplus is not None and surplus is not None:
        return Choice(errors.surplus, False, *surplus[:2])
    return None


def _centre(region: Region | None, clicked: Pixels) -> tuple[int, int, int] | None:
    """Row and column in the frame, and squared distance."""
    if region is None:
        return None
    centre = find_innermost_pixel(region.mask, clicked - (region.box.top, region.box.left))
    return None if centre is None else (centre[0] + region.box.top, centre[1] + region.box.left, centre[2])
