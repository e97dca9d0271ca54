"""Weighted passes against one score at a time, which pycocotools judges elsewhere."""

import numpy as np
import pytest
from detection_scenes import accumulated, assert_same_scores, pycocotools_evaluation, scene, similarity
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.metrics.detection import IGNORED, Detections, Objects
from hardlook.metrics.open_ap import OpenAP, WeightedPrecision, find_relevant_detections, open_average_precision

A, B, C, ELSEWHERE = [0, 0, 50, 50], [100, 0, 50, 50], [0, 100, 50, 50], [100, 100, 50, 50]

CHECK = np.array([[1, 0.5, 0.2], [0.5, 1, 0.25], [0.2, 0.25, 1]])

CHECK_TRUTH = {"classes": [0, 1, 0], "boxes": [A, B, C]}

CHECK_FOUND = {"classes": [1, 0, 1, 0, 2], "scores": [0.9, 0.8, 0.7, 0.6, 0.5], "boxes": [A, A, B, C, ELSEWHERE]}

seeds = st.integers(0, 2**32 - 1)


def literal_open_precision(truth, results, matrix, iou_type):
    """(areas, thresholds, classes) Open AP, step by step as the specification says; pycocotools matches, pooled."""
    evaluation = pycocotools_evaluation(truth, results, iou_type, use_categories=False)
    classes = {category["id"]: k for k, category in enumerate(truth["categories"])}
    object_class = {a["id"]: classes[a["category_id"]] for a in truth["annotations"]}
    label = {i + 1: classes[row["category_id"]] for i, row in enumerate(results)}
    parts = [part for part in evaluation.evalImgs if part is not None]
    areas = [tuple(bounds) for bounds in evaluation.params.areaRng]
    values = np.full((4, 10, len(classes)), np.nan)
    for a, t, k in np.ndindex(values.shape):
        chosen = [part for part in parts if tuple(part["aRng"]) == areas[a]]
        objects = sum(
            object_class[i] == k and not ignored
            for part in chosen
            for i, ignored in zip(part["gtIds"], part["gtIgnore"], strict=True)
        )
        if not objects:
            continue
        entries = []
        for part in chosen:
            for d, name in enumerate(part["dtIds"]):
                if part["dtIgnore"][t, d]:
                    continue
                found = object_class.get(int(part["dtMatches"][t, d]))
                if found == k:
                    entries.append((part["dtScores"][d], matrix[label[name], k], 0.0))
                elif label[name] == k:
                    entries.append((part["dtScores"][d], 0.0, 1.0 if found is None else 1 - matrix[k, found]))
        entries.sort(key=lambda entry: -entry[0])
        true, false = (np.cumsum([entry[i] for entry in entries]) for i in (1, 2))
        recall, precision = true / objects, true / (true + false + np.spacing(1))
        at_levels = [precision[recall >= level].max(initial=0) for level in np.linspace(0, 1, 101)]
        values[a, t, k] = np.mean(at_levels)
    return values


def test_worked_check():
    metric = OpenAP(["one", "two", "three"], CHECK, iou_type="bbox")
    metric.update(Objects(**CHECK_TRUTH), Detections(**CHECK_FOUND))
    result = metric.compute()
    assert result.open.per_class()[:2] == pytest.approx([0.554455, 0.666667], abs=5e-7)
    assert np.isnan(result.open.per_class()[2])
    figures = {kind: summary["AP"] for kind, summary in result.summary().items()}
    assert figures == pytest.approx({"open": 0.610561, "dagger": 0.376238, "vanilla": 0.75}, abs=5e-7)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_equals_the_literal_reading_of_the_specification(seed, images, classes, ties):
    truth, results = scene(seed, images=images, classes=classes, ties=ties)
    matrix = similarity(seed, classes)
    result = accumulated(truth, results, matrix, "bbox").compute()
    for table, alike in ((result.open, matrix), (result.dagger, np.eye(classes))):
        theirs = literal_open_precision(truth, results, alike, "bbox")
        np.testing.assert_allclose(table.precision, theirs, atol=1e-9, rtol=0)


def test_equals_the_literal_reading_on_masks():
    truth, results = scene(11, images=3, masks=True)
    matrix = similarity(11, 4)
    ours = accumulated(truth, results, matrix, "segm").compute().open.precision
    np.testing.assert_allclose(ours, literal_open_precision(truth, results, matrix, "segm"), atol=1e-9, rtol=0)


def test_constrained_scores_leave_other_classes_out_before_matching():
    truth, results = scene(4, images=6, most=9)
    matrix, kept = similarity(4, 4), [0, 2]
    metric = accumulated(truth, results, matrix, "bbox", class_sets={"base": kept, "novel": [1, 3]})
    ids = {truth["categories"][k]["id"] for k in kept}
    few = {**truth, "annotations": [a for a in truth["annotations"] if a["category_id"] in ids]}
    alone = accumulated(few, [row for row in results if row["category_id"] in ids], matrix, "bbox").compute()
    assert_same_scores(metric.compute("base"), alone)
    generalised = metric.compute().summary(kept)["open"]["AP"]
    assert generalised == pytest.approx(metric.compute().open.per_class()[kept].mean())
    assert generalised != metric.compute("base").summary()["open"]["AP"]


def test_the_released_reading_loses_the_class_with_id_zero():
    scores = {}
    for released in (False, True):
        metric = OpenAP(["one", "two", "three"], CHECK, iou_type="bbox", released=released)
        metric.update(Objects(**CHECK_TRUTH, ids=[1, 2, 3]), Detections(**CHECK_FOUND))
        scores[released] = metric.compute()
    # With index as id, class 0 is never found, and label 1 on its object costs a whole false positive: class 1 has
    # precision 1/2 at recall 1 and not 2/3.
    assert scores[True].open.per_class()[:2] == pytest.approx([0, 0.5])
    assert scores[False].open.per_class()[:2] == pytest.approx([0.554455, 0.666667], abs=5e-7)
    metric = OpenAP(["one", "two", "three"], CHECK, iou_type="bbox", released=True, category_ids=[1, 2, 3])
    metric.update(Objects(**CHECK_TRUTH, ids=[1, 2, 3]), Detections(**CHECK_FOUND))
    assert_same_scores(metric.compute(), scores[False])


def test_tensors_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    metric = OpenAP(["one", "two", "three"], torch.tensor(CHECK, requires_grad=True), iou_type="bbox")
    truth, found = ({k: torch.tensor(v) for k, v in fields.items()} for fields in (CHECK_TRUTH, CHECK_FOUND))
    found["scores"].requires_grad_()
    metric.update(Objects(**truth), Detections(**found))
    assert metric.compute().summary()["open"]["AP"] == pytest.approx(0.610561, abs=5e-7)


def test_a_matrix_is_read_as_row_true_and_column_given():
    matrix = np.array([[1, 0.75], [0.25, 1]])
    with pytest.raises(ValueError, match=r"similarity\[0, 1\] is 0.75 and .* is 0.25: expected a symmetric matrix"):
        OpenAP(["one", "two"], matrix, iou_type="bbox")
    metric = OpenAP(["one", "two"], matrix, iou_type="bbox", asymmetric=True)
    metric.update(Objects([0], boxes=[A]), Detections([1], [0.9], boxes=[A]))
    assert metric.compute().open.recall[0, 0, 0] == 0.75
    with pytest.raises(ValueError, match="expected a symmetric matrix"):
        open_average_precision(metric.table(), matrix)
    with pytest.raises(ValueError, match="labels: expected names that differ, got 'one' at 0 and 1"):
        OpenAP(["one", "one"], np.eye(2))


def test_pairs_of_labels_are_counted():
    metric = OpenAP(["one", "two", "three"], CHECK, iou_type="bbox")
    metric.update(Objects(**CHECK_TRUTH), Detections(**CHECK_FOUND))
    assert metric.table().label_counts().tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]


def test_reset_forgets():
    metric = OpenAP(["one", "two", "three"], CHECK, iou_type="bbox")
    metric.update(Objects([1], boxes=[A]), Detections([], []), image="a")
    metric.reset()
    metric.update(Objects([0], boxes=[A]), Detections([0], [0.5], boxes=[A]), image="a")
    assert metric.compute().summary()["open"]["AP"] == pytest.approx(1)


def test_misuse_is_refused():
    metric = OpenAP(["one", "two", "three"], CHECK, iou_type="bbox")
    nothing = Detections([], [])
    metric.update(Objects([]), nothing, image=3)
    with pytest.raises(ValueError, match="image 3 was already added"):
        metric.update(Objects([]), nothing, image=3)
    with pytest.raises(ValueError, match=r"objects of image 4: expected classes 0\.\.2, got 3 to 3"):
        metric.update(Objects([3], boxes=[A]), nothing, image=4)
    with pytest.raises(ValueError, match="both hold image '3'"):
        metric.merge(metric)
    with pytest.raises(ValueError, match="same labels"):
        metric.merge(OpenAP(["one"], [[1]]))
    with pytest.raises(ValueError, match="similarity"):
        OpenAP(["one"], CHECK)
    with pytest.raises(ValueError, match="ascending"):
        OpenAP(["one", "two", "three"], CHECK, category_ids=[3, 1, 2])
    with pytest.raises(ValueError, match="class_set: expected no set, for none was given, got 'novel'"):
        metric.compute("novel")
    with pytest.raises(ValueError, match="multiplicity"):
        metric.table().resampled([0, 5])
    with pytest.raises(ValueError, match=r"negative: expected classes 0\.\.2, got 1 to 3"):
        metric.update(Objects([0], boxes=[A], negative=[1, 3]), nothing, image=4)
    with pytest.raises(ValueError, match=r"not_exhaustive: expected classes 0\.\.2, got -1 to 0"):
        metric.update(Objects([0], boxes=[A], negative=[], not_exhaustive=[0, -1]), nothing, image=4)
    with pytest.raises(ValueError, match=r"overlap: expected numbers in \[0, 1\]"):
        metric.update(Objects([0], area=[1]), Detections([0], [0.5], area=[1]), image=4, overlap=[[7.0]])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"class_sets": {"base": [0, 9]}}, r"class_sets\['base'\]: expected classes 0\.\.2, got 9"),
        ({"class_sets": {"base": [-1]}}, r"class_sets\['base'\]: expected classes 0\.\.2, got -1"),
        ({"class_sets": {"base": ["one"]}}, r"class_sets\['base'\]: expected integers"),
        ({"max_detections": 0}, "max_detections: expected 1 or more, got 0"),
        ({"max_detections": -1}, "max_detections: expected 1 or more, got -1"),
        ({"iou_type": "mask"}, "iou_type: expected segm or bbox, got 'mask'"),
    ],
)
def test_an_option_that_would_change_scores_unnoticed_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        OpenAP(["one", "two", "three"], CHECK, **options)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 3), min_size=5, max_size=5), st.booleans())
def test_every_weighting_is_scored_as_if_alone(seed, weights, ties):
    truth, results = scene(seed, images=5, ties=ties)
    matrix = similarity(seed, 4)
    table = accumulated(truth, results, matrix, "bbox").table()
    ours = WeightedPrecision(table, matrix).result(weights)
    theirs = open_average_precision(table.weighted(weights), matrix)
    assert np.array_equal(ours.objects, theirs.objects)
    for kind in ("vanilla", "dagger", "open"):
        for field in ("precision", "recall"):
            one, other = (getattr(getattr(result, kind), field) for result in (ours, theirs))
            assert np.array_equal(one, other, equal_nan=True), (kind, field)


@pytest.mark.parametrize("ranges", [1, 2, 4])
def test_fewer_area_ranges_leave_the_rest_undefined(ranges):
    truth, results = scene(5, images=4)
    matrix = similarity(5, 4)
    table = accumulated(truth, results, matrix, "bbox").table()
    some = WeightedPrecision(table, matrix, ranges).result([1, 0, 2, 1])
    alone = open_average_precision(table.weighted([1, 0, 2, 1]), matrix)
    for kind in ("vanilla", "dagger", "open"):
        for field in ("precision", "recall"):
            ours, theirs = (getattr(getattr(result, kind), field) for result in (some, alone))
            assert np.array_equal(ours[:ranges], theirs[:ranges], equal_nan=True), (kind, field)
            assert np.isnan(ours[ranges:]).all()
    assert np.isfinite(some.open.precision[0]).any()


def test_a_number_of_area_ranges_that_there_is_not():
    truth, results = scene(1, images=1)
    table = accumulated(truth, results, np.eye(4), "bbox").table()
    with pytest.raises(ValueError, match="ranges: expected 1 to 4 area ranges, got 0"):
        WeightedPrecision(table, np.eye(4), 0)


def test_only_what_can_matter_is_kept():
    rng = np.random.default_rng(0)
    matched = rng.choice(np.array([-2, -1, 0, 1, 2], np.int16), (6, 40), p=[0.3, 0.5, 0.1, 0.05, 0.05])
    labels = rng.integers(0, 3, 40).astype(np.int16)
    relevant = find_relevant_detections(matched, labels, 3)
    for setting, row in enumerate(matched):
        expected = [
            place
            for place, found in enumerate(row.tolist())
            if found >= 0 or (found != IGNORED and any(row[later] == labels[place] for later in range(place, 40)))
        ]
        part = slice(relevant.starts[setting], relevant.starts[setting + 1])
        assert relevant.places[part].tolist() == expected
        assert relevant.found[part].tolist() == row[expected].tolist()


def test_weights_that_do_not_fit_the_images():
    truth, results = scene(1, images=3)
    table = accumulated(truth, results, np.eye(4), "bbox").table()
    with pytest.raises(ValueError, match=r"multiplicity: expected \(3,\) counts, got \(2,\)"):
        WeightedPrecision(table, np.eye(4)).result([1, 1])


def test_a_table_of_nothing():
    truth, results = scene(1, images=0)
    table = accumulated(truth, results, np.eye(4), "bbox").table()
    assert np.isnan(WeightedPrecision(table, np.eye(4)).result(np.zeros(0)).open.per_class()).all()


@pytest.mark.parametrize("ids", [[3, 1, 2], [1, 1, 2], [1, 2], list(range(14))])
def test_ids_of_classes_are_as_many_as_labels_and_ascending(ids):
    with pytest.raises(ValueError, match="category_ids: expected 3 ascending ids, got ") as caught:
        OpenAP(("a", "b", "c"), np.eye(3), category_ids=ids)
    assert str(caught.value).endswith(str(ids[:10]))
    OpenAP(("a", "b", "c"), np.eye(3), category_ids=[0, 4, 9])


@pytest.mark.parametrize("change", [{"iou_type": "segm"}, {"max_detections": 7}, {"released": True}])
def test_metrics_with_other_settings_are_not_merged(change):
    one = OpenAP(["one", "two", "three"], CHECK, iou_type="bbox")
    other = OpenAP(["one", "two", "three"], CHECK, **{"iou_type": "bbox", **change})
    with pytest.raises(ValueError, match="merge: expected the same iou_type, max_detections and released"):
        one.merge(other)
