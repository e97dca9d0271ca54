"""Squares around objects: the object is in them, at the size and place that was asked for."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hardlook.training.images.segmentation_images import Transforms, pack_images  # noqa: E402
from hardlook.training.interactive.crops import (  # noqa: E402
    Objects,
    change_colours,
    draw_colours,
    draw_object_crops,
    fit_objects,
)


def make_objects(rng, count):
    """Single pixels in images of many sizes, which any careless reduction would lose."""
    sizes = rng.integers(20, 400, (count, 2))
    anchors = (rng.random((count, 2)) * sizes[:, ::-1]).astype(int).astype(float)
    return Objects(sizes, np.concatenate([anchors, anchors], 1), anchors)


@pytest.mark.parametrize("zoomed", [0.0, 1.0])
def test_an_object_of_one_pixel_never_vanishes(zoomed):
    rng = np.random.default_rng(0)
    objects = make_objects(rng, 40)
    transforms = draw_object_crops(rng, objects, 33, zoomed=zoomed)
    for place in range(40):
        label = np.zeros(tuple(objects.sizes[place]), np.uint8)
        x, y = objects.anchors[place].astype(int)
        label[y, x] = 7
        images = pack_images([np.zeros((*label.shape, 3), np.uint8)], [label])
        one = Transforms(transforms.matrices[place : place + 1], transforms.blurred[place : place + 1])
        _, shown = images.take(np.array([0]), one, 33, outside=[0.0] * 3)
        assert (shown == 7).any()


def test_zoomed_squares_lie_around_the_object_and_others_are_about_the_image():
    rng = np.random.default_rng(1)
    box = np.tile([[200.0, 100.0, 299.0, 149.0]], (300, 1))
    objects = Objects(np.tile([[300, 500]], (300, 1)), box, np.tile([[250.0, 125.0]], (300, 1)))
    near, far = (draw_object_crops(rng, objects, 64, zoomed=share) for share in (1.0, 0.0))
    sides = {name: 64 * np.abs(one.matrices[:, 0, 0]) for name, one in (("near", near), ("far", far))}
    # A box of 100 pixels times 1.4 is less than two fifths of 500 pixels.
    assert 0.8 * 200 <= sides["near"].min() < 170 and 280 < sides["near"].max() <= 1.5 * 200
    assert 500 / 1.4 <= sides["far"].min() and sides["far"].max() <= 500 / 0.75
    middles = near.matrices @ np.array([31.5, 31.5, 1])
    assert (np.abs(middles - [249.5, 124.5]).max(1) <= 0.15 * sides["near"] + sides["near"] / 64).all()
    mirrored = near.matrices[:, 0, 0] < 0
    assert 0.35 < mirrored.mean() < 0.65 and (near.matrices[:, 1, 1] > 0).all()


def test_validation_draws_nothing():
    objects = make_objects(np.random.default_rng(2), 5)
    first, second = fit_objects(objects, 32), fit_objects(objects, 32)
    assert np.array_equal(first.matrices, second.matrices) and (first.matrices[:, 0, 0] > 0).all()


def test_colours_change_by_their_share_and_stay_in_range():
    rng = np.random.default_rng(3)
    images = torch.full((200, 3, 2, 2), 0.5)
    assert torch.equal(change_colours(images, draw_colours(rng, 200, 0.0)), images)
    changed = change_colours(images, draw_colours(rng, 200, 1.0))
    assert changed.min() >= 0 and changed.max() <= 1
    assert len({round(float(one.mean()), 5) for one in changed}) > 190
    # The most that contrast, brightness and shift can do together to a half.
    assert changed.max() <= 0.5 * 1.4 + 0.25 + 10 / 255 and changed.min() >= 0.5 * 0.85 - 0.25 - 10 / 255
