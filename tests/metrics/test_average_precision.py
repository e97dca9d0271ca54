import os

import numpy as np
import pytest
from detection_scenes import accumulated, pycocotools_evaluation, scene, similarity
from hypothesis import given, settings
from hypothesis import strategies as st
from lvis_scenes import FIGURES, GROUPS, evaluate_with_hotcoco, evaluate_with_lvis, lvis_scene

from hardlook.metrics.average_precision import _sort_by, build_match_table, soft_precision, vanilla_precision
from hardlook.metrics.detection import Detections, Objects
from hardlook.metrics.detection_matching import ImageMatches, match_image
from hardlook.metrics.open_ap import WeightedPrecision, open_average_precision

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


def summarise_as_lvis(truth, results, iou_type, limit=300, matrix=None):
    """FIGURES of each kind, and the result."""
    classes = len(truth["categories"])
    matrix = np.eye(classes) if matrix is None else matrix
    result = accumulated(truth, results, matrix, iou_type, max_detections=limit).compute()
    figures = result.summary()
    for group in GROUPS:
        members = [k for k, category in enumerate(truth["categories"]) if category["frequency"] == group]
        for kind, summary in result.summary(members).items():
            figures[kind][f"AP{group}"] = summary["AP"]
    return {kind: {name: figures[kind][name] for name in FIGURES} for kind in figures}, result


def assert_equals_lvis(truth, results, iou_type, limit=300):
    ours, result = summarise_as_lvis(truth, results, iou_type, limit)
    with pytest.MonkeyPatch.context() as monkeypatch:
        theirs, evaluation = evaluate_with_lvis(truth, results, iou_type, monkeypatch, limit)
    for figures in (theirs, evaluate_with_hotcoco(truth, results, iou_type, limit)):
        assert ours["vanilla"] == pytest.approx(figures, abs=1e-9, rel=0, nan_ok=True)
    # theirs: thresholds, recall levels, classes, areas.
    precision = undefined_as_nan(evaluation.eval["precision"].mean(1)).transpose(2, 0, 1)
    recall = undefined_as_nan(evaluation.eval["recall"]).transpose(2, 0, 1)
    np.testing.assert_allclose(result.vanilla.precision, precision, atol=1e-9, rtol=0)
    np.testing.assert_allclose(result.vanilla.recall, recall, atol=1e-9, rtol=0)


@settings(max_examples=int(os.environ.get("HARDLOOK_LVIS_FILES", 30)), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6), st.booleans(), st.sampled_from([3, 8, 300]))
def test_vanilla_equals_lvis_and_hotcoco_on_boxes(seed, images, classes, ties, limit):
    truth, results = lvis_scene(seed, images=images, classes=classes, ties=ties, most=9)
    if results:  # the lvis package cannot read an empty list
        assert_equals_lvis(truth, results, "bbox", limit)


@settings(max_examples=int(os.environ.get("HARDLOOK_LVIS_FILES", 10)), deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 5))
def test_vanilla_equals_lvis_and_hotcoco_on_masks(seed, images, classes):
    truth, results = lvis_scene(seed, images=images, classes=classes, masks=True)
    if results:
        assert_equals_lvis(truth, results, "segm")


def test_more_detections_than_lvis_counts_equal_the_lvis_package():
    truth, results = lvis_scene(3, images=2, classes=3, most=240)
    assert max(sum(row["image_id"] == image for row in results) for image in (1, 2)) > 300
    assert_equals_lvis(truth, results, "bbox")


def test_recall_of_few_detections_is_lvis_with_that_limit():
    truth, results = lvis_scene(8, images=6, classes=4, most=12)
    recall_at = summarise_as_lvis(truth, results, "bbox")[1].vanilla.recall_at
    for limit, values in recall_at.items():
        fewer = summarise_as_lvis(truth, results, "bbox", limit)[1].vanilla.recall[0]
        np.testing.assert_allclose(values, fewer, atol=1e-12, rtol=0)
    with pytest.MonkeyPatch.context() as monkeypatch:
        one, _ = evaluate_with_lvis(truth, results, "bbox", monkeypatch, 1)
    assert np.nanmean(recall_at[1]) == pytest.approx(one["AR"], abs=1e-9)


@pytest.mark.parametrize("federated", [False, True])
def test_recall_of_few_detections_is_the_recall_of_a_metric_that_sees_no_others(federated):
    make = lvis_scene if federated else scene
    truth, results = make(11, images=6, classes=4, most=9)
    alike = similarity(11, 4)
    metric = accumulated(truth, results, alike, "bbox").compute()
    for limit in (1, 10):
        fewer = accumulated(truth, results, alike, "bbox", max_detections=limit).compute()
        for kind in ("vanilla", "dagger", "open"):
            ours, theirs = getattr(metric, kind).recall_at[limit], getattr(fewer, kind).recall[0]
            np.testing.assert_allclose(ours, theirs, atol=1e-12, rtol=0)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_weights_give_the_scores_of_the_weighted_table_to_the_last_bit(seed, federated):
    truth, results = (lvis_scene if federated else scene)(seed, images=5, classes=4)
    metric = accumulated(truth, results, similarity(seed, 4), "bbox")
    weights = np.random.default_rng(seed).integers(0, 3, 5)
    ours = WeightedPrecision(metric.table(), metric.similarity).result(weights)
    theirs = open_average_precision(metric.table().weighted(weights), metric.similarity)
    for kind in ("vanilla", "dagger", "open"):
        one, other = getattr(ours, kind), getattr(theirs, kind)
        np.testing.assert_array_equal(one.precision, other.precision)
        np.testing.assert_array_equal(one.recall, other.recall)
        for limit in (1, 10):
            np.testing.assert_array_equal(one.recall_at[limit], other.recall_at[limit])


def score_federated(negative, not_exhaustive, found, alike=0.5):
    """Results by kind of one image with objects of classes 0 and 1; detections are (class, score, object or None)."""
    overlap = np.zeros((len(found), 2))
    for row, (_, _, on) in enumerate(found):
        if on is not None:
            overlap[row, on] = 1
    truth = Objects([0, 1], area=[99, 99], negative=negative, not_exhaustive=not_exhaustive)
    detections = Detections([one[0] for one in found], [one[1] for one in found], area=[99] * len(found))
    image = match_image(truth, detections, overlap=overlap)
    matrix = np.eye(4)
    matrix[0, 1] = matrix[1, 0] = matrix[0, 2] = matrix[2, 0] = alike
    return open_average_precision(build_match_table([image], 4), matrix)


FOUND = [(0, 0.9, 0), (1, 0.8, 1)]


def test_a_detection_of_a_class_whose_absence_is_not_known_neither_counts_nor_takes_an_object():
    # Class 2 would take the object of class 0, and class 1 a false positive.
    stranger = [(2, 0.95, 0), *FOUND]
    unknown, absent = score_federated([], [], stranger), score_federated([2], [], stranger)
    for kind in ("vanilla", "dagger", "open"):
        np.testing.assert_allclose(getattr(unknown, kind).per_class()[:2], 1)
    np.testing.assert_allclose(absent.vanilla.per_class()[:2], 1)
    assert absent.dagger.per_class()[0] == 0
    # Class 0 is found as class 2, half alike: half its recall, all of its precision.
    assert absent.open.per_class()[0] == pytest.approx(51 / 101)


def test_false_positives_of_a_class_that_is_not_exhaustive_do_not_count():
    elsewhere = [(1, 0.95, None), *FOUND]
    for kind in ("vanilla", "dagger", "open"):
        assert getattr(score_federated([], [], elsewhere), kind).per_class()[1] == pytest.approx(0.5)
        assert getattr(score_federated([], [1], elsewhere), kind).per_class()[1] == pytest.approx(1)


def test_nor_do_they_where_classes_are_pooled_and_the_detection_lies_on_another_object():
    misnamed = [(1, 0.95, 0), (1, 0.8, 1)]
    full, partial = score_federated([], [], misnamed), score_federated([], [1], misnamed)
    # The object of class 0 is taken in both; class 1 had one false positive (half of one, by similarity) and one hit.
    assert (full.dagger.per_class()[0], partial.dagger.per_class()[0]) == (0, 0)
    assert (full.dagger.per_class()[1], partial.dagger.per_class()[1]) == pytest.approx((0.5, 1))
    assert (full.open.per_class()[1], partial.open.per_class()[1]) == pytest.approx((1 / 1.5, 1))
    assert full.open.per_class()[0] == partial.open.per_class()[0] == pytest.approx(51 / 101)


def test_figures_of_each_class_average_to_the_summary():
    truth, results = scene(21, images=8, classes=5, most=9)
    result = accumulated(truth, results, similarity(21, 5), "bbox").compute()
    for kind, summary in result.summary().items():
        for figure in ("AP", "AP50", "AR"):
            assert np.nanmean(getattr(result, kind).per_class(figure)) == pytest.approx(summary[figure], abs=1e-12)


def test_lvis_rules_hold_within_a_set_of_classes():
    truth, results = lvis_scene(13, images=8, classes=5, most=9)
    metric = accumulated(truth, results, np.eye(5), "bbox", max_detections=300, class_sets={"some": [0, 2, 4]})
    # Vanilla matches within classes, so that leaving others out changes nothing.
    alone, among_others = (metric.compute(name).vanilla.precision[..., [0, 2, 4]] for name in ("some", ""))
    np.testing.assert_array_equal(alone, among_others)
    for image in truth["images"]:
        del image["neg_category_ids"], image["not_exhaustive_category_ids"]
    coco = accumulated(truth, results, np.eye(5), "bbox").compute().vanilla.precision[..., [0, 2, 4]]
    assert not np.allclose(alone, coco, equal_nan=True)


@pytest.mark.parametrize("counts", [[1], [1, 1, 1], [[1, 1]], 1, [1, -1]])
def test_multiplicities_are_one_count_from_0_for_each_image(counts):
    table = accumulated(*scene(0, images=2, classes=2), np.eye(2), "bbox").table()
    with pytest.raises(ValueError, match=r"multiplicity: expected \(2,\) counts"):
        table.weighted(counts)
    assert table.weighted([0, 2]).multiplicity.tolist() == [0, 2]


def test_keys_that_do_not_fit_into_one_number_are_sorted_alike():
    rng = np.random.default_rng(0)
    keys = [rng.integers(0, 4, 50) for _ in range(3)]
    # The order is that of the keys, whatever their values: the same ranks, once as they are and once spread far apart.
    spread_out = [np.array([0, 2**20, 2**30, 2**40])[key] for key in keys]
    order = _sort_by(*keys)
    assert order.tolist() == sorted(range(50), key=lambda row: tuple(key[row] for key in keys))
    assert _sort_by(*spread_out).tolist() == order.tolist()
