"""The laws of the specification's section 5, for Open AP."""

import numpy as np
from detection_scenes import accumulated, assert_same_scores, image_arrays, scene, similarity
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.metrics.average_precision import soft_precision
from hardlook.metrics.detection import Detections, Objects
from hardlook.metrics.open_ap import OpenAP, open_average_precision

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_identity_is_dagger_and_similarity_only_helps(seed):
    truth, results = scene(seed)
    table = accumulated(truth, results, np.eye(4), "bbox").table()
    identity, soft = (open_average_precision(table, matrix) for matrix in (np.eye(4), similarity(seed, 4)))
    assert np.array_equal(identity.open.precision, identity.dagger.precision, equal_nan=True)
    present = ~np.isnan(soft.open.precision)
    assert (soft.open.precision >= soft.dagger.precision - 1e-12)[present].all()
    assert (soft.open.recall >= soft.dagger.recall)[present].all()
    higher = soft_precision(table, np.maximum(similarity(seed, 4), similarity(seed + 1, 4)))
    assert (higher.recall >= soft.open.recall - 1e-12)[present].all()


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_the_order_of_images_and_the_names_of_classes_change_nothing(seed):
    truth, results = scene(seed, ties=False)
    # Equally good objects are settled by class, so overlaps must be distinct too.
    rng = np.random.default_rng(seed)
    for entry in (*truth["annotations"], *results):
        entry["bbox"] = (np.array(entry["bbox"]) + rng.uniform(0, 0.5, 4)).tolist()
    matrix = similarity(seed, 4)
    result = accumulated(truth, results, matrix, "bbox").compute()
    ids = rng.permutation(np.arange(1, 5))
    renamed = [{**entry, "image_id": int(ids[entry["image_id"] - 1])} for entry in results]
    moved = {**truth, "annotations": [{**a, "image_id": int(ids[a["image_id"] - 1])} for a in truth["annotations"]]}
    assert_same_scores(result, accumulated(moved, renamed, matrix, "bbox").compute())
    places = rng.permutation(4)
    metric = OpenAP(["a", "b", "c", "d"], matrix[np.ix_(np.argsort(places), np.argsort(places))], iou_type="bbox")
    for image in range(1, 5):
        objects, found = image_arrays(truth, results, image)
        metric.update(
            Objects(places[objects.classes], boxes=objects.boxes, area=objects.area, crowd=objects.crowd),
            Detections(places[found.classes], found.scores, boxes=found.boxes),
        )
    assert_same_scores(result, metric.compute(), places)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_a_monotone_change_of_scores_changes_nothing(seed):
    truth, results = scene(seed)
    matrix = similarity(seed, 4)
    scaled = [{**row, "score": float(np.exp(3 * row["score"]) - 9)} for row in results]
    one, other = (accumulated(truth, rows, matrix, "bbox").compute() for rows in (results, scaled))
    assert_same_scores(one, other)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_similarity_between_classes_that_never_meet_changes_nothing(seed):
    truth, results = scene(seed, images=2)
    matrix = similarity(seed, 4)
    table = accumulated(truth, results, matrix, "bbox").table()
    met = sum(table.label_counts(setting) for setting in range(len(table.pooled))) > 0
    other = np.where(met | met.T | np.eye(4, dtype=bool), matrix, similarity(seed + 1, 4))
    assert_same_scores(open_average_precision(table, matrix), open_average_precision(table, other))


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 5))
def test_merging_parts_equals_one_pass_in_any_order(seed, parts):
    truth, results = scene(seed, images=6)
    matrix = similarity(seed, 4)
    order = np.random.default_rng(seed).permutation(np.arange(1, 7))
    pieces = [accumulated(truth, results, matrix, "bbox", piece.tolist()) for piece in np.array_split(order, parts)]
    for other in pieces[1:]:
        pieces[0].merge(other)
    one_pass = accumulated(truth, results, matrix, "bbox").compute()
    for kind in ("vanilla", "dagger", "open"):
        ours, theirs = (getattr(result, kind).precision for result in (pieces[0].compute(), one_pass))
        assert np.array_equal(ours, theirs, equal_nan=True)


@settings(max_examples=30, deadline=None)
@given(seeds, st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_a_resample_equals_scoring_copies_of_images(seed, drawn):
    truth, results = scene(seed, ties=False)
    matrix = similarity(seed, 4)
    copies = OpenAP(["a", "b", "c", "d"], matrix, iou_type="bbox")
    for image in drawn:
        copies.update(*image_arrays(truth, results, image + 1))
    resample = accumulated(truth, results, matrix, "bbox").table().resampled(drawn)
    assert_same_scores(open_average_precision(resample, matrix), copies.compute())
    few = [open_average_precision(table, matrix).vanilla.recall_at[1] for table in (resample, copies.table())]
    np.testing.assert_allclose(*few, atol=1e-12, rtol=0)
