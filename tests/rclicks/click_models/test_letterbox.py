"""The letterbox: whole, in proportion, in the middle, and back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hardlook.rclicks.click_models.letterbox import Letterbox, image_on_grid, masks_on_grid

sides = st.integers(1, 300)


@given(sides, sides, st.integers(32, 128))
def test_the_longer_side_fills_the_grid_and_the_shorter_lies_in_the_middle(height, width, size):
    box = Letterbox.of((height, width), size)
    assert max(box.rows, box.columns) == size
    assert 0 <= (size - box.rows) - 2 * box.top <= 1
    assert 0 <= (size - box.columns) - 2 * box.left <= 1
    assert abs(box.rows * width - box.columns * height) <= max(height, width) * 1.0 or min(box.rows, box.columns) == 1


@given(sides, sides)
def test_what_is_even_stays_even_and_nothing_lies_around_it(height, width):
    box = Letterbox.of((height, width), 64)
    grid = box.place(np.full((height, width), 3.0, np.float32))
    np.testing.assert_allclose(box.content(grid), 3, rtol=1e-6)
    assert np.count_nonzero(grid) == box.rows * box.columns
    np.testing.assert_allclose(box.take(grid), 3, rtol=1e-6)
    assert box.take(grid).shape == (height, width)


@given(st.integers(2, 200), st.integers(2, 200), st.data())
def test_points_stay_in_the_image_and_in_order(height, width, data):
    box = Letterbox.of((height, width), 48)
    xs = np.sort(data.draw(st.lists(st.integers(0, width - 1), min_size=2, max_size=5)))
    clicks = np.stack([xs, np.zeros_like(xs)], axis=1)
    cells = box.points(clicks)
    assert (cells >= 0).all()
    assert (cells[:, 0] < box.columns).all()
    assert (np.diff(cells[:, 0]) >= 0).all()
    assert box.points(np.array([[width - 1, height - 1]])).tolist() == [
        [int((width - 0.5) * box.columns / width), int((height - 0.5) * box.rows / height)]
    ]


def test_single_clicks_keep_their_mass_when_an_image_shrinks():
    plane = np.zeros((640, 960), np.float32)
    plane[11::37, 5::41] = 1
    box = Letterbox.of(plane.shape, 64)
    kept = box.place(plane, density=True).sum() * (640 * 960) / (box.rows * box.columns)
    np.testing.assert_allclose(kept, plane.sum(), rtol=0.01)


def test_images_are_normalised_before_they_are_framed():
    image = np.zeros((10, 20, 3), np.uint8)
    image[..., 1] = 255
    box = Letterbox.of(image.shape, 32)
    grid = image_on_grid(image, box)
    wanted = (np.array([0, 1, 0]) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(grid[:, 16, 16], wanted, rtol=1e-6)
    assert (grid[:, :8] == 0).all()
    masks = masks_on_grid(np.ones((10, 20), bool), np.zeros((10, 20), bool), box)
    assert masks.shape == (2, 32, 32)
    assert masks.sum((1, 2)).tolist() == [32 * 16, 0]
