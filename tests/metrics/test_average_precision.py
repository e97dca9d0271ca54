import numpy as np
import pytest
from detection_scenes import accumulated, pycocotools_evaluation, scene
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.metrics.average_precision import build_match_table, soft_precision, vanilla_precision
from hardlook.metrics.detection_matching import ImageMatches

COCO_FIGURES = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR", "ARs", "ARm", "ARl")


def undefined_as_nan(values):
    """pycocotools writes -1 where a score is undefined."""
    return np.where(np.asarray(values) == -1, np.nan, values)


def assert_equals_pycocotools(truth, results, iou_type):
    table = accumulated(truth, results, np.eye(len(truth["categories"])), iou_type).table()
    ours = vanilla_precision(table)
    theirs = pycocotools_evaluation(truth, results, iou_type)
    summary = ours.summary()
    np.testing.assert_allclose(
        [summary[name] for name in COCO_FIGURES], undefined_as_nan(theirs.stats), atol=1e-9, rtol=0
    )
    # theirs: thresholds, recall levels, classes, areas, detections.
    precision = undefined_as_nan(theirs.eval["precision"].mean(1)[..., -1]).transpose(2, 0, 1)
    recall = undefined_as_nan(theirs.eval["recall"][..., -1]).transpose(2, 0, 1)
    np.testing.assert_allclose(ours.precision, precision, atol=1e-9, rtol=0)
    np.testing.assert_allclose(ours.recall, recall, atol=1e-9, rtol=0)
    for place, most in enumerate((1, 10)):
        few = undefined_as_nan(theirs.eval["recall"][..., 0, place])
        np.testing.assert_allclose(ours.recall_at[most], few, atol=1e-9, rtol=0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_vanilla_equals_pycocotools_on_boxes(seed, images, classes, ties):
    assert_equals_pycocotools(*scene(seed, images=images, classes=classes, ties=ties, most=9), "bbox")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4))
def test_vanilla_equals_pycocotools_on_masks(seed, images, classes):
    assert_equals_pycocotools(*scene(seed, images=images, classes=classes, masks=True), "segm")


def test_more_detections_than_count_equal_pycocotools():
    truth, results = scene(3, images=2, classes=2, ties=False, most=90)
    assert max(sum(r["image_id"] == i and r["category_id"] == c for r in results) for i in (1, 2) for c in (2, 5)) > 60
    results += [{**row, "score": row["score"] * 0.9} for row in results]
    assert_equals_pycocotools(truth, results, "bbox")


def test_no_detections_score_nothing():
    truth, _ = scene(1, images=3)
    metric = accumulated(truth, [], np.eye(4), "bbox")
    present = metric.compute().objects[0] > 0
    assert present.any()
    for kind in ("vanilla", "dagger", "open"):
        values = getattr(metric.compute(), kind).per_class()
        assert (values[present] == 0).all()
        assert np.isnan(values[~present]).all()


def test_no_images_and_no_objects_are_undefined_and_not_zero():
    assert np.isnan(vanilla_precision(build_match_table([], 3)).summary()["AP"])
    truth, results = scene(5)
    truth["annotations"] = []
    assert np.isnan(soft_precision(accumulated(truth, results, np.eye(4), "bbox").table()).summary()["AP"])


@pytest.mark.parametrize(("labels", "object_classes", "got"), [([0, 3], [1], 3), ([0], [2, 5], 5), ([-1], [0], -1)])
def test_a_class_outside_of_the_list_is_refused(labels, object_classes, got):
    found, true = len(labels), len(object_classes)
    matches = np.full((4, 10, found), -1, np.int16)
    image = ImageMatches(
        np.array(labels, np.int16), np.ones(found), matches, matches, np.array(object_classes, np.int16),
        np.ones((4, true), bool),
    )  # fmt: skip
    with pytest.raises(ValueError, match=rf"classes: expected 0\.\.2, got {got}$"):
        build_match_table([image], 3)
