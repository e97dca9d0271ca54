import numpy as np
import pytest
from detection_scenes import image_arrays, pycocotools_evaluation, scene
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco_mask

from hardlook.metrics.detection import IGNORED, UNMATCHED, Detections, Objects, box_overlap, mask_overlap
from hardlook.metrics.detection_matching import AREA_RANGES, IOU_THRESHOLDS, match_image, select_classes


def pycocotools_matches(truth, results, image, iou_type, use_categories):
    """(areas, thresholds, detections) as ours, of one image: theirs come by class and in the order of scores."""
    evaluation = pycocotools_evaluation(truth, results, iou_type, use_categories=use_categories)
    places = {a["id"]: i for i, a in enumerate(a for a in truth["annotations"] if a["image_id"] == image)}
    # loadRes numbers the results from 1 in the order of the file.
    rows = {i + 1: n for n, i in enumerate(i for i, r in enumerate(results) if r["image_id"] == image)}
    matches = np.full((len(AREA_RANGES), len(IOU_THRESHOLDS), len(rows)), IGNORED)
    areas = {tuple(map(float, bounds)): i for i, bounds in enumerate(AREA_RANGES.values())}
    for part in evaluation.evalImgs:
        if part is None or part["image_id"] != image:
            continue
        for d, name in enumerate(part["dtIds"]):
            found = [places[int(i)] if i else UNMATCHED for i in part["dtMatches"][:, d]]
            values = np.where(part["dtIgnore"][:, d], IGNORED, found)
            matches[areas[tuple(map(float, part["aRng"]))], :, rows[name]] = values
    return matches


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.booleans())
def test_both_matchings_equal_pycocotools(seed, classes, ties):
    truth, results = scene(seed, images=1, classes=classes, ties=ties, most=12)
    matched = match_image(*image_arrays(truth, results, 1), iou_type="bbox")
    for ours, use_categories in ((matched.by_class, True), (matched.pooled, False)):
        assert np.array_equal(ours, pycocotools_matches(truth, results, 1, "bbox", use_categories))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_both_matchings_of_masks_equal_pycocotools(seed):
    truth, results = scene(seed, images=1, masks=True)
    matched = match_image(*image_arrays(truth, results, 1), iou_type="segm")
    for ours, use_categories in ((matched.by_class, True), (matched.pooled, False)):
        assert np.array_equal(ours, pycocotools_matches(truth, results, 1, "segm", use_categories))


def test_a_hundred_detections_of_an_image_count():
    truth, results = scene(8, images=1, ties=False, most=400)
    assert len(results) > 150
    matched = match_image(*image_arrays(truth, results, 1), iou_type="bbox")
    assert np.array_equal(matched.pooled, pycocotools_matches(truth, results, 1, "bbox", False))
    lowest = np.argsort([-row["score"] for row in results])[100:]
    assert (matched.pooled[:, :, lowest] == IGNORED).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 8))
def test_overlaps_equal_pycocotools(seed, detections, objects):
    rng = np.random.default_rng(seed)
    found, truth = (np.abs(rng.normal(5, 5, (n, 4))).round(rng.integers(0, 3)) for n in (detections, objects))
    crowd = rng.random(objects) < 0.3
    theirs = coco_mask.iou(found, truth, crowd.astype(np.uint8))
    # Their C code divides nothing by nothing for a detection without area; ours overlaps by nothing.
    assert np.array_equal(box_overlap(found, truth, crowd), np.nan_to_num(theirs))
    masks = [rng.random((n, 6, 7)) < 0.5 for n in (detections, objects)]
    encoded = [[coco_mask.encode(np.asfortranarray(m.astype(np.uint8))) for m in stack] for stack in masks]
    theirs = coco_mask.iou(*encoded, crowd.astype(np.uint8))
    assert np.array_equal(mask_overlap(*masks, crowd), theirs)


def matched(classes, found, scores, overlap, **options):
    truth, area = Objects(classes, area=[100] * len(classes), **options.pop("truth", {})), [100] * len(found)
    return match_image(truth, Detections(found, scores, area=area), overlap=overlap, **options)


def test_ties_go_to_the_later_object_and_the_lower_class_goes_first():
    assert matched([0, 0], [0], [0.9], [[0.8, 0.8]]).pooled[0, 0].tolist() == [1]
    # Later means by class first: object 0 is of class 1 and stands behind object 1 of class 0.
    assert matched([1, 0], [0], [0.9], [[0.8, 0.8]]).pooled[0, 0].tolist() == [0]
    assert matched([0], [1, 0], [0.9, 0.9], [[0.8], [0.8]]).pooled[0, 0].tolist() == [UNMATCHED, 0]
    assert matched([0], [0, 0], [0.9, 0.9], [[0.8], [0.8]]).pooled[0, 0].tolist() == [0, UNMATCHED]


def test_a_crowd_takes_many_and_ignored_objects_take_one():
    crowd = matched([0], [0, 1], [0.9, 0.8], [[1.0], [1.0]], truth={"crowd": [True]})
    assert crowd.pooled[0, 0].tolist() == [IGNORED, IGNORED]
    ignored = matched([0], [0, 1], [0.9, 0.8], [[1.0], [1.0]], truth={"ignore": [True]})
    assert ignored.pooled[0, 0].tolist() == [IGNORED, UNMATCHED]


def test_the_released_reading_takes_zero_for_nothing():
    two = {"ids": [0, 7]}
    overlap = [[0.9, 0.0], [0.0, 0.9]]
    ours = matched([1, 2], [1, 2], [0.9, 0.8], overlap, truth=two)
    assert ours.pooled[0, 0].tolist() == ours.by_class[0, 0].tolist() == [0, 1]
    # Annotation id 0 reads as unmatched in both matchings.
    theirs = matched([1, 2], [1, 2], [0.9, 0.8], overlap, truth=two, released=True)
    assert theirs.pooled[0, 0].tolist() == theirs.by_class[0, 0].tolist() == [UNMATCHED, 1]
    # Category id 0 reads as unmatched where classes are pooled, and the object stays taken.
    theirs = matched([0], [0, 1], [0.9, 0.8], [[0.9], [0.9]], truth={"ids": [3]}, released=True)
    assert theirs.by_class[0, 0].tolist() == [0, UNMATCHED]
    assert theirs.pooled[0, 0].tolist() == [UNMATCHED, UNMATCHED]
    theirs = matched([0], [0], [0.9], [[0.9]], truth={"ids": [3]}, released=True, category_zero=None)
    assert theirs.pooled[0, 0].tolist() == [0]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_released_reading_of_annotation_zero_is_that_of_pycocotools(seed):
    truth, results = scene(seed, images=1, classes=2)
    for annotation in truth["annotations"]:
        annotation["id"] -= 1
    ours = match_image(*image_arrays(truth, results, 1), iou_type="bbox", released=True, category_zero=None)
    for matches, use_categories in ((ours.by_class, True), (ours.pooled, False)):
        assert np.array_equal(matches, pycocotools_matches(truth, results, 1, "bbox", use_categories))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: matched([0], [0], [0.9], [[0.5, 0.5]]), r"overlap: expected shape \(1, 1\), got \(1, 2\)"),
        (lambda: matched([0], [0], [0.9], [[np.nan]]), "overlap: expected numbers"),
        (lambda: matched([0, 0], [0], [0.9], [[0.5, -0.5]]), "overlap: expected numbers .* or a negative one"),
        (lambda: Detections([0], [0.1, 0.2]), r"scores: expected shape \(1\), got \(2,\)"),
        (lambda: Objects([0], boxes=[[0, 0, 1]]), r"boxes: expected shape \(1, 4\), got \(1, 3\)"),
        (lambda: match_image(Objects([0]), Detections([0], [0.5])), "expected masks of objects and detections"),
        (lambda: match_image(Objects([0]), Detections([], [])), "expected area or masks"),
    ],
)
def test_what_does_not_fit_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_classes_are_selected_only_where_areas_are_known():
    known, overlap = np.array([True, False]), np.ones((1, 2))
    for truth, found in (
        (Objects([0, 1]), Detections([1], [0.5], area=[9])),
        (Objects([0, 1], area=[9, 9]), Detections([1], [0.5])),
    ):
        with pytest.raises(ValueError, match="select_classes: expected area of objects and of detections"):
            select_classes(truth, found, overlap, known)
    truth = Objects([0, 1, 0], area=[1, 2, 3], crowd=[False, False, True], ignore=[True, False, False], ids=[7, 8, 9])
    found = Detections([1, 0], [0.5, 0.25], area=[4, 5])
    few, kept, shared = select_classes(truth, found, np.arange(6.0).reshape(2, 3), known)
    assert (few.classes.tolist(), few.area.tolist(), few.ids.tolist()) == ([0, 0], [1, 3], [7, 9])
    assert (few.crowd.tolist(), few.ignore.tolist()) == ([False, True], [True, True])
    assert (kept.classes.tolist(), kept.scores.tolist(), kept.area.tolist()) == ([0], [0.25], [5])
    assert shared.tolist() == [[3, 5]]


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([2**16 + 5], "classes: expected at most 32767, got 65542"),
        ([0] * 2**15, "objects of one image: expected at most"),
    ],
)
def test_more_than_matches_can_number_is_an_error(classes, message):
    truth = Objects(classes, boxes=[[0, 0, 9, 9]] * len(classes))
    with pytest.raises(ValueError, match=message):
        match_image(truth, Detections([0], [0.5], boxes=[[0, 0, 9, 9]]), iou_type="bbox")
