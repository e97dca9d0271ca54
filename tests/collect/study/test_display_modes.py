"""What each display mode shows, and what it must not show."""

from math import hypot

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.collect.study.display_modes import (
    COLOURS,
    DARK,
    GREY,
    draw_cut_out,
    draw_highlighted,
    draw_shifted,
    draw_silhouette,
    draw_target,
    find_shift,
    is_small_shift,
    outline_mask,
)
from hardlook.errors import OptionError

FRAMES = st.tuples(st.integers(3, 14), st.integers(3, 14))


@st.composite
def scenes(draw):
    height, width = draw(FRAMES)
    image = draw(arrays(np.uint8, (height, width, 3)))
    mask = draw(arrays(np.bool_, (height, width)).filter(lambda mask: mask.any()))
    return image, mask


@given(scenes())
def test_a_cut_out_has_the_objects_pixels_and_nothing_else(scene):
    image, mask = scene
    picture = draw_cut_out(image, mask)
    assert np.array_equal(picture[mask], image[mask])
    assert (picture[~mask] == GREY).all()


@given(scenes(), st.integers(0, 2**31))
def test_no_picture_but_the_highlighted_one_depends_on_the_background(scene, seed):
    image, mask = scene
    other = np.where(mask[..., None], image, np.random.default_rng(seed).integers(0, 256, image.shape, np.uint8))
    for mode in ("cut-out", "shifted", "silhouette"):
        for kind in ("first", "fn", "fp"):
            assert np.array_equal(draw_target(mode, image, mask, kind), draw_target(mode, other, mask, kind))


@given(scenes(), st.sampled_from(["first", "fn", "fp"]))
def test_shifted_is_the_object_moved_within_the_frame(scene, kind):
    image, mask = scene
    right, down = find_shift(mask)
    picture = draw_shifted(image, mask, kind)
    rows, columns = np.nonzero(mask)
    landed = np.zeros_like(mask)
    # An object that left the frame would be an IndexError, or wrap to negative places.
    assert (rows + down >= 0).all() and (columns + right >= 0).all()
    landed[rows + down, columns + right] = True
    assert np.array_equal(picture[rows + down, columns + right], image[mask])
    around = outline_mask(landed) if kind != "first" else np.zeros_like(landed)
    assert (picture[~landed & ~around] == GREY).all()
    assert (picture[around] == COLOURS.get(kind, 0)).all()


@given(arrays(np.bool_, FRAMES).filter(lambda mask: mask.any()))
def test_a_shift_goes_to_the_middle_or_as_far_as_it_can(mask):
    height, width = mask.shape
    rows, columns = np.nonzero(mask)
    right, down = find_shift(mask)
    middle = ((width - 1) / 2, (height - 1) / 2)
    centre = ((columns.min() + columns.max()) / 2, (rows.min() + rows.max()) / 2)
    off = (middle[0] - centre[0], middle[1] - centre[1])
    possible = [
        (x, y)
        for x in range(-columns.min(), width - columns.max())
        for y in range(-rows.min(), height - rows.max())
    ]  # fmt: skip
    assert (right, down) in possible
    if abs(right - off[0]) <= 0.5 and abs(down - off[1]) <= 0.5 and hypot(right, down) >= 0.1 * hypot(*mask.shape):
        return
    assert hypot(right, down) == max(hypot(*shift) for shift in possible)


def test_an_object_in_the_middle_moves_and_one_that_fills_the_frame_does_not():
    mask = np.zeros((40, 60), bool)
    mask[15:25, 20:40] = True
    assert find_shift(mask) == (-20, -15)
    assert find_shift(np.ones((40, 60), bool)) == (0, 0)
    assert is_small_shift((0, 0), (40, 60)) and not is_small_shift((-20, -15), (40, 60))
    tall = np.zeros((40, 60), bool)
    tall[:, 28:30] = True
    assert find_shift(tall) == (30, 0)


@given(scenes())
def test_a_silhouette_is_the_mask(scene):
    _, mask = scene
    picture = draw_silhouette(mask)
    assert np.array_equal((picture == 255).all(axis=2), mask)
    assert (picture[~mask] == DARK).all()


@given(scenes())
def test_a_highlighted_object_keeps_its_pixels_and_the_rest_is_darker(scene):
    image, mask = scene
    picture, around = draw_highlighted(image, mask), outline_mask(mask)
    assert np.array_equal(picture[mask], image[mask])
    rest = ~mask & ~around
    assert (picture[rest] <= image[rest] * 0.5).all()


@given(scenes(), st.sampled_from(["cut-out", "shifted", "silhouette", "highlighted"]))
def test_errors_have_their_colour_in_every_picture(scene, mode):
    image, mask = scene
    pictures = {kind: draw_target(mode, image, mask, kind) for kind in ("first", "fn", "fp")}
    if mode == "silhouette" or not mask.all():
        for kind in ("fn", "fp"):
            assert (pictures[kind] == COLOURS[kind]).all(axis=2).any()
    assert all(picture.shape == image.shape and picture.dtype == np.uint8 for picture in pictures.values())


@given(arrays(np.bool_, FRAMES))
def test_a_rim_lies_outside_and_touches(mask):
    around = outline_mask(mask)
    assert not (around & mask).any()
    beside = cv2.dilate(mask.astype(np.uint8), np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.uint8)) > 0
    assert (around >= (beside & ~mask)).all()


# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
BLINDNESS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900],
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", BLINDNESS)
def test_the_colours_of_errors_differ_for_colour_blind_people(kind):
    def seen(colour):
        values = np.array(colour) / 255
        linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
        dull = np.clip(np.array(BLINDNESS[kind]) @ linear, 0, 1)
        gamma = np.where(dull <= 0.0031308, 12.92 * dull, 1.055 * dull ** (1 / 2.4) - 0.055)
        return cv2.cvtColor(gamma.astype(np.float32)[None, None], cv2.COLOR_RGB2LAB)[0, 0]

    # A difference of 2.3 is just noticed.
    assert np.linalg.norm(seen(COLOURS["fn"]) - seen(COLOURS["fp"])) > 25


def test_text_has_no_picture():
    with pytest.raises(OptionError, match="no picture in display mode 'text'"):
        draw_target("text", np.zeros((2, 2, 3), np.uint8), np.ones((2, 2), bool))
