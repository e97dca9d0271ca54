"""Boundary IoU and the boundary F-measure of two masks, from counts of pixels.

Boundary IoU is the IoU of two bands: the pixels of each mask within `d` pixels of its contour, in the chessboard
distance; what lies outside of the frame is not the mask. `d` is 2 % of the frame's diagonal, rounded, at least 1. Cheng
et al., "Boundary IoU: improving object-centric image segmentation evaluation", CVPR 2021.

The F-measure is that of precision and recall of contour pixels, matched within .8 % of the diagonal, rounded up.
Perazzi et al., "A benchmark dataset and evaluation methodology for video object segmentation" (DAVIS), CVPR 2016.

>>> target = np.zeros((40, 60), bool)
>>> target[10:30, 10:40] = True
>>> moved = np.roll(target, 2, axis=1)
>>> truth = BoundaryTruth.of(target)
>>> truth.width, truth.count(target).iou, truth.count(target).f_measure
(1, 1.0, 1.0)
>>> round(truth.count(moved).iou, 3), round(truth.count(moved).f_measure, 3)
(0.412, 0.62)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

Mask = NDArray[np.bool_]

BAND_RATIO = 0.02
CONTOUR_RATIO = 0.008


@dataclass(frozen=True)
class BoundaryCounts:
    """Pixels of two bands (`intersection`, `union`), and contour pixels of mask and target, all and matched ones."""

    intersection: int
    union: int
    mask_contour: int
    mask_matched: int
    target_contour: int
    target_matched: int

    @property
    def iou(self) -> float:
        """Boundary IoU in [0, 1]; 1 where both masks are empty."""
        return self.intersection / self.union if self.union else 1.0

    @property
    def f_measure(self) -> float:
        """Boundary F in [0, 1]."""
        counts = (self.mask_contour, self.mask_matched, self.target_contour, self.target_matched)
        return float(f_measures(*([count] for count in counts))[0])


def f_measures(
    mask_contour: ArrayLike, mask_matched: ArrayLike, target_contour: ArrayLike, target_matched: ArrayLike
) -> NDArray[np.float64]:
    """F of precision (matched of the mask's contour) and recall (of the target's), of counts of any one shape.

    As in DAVIS: without a contour the precision (or recall) is 1, and 0 is the F of a mask that is empty where the
    target is not, and the other way round.

    >>> f_measures([4, 0, 0], [2, 0, 0], [4, 5, 0], [4, 0, 0]).round(3).tolist()
    [0.667, 0.0, 1.0]
    """
    whole, hits = np.asarray(mask_contour, np.float64), np.asarray(mask_matched, np.float64)
    true, found = np.asarray(target_contour, np.float64), np.asarray(target_matched, np.float64)
    precision = np.divide(hits, whole, out=np.ones_like(whole), where=whole > 0)
    recall = np.divide(found, true, out=np.ones_like(true), where=true > 0)
    total = precision + recall
    scores: NDArray[np.float64] = np.divide(2 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
    return scores


def boundary_width(shape: tuple[int, int], ratio: float = BAND_RATIO) -> int:
    """The width of the band in pixels in a frame (H, W).

    >>> boundary_width((480, 640)), boundary_width((20, 20))
    (16, 1)
    """
    return max(1, round(ratio * math.hypot(*shape)))


def make_band(mask: Mask, width: int) -> Mask:
    """The pixels of a mask (H, W) within `width` pixels of its contour."""
    import cv2

    # A square kernel is as many 3x3 erosions, and only its rows and columns are passed over.
    kernel = np.ones((2 * width + 1, 2 * width + 1), np.uint8)
    inner = cv2.erode(mask.astype(np.uint8), kernel, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return np.asarray(mask & (np.asarray(inner) == 0))


def find_contour(mask: Mask) -> Mask:
    """Pixels (H, W) whose right, lower or lower right neighbour has another value, as DAVIS draws contours."""
    contour = np.zeros(mask.shape, bool)
    contour[:, :-1] |= mask[:, :-1] ^ mask[:, 1:]
    contour[:-1] |= mask[:-1] ^ mask[1:]
    contour[:-1, :-1] |= mask[:-1, :-1] ^ mask[1:, 1:]
    return contour


@dataclass(frozen=True)
class BoundaryTruth:
    """A target's band and contour, worked out once for all masks that are compared with it.

    `ignore` pixels belong to neither mask, so that a mask whose edge lies among them loses nothing.
    """

    band: Mask = field(repr=False)
    contour: Mask = field(repr=False)
    near_contour: Mask = field(repr=False)
    ignore: Mask | None = field(repr=False)
    width: int
    reach: int

    @classmethod
    def of(cls, target: Mask, ignore: Mask | None = None) -> BoundaryTruth:
        """The truth of `target` (H, W) bool."""
        counted = target if ignore is None else target & ~ignore
        width, reach = boundary_width(target.shape), math.ceil(CONTOUR_RATIO * math.hypot(*target.shape))
        contour = find_contour(counted)
        return cls(make_band(counted, width), contour, _dilate(contour, reach), ignore, width, reach)

    def count(self, mask: Mask) -> BoundaryCounts:
        """The counts of a mask (H, W) bool."""
        counted = mask if self.ignore is None else mask & ~self.ignore
        band, contour = make_band(counted, self.width), find_contour(counted)
        intersection = int(np.count_nonzero(band & self.band))
        return BoundaryCounts(
            intersection=intersection,
            union=int(np.count_nonzero(band)) + int(np.count_nonzero(self.band)) - intersection,
            mask_contour=int(np.count_nonzero(contour)),
            mask_matched=int(np.count_nonzero(contour & self.near_contour)),
            target_contour=int(np.count_nonzero(self.contour)),
            target_matched=int(np.count_nonzero(self.contour & _dilate(contour, self.reach))),
        )


def _dilate(contour: Mask, reach: int) -> Mask:
    """Pixels within `reach` pixels of the contour, in the Euclidean distance."""
    import cv2

    offsets = np.arange(-reach, reach + 1)
    disk = (offsets[:, None] ** 2 + offsets**2 <= reach**2).astype(np.uint8)
    return np.asarray(cv2.dilate(contour.astype(np.uint8), disk, borderType=cv2.BORDER_CONSTANT, borderValue=0)) > 0
