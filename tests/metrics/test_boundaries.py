"""Boundary IoU and boundary F against their published definitions, pixel by pixel and by other libraries."""

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage
from skimage.morphology import disk

from hardlook.metrics.boundaries import BoundaryCounts, BoundaryTruth, boundary_width, find_contour, make_band

MASKS = st.tuples(st.integers(1, 14), st.integers(1, 14)).flatmap(
    lambda shape: st.tuples(arrays(bool, shape), arrays(bool, shape), arrays(bool, shape))
)


def band_by_distance(mask, width):
    """Pixels of the mask that have one outside of it or of the frame within `width` rows and columns."""
    height, across = mask.shape
    band = np.zeros_like(mask)
    for row, column in zip(*np.nonzero(mask), strict=True):
        for y in range(row - width, row + width + 1):
            for x in range(column - width, column + width + 1):
                inside = 0 <= y < height and 0 <= x < across
                band[row, column] |= not inside or not mask[y, x]
    return band


def band_by_erosions(mask, width):
    """The steps of the published definition: pad by a pixel, erode by 3x3 `width` times, subtract."""
    padded = cv2.copyMakeBorder(mask.astype(np.uint8), 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=0)
    eroded = cv2.erode(padded, np.ones((3, 3), np.uint8), iterations=width)
    return mask & (eroded[1:-1, 1:-1] == 0)


@settings(max_examples=40, deadline=None)
@given(MASKS, st.integers(1, 4))
def test_bands_are_those_of_the_definition(masks, width):
    mask = masks[0]
    assert np.array_equal(make_band(mask, width), band_by_distance(mask, width))
    assert np.array_equal(make_band(mask, width), band_by_erosions(mask, width))


@settings(max_examples=60, deadline=None)
@given(MASKS)
def test_counts_are_those_of_the_two_definitions(masks):
    target, mask, ignore = masks
    counts = BoundaryTruth.of(target, ignore).count(mask)
    one, other = target & ~ignore, mask & ~ignore
    diagonal = math.hypot(*target.shape)
    width = max(1, round(0.02 * diagonal))
    bands = band_by_erosions(one, width), band_by_erosions(other, width)
    assert (counts.intersection, counts.union) == ((bands[0] & bands[1]).sum(), (bands[0] | bands[1]).sum())
    contours = find_contour(one), find_contour(other)
    near = [ndimage.binary_dilation(contour, disk(math.ceil(0.008 * diagonal))) for contour in contours]
    assert (counts.target_contour, counts.mask_contour) == (contours[0].sum(), contours[1].sum())
    assert counts.mask_matched == (contours[1] & near[0]).sum()
    assert counts.target_matched == (contours[0] & near[1]).sum()
    assert 0 <= counts.iou <= 1 and 0 <= counts.f_measure <= 1
    same = BoundaryTruth.of(target).count(target)
    assert same.iou == same.f_measure == 1


def test_a_contour_lies_where_a_pixel_differs_from_its_right_lower_or_diagonal_neighbour():
    mask = np.zeros((4, 5), bool)
    mask[1:3, 1:4] = True
    assert find_contour(mask).astype(int).tolist() == [
        [1, 1, 1, 1, 0],
        [1, 0, 0, 1, 0],
        [1, 1, 1, 1, 0],
        [0, 0, 0, 0, 0],
    ]


def test_ignored_pixels_do_not_move_the_boundary():
    target, ignore = np.zeros((2, 100, 100), bool)
    target[30:60, 30:60] = True
    ignore[25:65, 25:65] = ~target[25:65, 25:65]
    larger = target | ignore
    assert BoundaryTruth.of(target, ignore).count(larger).iou == 1
    assert BoundaryTruth.of(target).count(larger).iou < 0.5


@pytest.mark.parametrize(("shape", "width"), [((480, 640), 16), ((1, 1), 1), ((1365, 2048), 49)])
def test_widths(shape, width):
    assert boundary_width(shape) == width


def test_an_empty_mask_scores_nothing():
    counts = BoundaryCounts(0, 9, 0, 0, 12, 0)
    assert (counts.iou, counts.f_measure) == (0, 0)
