import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.metrics.average_precision import build_match_table
from hardlook.metrics.detection import Detections, Objects, box_overlap
from hardlook.metrics.detection_batches import keep_image, match_at_once
from hardlook.metrics.detection_matching import match_image
from hardlook.metrics.kernels.matching import overlap_boxes
from hardlook.metrics.open_ap import OpenAP

CLASSES = 4


def draw_image(rng, *, ids=True):
    """Boxes on a coarse grid, so that overlaps and scores tie, with crowds, ignored objects and annotation id 0."""
    objects, found = rng.integers(0, 7, 2)
    boxes = rng.integers(0, 4, (objects, 4)) * [20.0, 20, 30, 30]
    near = boxes[rng.integers(0, objects, found)] if objects else np.zeros((found, 4))
    moved = near + rng.integers(-1, 2, (found, 4)) * [4, 4, 5, 5]
    moved[:, 2:] = np.maximum(moved[:, 2:], 0)
    truth = Objects(
        rng.integers(0, CLASSES, objects), boxes=boxes, crowd=rng.random(objects) < 0.15,
        ignore=rng.random(objects) < 0.1, ids=rng.permutation(objects) if ids else None,
        area=rng.choice([10.0, 2000, 20_000], objects) if rng.random() < 0.5 else None,
    )  # fmt: skip
    return truth, Detections(rng.integers(0, CLASSES, found), rng.choice([0.1, 0.5, 0.9], found), boxes=moved)


def assert_same_tables(one, other):
    for field in dataclasses.fields(one):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        assert np.array_equal(mine, theirs), field.name
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype, field.name


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from([1, 2, 100]), st.booleans(),
    st.sampled_from([0, 2, None]), st.booleans(),
)  # fmt: skip
def test_all_images_at_once_match_as_each_does_alone(seed, count, limit, released, zero, overlaps_given):
    rng = np.random.default_rng(seed)
    images = [draw_image(rng, ids=bool(rng.random() < 0.7)) for _ in range(count)]
    options = {"max_detections": limit, "released": released, "category_zero": zero}
    alone = [match_image(*image, iou_type="bbox", **options) for image in images]
    kept = [
        keep_image(*image, "bbox", box_overlap(image[1].boxes, image[0].boxes, image[0].crowd) if shared else None)
        for image, shared in zip(images, rng.random(count) < 0.5 * overlaps_given, strict=True)
    ]
    assert_same_tables(match_at_once(kept, CLASSES, **options), build_match_table(alone, CLASSES))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_compiled_overlaps_equal_those_of_numpy_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    found, truth = rng.uniform(0, 50, (6, 4)), rng.uniform(0, 50, (5, 4))
    found[0, 2:] = truth[0, 2:] = 0
    crowd = rng.random(5) < 0.3
    overlap = np.empty((6, 5))
    overlap_boxes(found, truth, crowd, overlap)
    assert (overlap == box_overlap(found, truth, crowd)).all()


def test_arrays_may_be_used_again_after_an_update():
    boxes, scores = np.array([[0.0, 0, 9, 9]]), np.array([0.9])
    metric = OpenAP(["a"], [[1]], iou_type="bbox")
    metric.update(Objects([0], boxes=boxes), Detections([0], scores, boxes=boxes))
    boxes[:], scores[:] = 0, 0.1
    assert metric.compute().vanilla.per_class() == pytest.approx([1])


def test_masks_are_compared_when_they_are_added():
    mask = np.zeros((1, 4, 4), bool)
    mask[0, 1:3, 1:3] = True
    kept = keep_image(Objects([0], masks=mask), Detections([0], [0.5], masks=mask), "segm")
    assert kept.compute_overlap().tolist() == [[1.0]]
    assert (kept.truth.masks, kept.area.tolist()) == (None, [4.0])


@pytest.mark.parametrize(
    ("truth", "found", "overlap", "words"),
    [
        (Objects([0], area=[1]), Detections([0], [0.5], boxes=[[0, 0, 1, 1]]), None, "expected boxes of objects"),
        (Objects([0], area=[1]), Detections([0], [0.5], area=[1]), [[0.5, 0.5]], r"overlap: expected shape \(1, 1\)"),
        (Objects([0], area=[1]), Detections([0], [0.5], area=[1]), [[-1.0]], "overlap: expected numbers"),
        (Objects([0], area=[1]), Detections([0], [0.5]), [[1.0]], "expected area or boxes"),
        (Objects([3], area=[1]), Detections([], []), None, r"objects of image 0: expected classes 0\.\.0, got 3 to 3"),
        (Objects([], area=[]), Detections([-1], [0.5], area=[1]), None, "got -1 to -1"),
    ],
)
def test_what_is_wrong_is_named_when_the_image_is_added(truth, found, overlap, words):
    metric = OpenAP(["a"], [[1]], iou_type="bbox")
    with pytest.raises(ValueError, match=words):
        metric.update(truth, found, overlap=overlap)
    assert len(metric.table().image) == 0
