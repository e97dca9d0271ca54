"""Weighted passes against one score at a time, which pycocotools judges elsewhere."""

import numpy as np
import pytest
from detection_scenes import accumulated, scene, similarity
from hypothesis import given, settings
from hypothesis import strategies as st

from hardlook.metrics.detection_matching import IGNORED
from hardlook.metrics.open_ap import open_average_precision
from hardlook.metrics.weighted_precision import WeightedPrecision, counting_detections


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
    counting = counting_detections(matched, labels, 3)
    for setting, row in enumerate(matched):
        expected = [
            place
            for place, found in enumerate(row.tolist())
            if found >= 0 or (found != IGNORED and any(row[later] == labels[place] for later in range(place, 40)))
        ]
        part = slice(counting.starts[setting], counting.starts[setting + 1])
        assert counting.places[part].tolist() == expected
        assert counting.found[part].tolist() == row[expected].tolist()


def test_weights_that_do_not_fit_the_images():
    truth, results = scene(1, images=3)
    table = accumulated(truth, results, np.eye(4), "bbox").table()
    with pytest.raises(ValueError, match=r"multiplicity: expected \(3,\) counts, got \(2,\)"):
        WeightedPrecision(table, np.eye(4)).result([1, 1])


def test_a_table_of_nothing():
    truth, results = scene(1, images=0)
    table = accumulated(truth, results, np.eye(4), "bbox").table()
    assert np.isnan(WeightedPrecision(table, np.eye(4)).result(np.zeros(0)).open.per_class()).all()
