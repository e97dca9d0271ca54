import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardlook.contract.sections import Picture
from hardlook.errors import DataError
from hardlook.explorer.painting import painted
from hardlook.report.thumbnails import MASK_COLOUR, label_colour

IMAGE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)


@given(arrays(np.bool_, (40, 60)))
def test_outside_the_mask_nothing_changes_and_inside_everything_leans_to_its_colour(mask):
    shown = painted(Picture("a", IMAGE, mask=mask))
    assert np.array_equal(shown[~mask], IMAGE[~mask])
    colour = np.array(MASK_COLOUR, float)
    before, after = abs(IMAGE[mask] - colour), abs(shown[mask] - colour)
    assert (after <= before + 0.5).all()


def test_the_inside_of_a_mask_is_a_blend():
    mask = np.zeros((40, 60), bool)
    mask[5:35, 5:55] = True
    inner = painted(Picture("a", IMAGE, mask=mask))[10:30, 10:50]
    expected = IMAGE[10:30, 10:50] * 0.58 + np.array(MASK_COLOUR) * 0.42
    assert np.abs(inner - expected).max() <= 0.51


def test_labels_have_the_colours_of_reports_and_negative_ones_none():
    labels = np.full((40, 60), -1, np.int32)
    labels[:, :30] = 3
    shown = painted(Picture("a", IMAGE, label_map=labels))
    assert np.array_equal(shown[:, 30:], IMAGE[:, 30:])
    expected = IMAGE[10:30, 10:20] * 0.5 + np.array(label_colour(3)) * 0.5
    assert np.abs(shown[10:30, 10:20] - expected).max() <= 0.51


@given(st.booleans())
def test_without_the_overlay_it_is_the_image(masked):
    picture = Picture("a", IMAGE, mask=np.ones((40, 60), bool) if masked else None)
    assert np.array_equal(painted(picture, overlay=False), IMAGE)


def test_a_mask_of_another_size_is_an_error():
    with pytest.raises(DataError, match="expected a mask"):
        painted(Picture("a", IMAGE, mask=np.ones((4, 6), bool)))
