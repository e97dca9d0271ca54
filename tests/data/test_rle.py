from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pycocotools import mask as oracle

from hardlook.data import rle
from hardlook.errors import DataError

corners = st.lists(st.integers(0, 39), min_size=6, max_size=20).filter(lambda p: len(p) % 2 == 0)

masks = arrays(bool, st.tuples(st.integers(1, 30), st.integers(1, 30)))

several = st.integers(1, 4).flatmap(
    lambda n: arrays(bool, st.tuples(st.just(2 * n), st.integers(1, 15), st.integers(1, 15)))
)


def _theirs(mask: np.ndarray) -> dict[str, object]:
    return oracle.encode(np.asfortranarray(mask.astype(np.uint8)))


@settings(max_examples=100, deadline=None)
@given(mask=masks)
def test_encode_decode_area_and_box_equal_pycocotools(mask: np.ndarray) -> None:
    ours, theirs = rle.encode(mask), _theirs(mask)
    assert ours["counts"].encode() == theirs["counts"]
    assert np.array_equal(rle.decode(ours), mask)
    assert rle.area(ours) == oracle.area(theirs) == mask.sum()
    assert rle.to_box(ours) == tuple(oracle.toBbox(theirs))


@settings(max_examples=60, deadline=None)
@given(stack=several, data=st.data())
def test_iou_equals_pycocotools(stack: np.ndarray, data: st.DataObject) -> None:
    half = len(stack) // 2
    crowd = data.draw(st.lists(st.booleans(), min_size=half, max_size=half))
    ours, theirs = [rle.encode(m) for m in stack], [_theirs(m) for m in stack]
    expected = oracle.iou(theirs[:half], theirs[half:], [int(c) for c in crowd])
    np.testing.assert_array_equal(rle.iou(ours[:half], ours[half:], crowd), expected)


@settings(max_examples=60, deadline=None)
@given(polygons=st.lists(corners, min_size=1, max_size=3))
def test_unions_of_polygons_equal_pycocotools(polygons: list[list[int]]) -> None:
    theirs = oracle.merge(oracle.frPyObjects([[float(v) for v in polygon] for polygon in polygons], 40, 40))
    assert rle.from_segmentation(polygons, 40, 40)["counts"].encode() == theirs["counts"]


def test_every_form_of_coco_segmentation() -> None:
    mask = np.zeros((4, 5), bool)
    mask[1:3, 1:4] = True
    encoded = rle.encode(mask)
    assert rle.from_segmentation(encoded, 4, 5) == encoded
    assert rle.from_segmentation({**encoded, "counts": encoded["counts"].encode()}, 4, 5) == encoded
    assert rle.from_segmentation({"size": [4, 5], "counts": [5, 2, 2, 2, 2, 2, 5]}, 4, 5) == encoded
    assert rle.area(rle.from_segmentation([], 4, 5)) == 0
    assert rle.area(rle.from_segmentation([[1, 1, 2, 2]], 4, 5)) == 0


def test_empty_lists_and_empty_masks() -> None:
    empty = rle.encode(np.zeros((3, 4), bool))
    assert rle.iou([], [empty]).shape == (0, 1)
    assert rle.iou([empty], []).shape == (1, 0)
    assert rle.to_box(empty) == (0.0, 0.0, 0.0, 0.0)


@settings(max_examples=60, deadline=None)
@given(mask=masks)
def test_whole_masks_are_read_and_cut_ones_are_refused(mask: np.ndarray) -> None:
    encoded = rle.encode(mask)
    assert rle.from_segmentation(encoded, *mask.shape) == encoded
    for end in range(len(encoded["counts"])):
        with pytest.raises(DataError, match="not a COCO segmentation"):
            rle.from_segmentation({**encoded, "counts": encoded["counts"][:end]}, *mask.shape)


def test_a_list_of_runs_has_as_many_pixels_as_the_mask() -> None:
    for runs in ([10, 5], [10, 5, 6], [], [10, 5, 5, 1]):
        with pytest.raises(DataError, match=rf"the runs have {sum(runs)} pixels, the size 4 x 5 has 20"):
            rle.from_segmentation({"size": [4, 5], "counts": runs}, 4, 5)
    empty = rle.from_segmentation({"size": [0, 5], "counts": "0"}, 0, 5)
    assert rle.area(empty) == 0


def test_what_is_no_mask_is_refused() -> None:
    small, large = rle.encode(np.ones((2, 2), bool)), rle.encode(np.ones((3, 3), bool))
    with pytest.raises(DataError, match="different sizes"):
        rle.iou([small], [large])
    with pytest.raises(DataError, match="not a run-length"):
        rle.decode({"size": [2, 2], "counts": "!!"})
    with pytest.raises(DataError, match="not a COCO segmentation"):
        rle.from_segmentation({"size": [2, 2]}, 2, 2)


@pytest.mark.parametrize("last", [[float("nan"), 4], [float("inf"), 4], [4], [4, 4, 4]])
def test_a_polygon_is_pairs_of_finite_numbers(last):
    with pytest.raises(DataError, match="a polygon"):
        rle.from_segmentation([[0, 0, 4, 0, *last]] if len(last) == 2 else [[0, 0, 4, 0, 4, 4, *last]], 5, 6)
