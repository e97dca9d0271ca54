"""The three click models that look at masks only, against the words of the specification."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import ndimage

from hardlook.metrics.regions import find_bounding_box
from hardlook.models.conformance import check_named
from hardlook.models.registry import build
from hardlook.rclicks.click_models.simple import Center, Distance, Uniform

MODELS = (Uniform(), Distance(), Center())

ERRORS = arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.sampled_from([True, True, False]))


def map_of(model, error):
    return model.click_map(np.zeros((*error.shape, 3), np.uint8), error, error, True)


@pytest.mark.parametrize("name", ["uniform", "distance", "center"])
def test_they_keep_the_contract(name):
    assert build(name, "click-model").local
    assert [finding.line() for finding in check_named(name, "click-model", {}) if not finding.passed] == []


@given(ERRORS)
def test_uniform_is_the_error(error):
    assert np.array_equal(map_of(Uniform(), error) > 0, error)
    assert set(np.unique(map_of(Uniform(), error))) <= {0.0, 1.0}


@given(ERRORS)
def test_distance_is_the_exact_transform_without_border(error):
    expected = np.ones(error.shape) if error.all() else ndimage.distance_transform_edt(error)
    assert np.array_equal(map_of(Distance(), error), expected)


@given(ERRORS)
def test_center_is_one_pixel_of_the_greatest_depth(error):
    chances = map_of(Center(), error)
    depth = ndimage.distance_transform_edt(np.pad(error, 1))[1:-1, 1:-1]
    assert chances.sum() == bool(error.any())
    if error.any():
        assert int(chances.argmax()) == int(np.rint(depth**2).argmax())


@given(ERRORS, st.integers(0, 3))
def test_a_crop_with_one_pixel_of_margin_serves(error, around):
    error = np.pad(error, around)
    box = find_bounding_box(error)
    if box is not None:
        cut = box.grown(1, error.shape).slices
        for model in MODELS:
            assert np.array_equal(map_of(model, error[cut]), map_of(model, error)[cut])
