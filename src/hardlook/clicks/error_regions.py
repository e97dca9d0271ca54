"""Where a mask errs: what it misses of the target and what it has too much, each in its own box.

>>> target, mask = np.zeros((2, 8, 9), bool)
>>> target[1:5, 1:5], mask[1:5, 3:7] = True, True
>>> found = compare(Truth.of(target, np.zeros_like(target)), mask)
>>> found.intersection, found.union, found.missing.box, found.surplus.box
(8, 24, Box(top=0, left=0, bottom=6, right=4), Box(top=0, left=4, bottom=6, right=8))
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hardlook.models.roles import Mask
from hardlook.regions.boxes import Box, box_of


@dataclass(frozen=True)
class Region:
    """A part of the frame: `mask` (h, w) bool in `box`, which has one pixel of margin where the frame has one."""

    box: Box
    mask: Mask = field(repr=False)


@dataclass(frozen=True)
class Truth:
    """What is known of a target once and for all courses.

    `target` (H, W) bool without ignored pixels; `covered` (H, W) bool, where a mask may be set without harm: target
    and ignored pixels; `area` of the target in pixels; `region` is the target's.
    """

    target: Mask = field(repr=False)
    covered: Mask = field(repr=False)
    area: int
    region: Region

    @classmethod
    def of(cls, target: Mask, ignore: Mask) -> Truth:
        """The truth of `target` (H, W) bool, of which at least one pixel lies outside `ignore` (H, W) bool."""
        counted = target & ~ignore
        region = _region(counted, Box(0, 0, *counted.shape))
        if region is None:
            raise ValueError("target: expected at least one pixel outside ignore, got none")
        return cls(counted, target | ignore, int(np.count_nonzero(counted)), region)


@dataclass(frozen=True)
class Comparison:
    """A mask against the truth, ignored pixels out: counts in pixels, and the two error regions that there are."""

    intersection: int
    union: int
    missing: Region | None
    surplus: Region | None


def compare(truth: Truth, mask: Mask) -> Comparison:
    """What `mask` (H, W) bool gets right and where it errs; only the boxes of the target and the mask are visited."""
    tight = box_of(mask)
    if tight is None:
        return Comparison(0, truth.area, truth.region, None)
    inside, around = truth.region.box, tight.grown(1, mask.shape)
    # Of two truth values the first is greater where it holds and the second does not.
    missing = truth.target[inside.slices] > mask[inside.slices]
    surplus = mask[around.slices] > truth.covered[around.slices]
    missed, extra = int(np.count_nonzero(missing)), int(np.count_nonzero(surplus))
    return Comparison(
        truth.area - missed,
        truth.area + extra,
        _region(missing, inside) if missed else None,
        _region(surplus, around) if extra else None,
    )


def _region(mask: Mask, box: Box) -> Region | None:
    """The region of a mask cut out by `box`, which has a margin itself where the frame has one."""
    tight = box_of(mask)
    if tight is None:
        return None
    own = tight.grown(1, mask.shape)
    placed = Box(box.top + own.top, box.left + own.left, box.top + own.bottom, box.left + own.right)
    return Region(placed, np.ascontiguousarray(mask[own.slices]))
