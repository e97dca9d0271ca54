from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from hardlook.errors import DataError
from hardlook.harness.sections import Picture
from hardlook.report.pictures import MASK_COLOUR, encode_thumbnail, label_colour, list_labels, paint_overlay


def pixels(picture: Picture) -> np.ndarray:
    kind, data = encode_thumbnail(picture).split(",")
    assert kind == "data:image/jpeg;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))).astype(int)


def grey(height: int = 300, width: int = 600) -> np.ndarray:
    return np.full((height, width, 3), 128, np.uint8)


def test_the_longest_side_is_256_and_small_images_stay():
    assert pixels(Picture("a", grey())).shape == (128, 256, 3)
    assert pixels(Picture("a", grey(20, 30))).shape == (20, 30, 3)
    assert pixels(Picture("a", grey(1, 2000))).shape == (1, 256, 3)


def test_a_mask_tints_its_own_pixels_towards_its_colour():
    mask = np.zeros((300, 600), bool)
    mask[:, 300:] = True
    shown = pixels(Picture("a", grey(), mask))
    outside, inside = shown[64, 60], shown[64, 200]
    assert np.abs(outside - 128).max() < 8
    expected = 128 * 0.58 + np.array(MASK_COLOUR) * 0.42
    assert np.abs(inside - expected).max() < 12


def test_a_mask_thinner_than_a_pixel_is_still_seen():
    mask = np.zeros((300, 600), bool)
    mask[150, 300] = True
    assert np.abs(pixels(Picture("a", grey(), mask)) - 128).max() > 25


def test_labels_have_their_own_colours_and_minus_one_has_none():
    labels = np.full((300, 600), -1, np.int32)
    labels[:, :200], labels[:, 200:400] = 3, 5
    picture = Picture("a", grey(), label_map=labels)
    shown = pixels(picture)
    for label, column in ((3, 40), (5, 128)):
        assert np.abs(shown[64, column] - (128 + np.array(label_colour(label))) / 2).max() < 14
    assert np.abs(shown[64, 230] - 128).max() < 8
    assert list_labels(picture) == [3, 5]


def test_thirty_six_labels_have_thirty_six_colours():
    assert len({label_colour(label) for label in range(36)}) == 36


@pytest.mark.parametrize(
    "picture",
    [
        Picture("grey", np.zeros((4, 4), np.uint8)),
        Picture("floats", np.zeros((4, 4, 3), np.float32)),
        Picture("mask", grey(), np.zeros((3, 3), bool)),
        Picture("labels", grey(), label_map=np.zeros((3, 3), np.int32)),
    ],
    ids=lambda picture: picture.label,
)
def test_what_breaks_the_contract_is_refused(picture):
    with pytest.raises(DataError, match="expected"):
        encode_thumbnail(picture)


IMAGE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)


@given(arrays(np.bool_, (40, 60)))
def test_outside_the_mask_nothing_changes_and_inside_everything_leans_to_its_colour(mask):
    shown = paint_overlay(Picture("a", IMAGE, mask=mask))
    assert np.array_equal(shown[~mask], IMAGE[~mask])
    colour = np.array(MASK_COLOUR, float)
    before, after = abs(IMAGE[mask] - colour), abs(shown[mask] - colour)
    assert (after <= before + 0.5).all()


def test_the_inside_of_a_mask_is_a_blend():
    mask = np.zeros((40, 60), bool)
    mask[5:35, 5:55] = True
    inner = paint_overlay(Picture("a", IMAGE, mask=mask))[10:30, 10:50]
    expected = IMAGE[10:30, 10:50] * 0.58 + np.array(MASK_COLOUR) * 0.42
    assert np.abs(inner - expected).max() <= 0.51


def test_labels_have_the_colours_of_reports_and_negative_ones_none():
    labels = np.full((40, 60), -1, np.int32)
    labels[:, :30] = 3
    shown = paint_overlay(Picture("a", IMAGE, label_map=labels))
    assert np.array_equal(shown[:, 30:], IMAGE[:, 30:])
    expected = IMAGE[10:30, 10:20] * 0.5 + np.array(label_colour(3)) * 0.5
    assert np.abs(shown[10:30, 10:20] - expected).max() <= 0.51


@given(st.booleans())
def test_without_the_overlay_it_is_the_image(masked):
    picture = Picture("a", IMAGE, mask=np.ones((40, 60), bool) if masked else None)
    assert np.array_equal(paint_overlay(picture, overlay=False), IMAGE)


def test_a_mask_of_another_size_is_an_error():
    with pytest.raises(DataError, match="expected a mask"):
        paint_overlay(Picture("a", IMAGE, mask=np.ones((4, 6), bool)))
