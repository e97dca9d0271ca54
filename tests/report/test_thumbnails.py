from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from hardlook.contract.sections import Picture
from hardlook.errors import DataError
from hardlook.report.thumbnails import MASK_COLOUR, label_colour, labels_present, thumbnail


def pixels(picture: Picture) -> np.ndarray:
    kind, data = thumbnail(picture).split(",")
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
    assert labels_present(picture) == [3, 5]


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
        thumbnail(picture)
