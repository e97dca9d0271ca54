"""Rigid transforms keep distances, are drawn by key, and move masks as they move pictures."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardlook.toss.tiers.rigid_transforms import (
    FARTHEST,
    KEPT,
    MAX_DEGREES,
    RigidTransform,
    draw_transform,
    draw_visible_transform,
    transform_image,
    transform_mask,
)

transforms = st.builds(RigidTransform, st.floats(-180, 180), st.booleans(), st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))

sides = st.integers(1, 60)

keys = st.tuples(st.integers(0, 9), st.sampled_from(["1_a", "2_a", "1_b"]), st.integers(1, 50_000))


def blob(seed, height=50, width=70):
    """A random mask with a hole and a separate spot, somewhere in the picture."""
    rng = np.random.default_rng(seed)
    mask = np.zeros((height, width), np.uint8)
    centre = int(rng.integers(0, width)), int(rng.integers(0, height))
    cv2.ellipse(mask, centre, (int(rng.integers(2, 25)), int(rng.integers(2, 20))), 30, 0, 360, 1, -1)
    cv2.circle(mask, centre, 1, 0, -1)
    mask[rng.integers(height), rng.integers(width)] = 1
    return mask.astype(bool)


@given(transforms, sides, sides)
def test_distances_between_pixel_centres_are_kept(transform, width, height):
    matrix = transform.matrix(width, height)
    corners = np.array([[0, 0], [width - 1, 0], [0, height - 1], [3, 5], [-2, 9]], float)
    moved = corners @ matrix[:, :2].T + matrix[:, 2]
    before = np.linalg.norm(corners[:, None] - corners, axis=-1)
    after = np.linalg.norm(moved[:, None] - moved, axis=-1)
    np.testing.assert_allclose(after, before, atol=1e-9)
    assert np.linalg.det(matrix[:, :2]) == pytest.approx(-1 if transform.mirrored else 1)


@given(transforms, sides, sides)
def test_the_centre_of_the_picture_only_moves(transform, width, height):
    centre = np.array([(width - 1) / 2, (height - 1) / 2, 1])
    expected = centre[:2] + np.array([transform.right * width, transform.down * height])
    np.testing.assert_allclose(transform.matrix(width, height) @ centre, expected, atol=1e-9)


@given(st.lists(keys, min_size=2, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_a_draw_depends_on_its_key_and_not_on_the_order(wanted, random):
    first = {key: draw_transform(*key) for key in wanted}
    assert {key: draw_transform(*key) for key in random.sample(wanted, len(wanted))} == first
    assert len(set(first.values())) == len(wanted)


@given(keys)
def test_draws_stay_within_what_is_documented(key):
    drawn = draw_transform(*key)
    assert abs(drawn.degrees) <= MAX_DEGREES
    assert max(abs(drawn.right), abs(drawn.down)) <= FARTHEST


def test_half_of_many_draws_are_mirrored_and_turns_are_even():
    drawn = [draw_transform(0, "1_a", number) for number in range(1, 401)]
    mirrored = sum(one.mirrored for one in drawn)
    # Five standard deviations of a fair coin.
    assert abs(mirrored - 200) < 50
    assert abs(np.mean([one.degrees for one in drawn])) < 5 * MAX_DEGREES / np.sqrt(3 * 400)


@given(st.integers(0, 10_000), keys)
def test_half_of_the_object_stays_in_the_picture(seed, key):
    mask = blob(seed)
    transform = draw_visible_transform(mask, *key)
    assert transform_mask(transform, mask).sum() >= KEPT * mask.sum()
    assert draw_visible_transform(mask, *key) == transform


def test_a_mask_that_no_draw_keeps_is_mirrored():
    mask = np.zeros((400, 400), bool)
    mask[0, 0] = mask[0, -1] = mask[-1, 0] = mask[-1, -1] = True
    corners = [draw_visible_transform(mask, 0, "1_a", number) for number in range(1, 9)]
    assert RigidTransform(mirrored=True) in corners
    flipped = transform_mask(RigidTransform(mirrored=True), blob(1))
    assert (flipped == blob(1)[:, ::-1]).all()


@given(st.integers(0, 10_000), transforms)
def test_mask_and_picture_move_together(seed, transform):
    mask = blob(seed)
    picture = np.repeat(np.where(mask, 255, 0).astype(np.uint8)[..., None], 3, axis=2)
    moved = transform_image(transform, picture, exact=True)
    assert (moved == np.where(transform_mask(transform, mask), 255, 0)[..., None]).all()


@given(st.integers(0, 10_000), transforms)
def test_smooth_pictures_move_by_the_same_matrix(seed, transform):
    mask = np.pad(blob(seed), 4)
    picture = np.repeat(np.where(mask, 255, 0).astype(np.uint8)[..., None], 3, axis=2)
    shown = transform_image(transform, picture)[..., 0] > 0
    wider, narrower = (
        how(mask.astype(np.uint8), np.ones((5, 5), np.uint8)).astype(bool) for how in (cv2.dilate, cv2.erode)
    )
    assert (shown <= transform_mask(transform, wider)).all()
    assert (transform_mask(transform, narrower) <= shown).all()


def test_pixels_go_where_the_matrix_says():
    transform = RigidTransform(degrees=90)
    mask = np.zeros((41, 41), bool)
    mask[5, 12] = True
    x, y = np.rint(transform.matrix(41, 41) @ [12, 5, 1]).astype(int)
    assert np.argwhere(transform_mask(transform, mask)).tolist() == [[y, x]]


def test_a_turn_is_counter_clockwise_as_seen():
    mask = np.zeros((41, 41), bool)
    mask[20, 35] = True  # right of the centre
    [[y, x]] = np.argwhere(transform_mask(RigidTransform(degrees=90), mask)).tolist()
    assert (y, x) == (5, 20)  # above it


@given(st.integers(0, 10_000))
def test_the_identity_leaves_every_bit(seed):
    image = np.random.default_rng(seed).integers(0, 256, (33, 47, 3), np.uint8)
    assert (transform_image(RigidTransform(), image) == image).all()
    assert (transform_image(RigidTransform(), image, exact=True) == image).all()
    assert (transform_mask(RigidTransform(), image[..., 0] > 100) == (image[..., 0] > 100)).all()


def test_black_comes_in_from_outside():
    image = np.full((40, 60, 3), 200, np.uint8)
    transform = RigidTransform(right=0.5)
    moved = transform_image(transform, image)
    assert (moved[:, :30] == 0).all()
    assert (moved[:, 30:] == 200).all()
    everything = np.ones((40, 60), bool)
    assert transform_mask(transform, everything).sum() == 40 * 30


def test_many_draws_reach_to_both_ends_of_what_is_documented():
    drawn = [draw_transform(0, "1_a", number) for number in range(1, 401)]
    for name, end in (("degrees", 45.0), ("right", 0.15), ("down", 0.15)):
        values = np.array([getattr(one, name) for one in drawn])
        # With even draws 5 % of the range at either end stay empty once in 10^8 times.
        assert -end <= values.min() < -0.9 * end and 0.9 * end < values.max() <= end, name


def test_a_mask_is_tried_32_times(monkeypatch):
    tried = []

    def draw_far(seed, token, number, draw):
        tried.append(draw)
        return RigidTransform(right=1.0)

    monkeypatch.setattr("hardlook.toss.tiers.rigid_transforms.draw_transform", draw_far)
    assert draw_visible_transform(np.ones((8, 8), bool), 0, "1_a", 1) == RigidTransform(mirrored=True)
    assert tried == list(range(32))


@pytest.mark.parametrize(("right", "kept"), [(0.5, True), (0.625, False)])
def test_half_of_a_mask_is_enough(monkeypatch, right, kept):
    drawn = RigidTransform(right=right)
    monkeypatch.setattr("hardlook.toss.tiers.rigid_transforms.draw_transform", lambda *key: drawn)
    found = draw_visible_transform(np.ones((8, 8), bool), 0, "1_a", 1)
    assert found == (drawn if kept else RigidTransform(mirrored=True))
