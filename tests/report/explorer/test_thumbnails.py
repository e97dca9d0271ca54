"""Thumbnails from a unit's pictures: which picture is truth and which prediction, and what each overlay shows."""

import io
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from hardlook.errors import DataError
from hardlook.harness.sections import Picture
from hardlook.report.explorer.thumbnails import LONGEST, build_panels, draw_message, encode_panels, paint_panel
from hardlook.report.pictures import MASK_COLOUR, label_colour

GREY = np.full((240, 320, 3), 100, np.uint8)
OTHER = np.full((240, 320, 3), 60, np.uint8)


def half(*, left: bool) -> np.ndarray:
    mask = np.zeros((240, 320), bool)
    mask[:, :160] = left
    mask[:, 160:] = not left
    return mask


LEFT, RIGHT = Picture("truth", GREY, mask=half(left=True)), Picture("prediction", GREY, mask=half(left=False))


def test_the_prediction_is_filled_and_the_truth_outlined():
    (panel,) = build_panels([Picture("image", GREY), LEFT, RIGHT])
    both, truth, prediction, none = (paint_panel(panel, name) for name in ("on", "truth", "prediction", "off"))
    tinted = (np.array(MASK_COLOUR) * 0.42 + 100 * 0.58).round()
    assert np.array_equal(none, GREY)
    assert np.array_equal(both[120, 80], GREY[0, 0])
    assert np.array_equal(both[120, 240], tinted)
    assert both[120, 157:162].tolist() == [[100] * 3, [255] * 3, [*MASK_COLOUR], [255] * 3, tinted.tolist()]
    assert np.array_equal(both[120, 0], GREY[0, 0])
    assert np.array_equal(truth[120, 80], tinted)
    assert np.array_equal(truth[120, 240], GREY[0, 0])
    assert np.array_equal(prediction[120, 240], tinted)


def test_each_label_has_its_colour_and_no_label_none():
    labels = np.full((240, 320), -1, np.int32)
    labels[:, 160:] = 3
    (panel,) = build_panels([Picture("true segments", GREY, label_map=labels)])
    painted = paint_panel(panel, "on")
    assert np.array_equal(painted[120, 240], (np.array(label_colour(3)) * 0.5 + 50).round())
    assert np.array_equal(painted[120, 80], GREY[0, 0])


@pytest.mark.parametrize("equal", [True, False])
def test_a_support_of_a_pair_is_not_its_truth(equal):
    """A support and a query may be the same image."""
    image = GREY.copy() if equal else OTHER
    support = Picture("support", image, mask=half(left=False))
    panels = build_panels([support, Picture("query and truth", GREY, mask=half(left=True)), RIGHT])
    assert len(panels) == (1 if equal else 2)
    assert np.array_equal(panels[-1].truth.mask[:, 0], np.ones(len(panels[-1].image), bool))
    assert panels[-1].prediction.label == "prediction"


def test_pictures_without_overlays_are_laid_out_four_to_a_tile():
    pictures = [Picture(str(shade), np.full((72, 96, 3), shade, np.uint8)) for shade in range(0, 120, 20)]
    panels = build_panels(pictures)
    assert [int(panel.image[0, 0, 0]) for panel in panels] == [0, 20, 40, 60]
    assert not any(panel.is_overlaid for panel in panels)
    tile = Image.open(io.BytesIO(encode_panels(panels)))
    assert tile.size == (2 * 240 + 4, 2 * 180 + 4)
    assert np.abs(np.asarray(tile)[-1, -1].astype(int) - 60).max() < 8


@pytest.mark.parametrize(("height", "width"), [(500, 375), (1, 4000), (3, 2), (240, 320)])
def test_any_size_fits_a_tile(height, width):
    image = np.zeros((height, width, 3), np.uint8)
    mask = np.zeros((height, width), bool)
    mask[0, width // 2] = True
    panels = build_panels([Picture("truth", image, mask=mask), Picture("prediction", image, mask=~mask)])
    assert max(Image.open(io.BytesIO(encode_panels(panels))).size) <= LONGEST
    assert panels[0].truth.mask.any()


def test_clicks_are_where_they_were_made():
    large = np.full((480, 640, 3), 100, np.uint8)
    clicks = Picture(
        "clicks", large, mask=np.zeros((480, 640), bool), points=[(600.0, 40.0, True), (20.0, 400.0, False)]
    )
    (panel,) = build_panels([Picture("the object", large, mask=np.ones((480, 640), bool)), clicks])
    painted = paint_panel(panel, "prediction").astype(int)
    assert painted[20, 300].argmax() == 1
    assert painted[200, 10].argmax() == 0


def test_a_picture_with_a_mask_of_another_size_is_an_error():
    with pytest.raises(DataError, match="expected a mask"):
        build_panels([Picture("truth", GREY, mask=np.zeros((2, 2), bool))])


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "x" * 500, "word " * 200, "", "\x00 & \ud800"])
def test_a_message_is_well_formed_and_short(text):
    drawn = ElementTree.fromstring(draw_message(text))
    assert {one.tag.rpartition("}")[2] for one in drawn.iter()} == {"svg", "text"}
    assert len(drawn) <= 8
