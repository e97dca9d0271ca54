"""Target maps: the worked checks of the specification, and a literal Gaussian sum."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.errors import DataError
from hardlook.rclicks.training.target_maps import click_blur, click_map, mask_sigma


@pytest.mark.parametrize(
    ("shape", "sigma", "kernel", "mask"),
    [((321, 481), 1.3125, 11, 4), ((1365, 2048), 5.5863, 41, 17), ((99, 99), 0.3178, 3, 0)],
)
def test_widths_of_the_specification(shape, sigma, kernel, mask):
    assert click_blur(shape) == (pytest.approx(sigma, abs=5e-5), kernel)
    assert mask_sigma(shape) == mask
    assert mask_sigma(shape, "paper") == pytest.approx(math.hypot(*shape) / 100)


def gaussian(distance, sigma, reach):
    """A sampled Gaussian that sums to 1 within its reach."""
    steps = np.arange(-reach, reach + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    return np.where(np.abs(distance) <= reach, np.exp(-(distance**2) / (2 * sigma**2)), 0) / weights.sum()


def literal_blur(plane, sigma, kernel):
    """Sum over all pixels of value times kernel; nothing lies beyond the frame."""
    if sigma == 0:
        return plane
    rows, columns = (np.arange(side)[:, None] - np.arange(side)[None, :] for side in plane.shape)
    return gaussian(rows, sigma, kernel // 2) @ plane @ gaussian(columns, sigma, kernel // 2).T


@pytest.mark.parametrize("reading", ["released", "paper"])
@pytest.mark.parametrize("shape", [(60, 200), (150, 90)])
def test_the_map_is_the_literal_one(shape, reading):
    rng = np.random.default_rng(0)
    error = np.zeros(shape, bool)
    error[20:50, 30:80] = True
    clicks = np.stack([rng.integers(25, 85, 30), rng.integers(15, 55, 30)], axis=1)
    counts = np.zeros(shape)
    for x, y in clicks:
        counts[y, x] += 1
    clicked = literal_blur(counts, *click_blur(shape))
    sigma = mask_sigma(shape, reading)
    wanted = clicked / clicked.max() * literal_blur(error.astype(float), sigma, 2 * int(4 * sigma + 0.5) + 1)
    given = click_map(clicks, error, reading=reading)
    np.testing.assert_allclose(given, wanted / wanted.sum(), rtol=1e-6, atol=1e-12)


@given(st.integers(5, 60), st.integers(5, 60), st.lists(st.tuples(st.integers(0, 59), st.integers(0, 59)), min_size=1))
def test_maps_sum_to_one_and_do_not_depend_on_the_order_of_clicks(height, width, points):
    clicks = np.array(points)
    error = np.ones((height, width), bool)
    made = click_map(clicks, error)
    assert made.sum() == pytest.approx(1)
    assert made.min() >= 0
    assert np.array_equal(made, click_map(clicks[::-1], error))


def test_clicks_beyond_the_frame_count_at_its_edge():
    error = np.ones((20, 30), bool)
    assert np.array_equal(click_map(np.array([[45, -3]]), error), click_map(np.array([[29, 0]]), error))


def test_maps_that_cannot_be():
    error = np.zeros((50, 50), bool)
    with pytest.raises(DataError, match="no clicks"):
        click_map(np.empty((0, 2), int), error)
    error[:5, :5] = True
    with pytest.raises(DataError, match="none of 1 clicks falls near"):
        click_map(np.array([[40, 40]]), error)
