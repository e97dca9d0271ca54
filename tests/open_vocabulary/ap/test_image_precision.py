"""Single images scored: scikit-learn's average precision, COCO's matching, and a literal sum as oracles."""

import numpy as np
import pytest
from detection_scenes import image_arrays, scene
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score
from two_vocabularies import spoken_records

from hardlook.harness.registry import find_benchmark
from hardlook.metrics.detection import IGNORED, UNMATCHED, box_overlap
from hardlook.metrics.detection_matching import match_image
from hardlook.open_vocabulary.ap.image_precision import FlatImages, compute_image_precision, match_objects
from hardlook.open_vocabulary.ap.scores import compute_run_similarity

BENCHMARK = find_benchmark("open-ap")

OPTIONS = BENCHMARK.options(resamples=0, compare=())


@pytest.fixture(scope="module")
def records():
    return spoken_records("open-ap", 12)


def make_record(objects, found):
    overlap = box_overlap(found.boxes, objects.boxes, objects.crowd) if len(found.classes) else np.zeros((0, 0))
    pairs = np.flatnonzero(overlap >= 0.5)
    return {"object_labels": objects.classes.tolist(), "object_crowd": objects.crowd.astype(int).tolist(),
            "labels": found.classes.tolist(), "scores": found.scores.tolist(), "pairs": pairs.tolist(),
            "overlaps": overlap.ravel()[pairs].tolist()}, overlap  # fmt: skip


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_objects_are_found_as_coco_finds_them_where_no_detection_overlaps_two(seed):
    truth, results = scene(seed, images=3, ties=False)
    arrays = [image_arrays(truth, results, image) for image in (1, 2, 3)]
    made = [make_record(*one) for one in arrays]
    found = match_objects(FlatImages.from_records([record for record, _ in made]))
    starts = np.cumsum([0, *(len(objects.classes) for objects, _ in arrays)])
    place = 0
    for (objects, detections), (_, overlap), start in zip(arrays, made, starts[:-1], strict=True):
        ours = found[place : place + len(detections.classes)]
        place += len(ours)
        if (np.sum(overlap >= 0.5, axis=1) > 1).any():
            continue
        theirs = match_image(objects, detections, iou_type="bbox").pooled[0, 0]
        assert [one if one in (UNMATCHED, IGNORED) else one - start for one in ours.tolist()] == theirs.tolist()


def test_right_labels_give_scikit_learns_average_precision(records):
    judged = BENCHMARK.qualities(records, OPTIONS)
    assert judged.columns == ["unit", *(quality.name for quality in BENCHMARK.card.qualities)]
    different = 0
    for row, value in zip(records.iter_rows(named=True), judged["image-ap50"].to_list(), strict=True):
        flat = FlatImages.from_records([row])
        found = match_objects(flat)
        right = (found >= 0) & (flat.object_labels[found] == flat.labels)
        share = right.sum() / len(flat.object_labels)
        expected = share * average_precision_score(right, flat.scores) if right.any() else 0.0
        assert value == pytest.approx(expected)
        different += 0 < value < 1
    assert different > 3


def test_similar_labels_count_by_a_literal_sum(records):
    matrix = compute_run_similarity(records, OPTIONS)
    judged = BENCHMARK.qualities(records, OPTIONS)
    for row, value in zip(records.iter_rows(named=True), judged["image-open-ap50"].to_list(), strict=True):
        flat = FlatImages.from_records([row])
        found = match_objects(flat)
        gained = summed = 0.0
        for rank, one in enumerate(np.argsort(-flat.scores, kind="stable").tolist(), 1):
            credit = matrix[flat.object_labels[found[one]], flat.labels[one]] if found[one] >= 0 else 0.0
            summed += credit
            gained += credit * summed / rank
        assert value == pytest.approx(gained / len(flat.object_labels))
    assert (judged["image-open-ap50"] >= judged["image-ap50"]).all()


def test_no_image_depends_on_the_others(records):
    judged = BENCHMARK.qualities(records, OPTIONS)
    assert BENCHMARK.qualities(records[5:7], OPTIONS).equals(judged[5:7])


def test_only_the_best_detections_count_and_an_empty_image_is_not_judged():
    record = {"object_labels": [0, 0], "object_crowd": [0, 0], "labels": [0, 0], "scores": [0.9, 0.8], "pairs": [0, 3],
              "overlaps": [1.0, 1.0]}  # fmt: skip
    empty = {"object_labels": [0], "object_crowd": [1], "labels": [0], "scores": [0.5], "pairs": [0], "overlaps": [1.0]}
    nothing = {name: [] for name in record}
    images = FlatImages.from_records([record, empty, nothing])
    assert compute_image_precision(images, np.eye(1), 100)[0] == 1
    values = compute_image_precision(images, np.eye(1), 1)
    assert values[0] == 0.5
    assert np.isnan(values[1:]).all()
