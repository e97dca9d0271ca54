from __future__ import annotations

import math
import re

import numpy as np
import pytest
import report_samples
from drawn_charts import Outline

from hardlook.errors import DataError
from hardlook.harness.sections import Example, Gallery, Picture
from hardlook.report.galleries import UnitRecord, draw_gallery, draw_record, format_record_fields


def test_pictures_captions_ids_and_reasons_are_shown():
    (gallery,) = report_samples.sections()[1].blocks
    fragment = draw_gallery(gallery, report_samples.pictures())
    outline = Outline(fragment)
    assert len(outline.all("img")) == 2
    for image in outline.all("img"):
        assert image["src"].startswith("data:image/jpeg;base64,")
        assert image["alt"] == (
            "prediction of u/1; a mask over 25.9% of the image; labels: cow, cat; 1 positive click, 1 negative"
        )
    assert [text for text in outline.texts if text.startswith("No picture")] == [
        "No picture: the image is gone",
        "No picture: no picture was given for this unit",
    ]
    assert [text for text in outline.texts if text.startswith("u/")] == ["u/1", "u/2", "u/3"]
    assert "<code>0.1</code>" in fragment


def test_the_legend_names_the_labels_present_only():
    (gallery,) = report_samples.sections()[1].blocks
    texts = Outline(draw_gallery(gallery, report_samples.pictures())).texts
    assert "cow" in texts and "cat" in texts and "dog" not in texts


def test_clicks_are_numbered_discs_at_their_place():
    image = np.zeros((128, 256, 3), np.uint8)
    picture = Picture("p", image, points=((99.5, 49.5, True), (199.5, 99.5, False)))
    fragment = draw_gallery(Gallery("t", "c", (Example("u", ""),)), {"u": [picture]})
    discs = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="[\d.]+" fill="(#\w+)"', fragment)
    assert [(float(x), float(y)) for x, y, _ in discs] == [(100, 50), (200, 100)]
    assert discs[0][2] != discs[1][2]
    assert re.findall(r"<text[^>]*>(\d)</text>", fragment) == ["1", "2"]


def test_hostile_names_stay_text():
    example = Example(report_samples.HOSTILE, report_samples.HOSTILE)
    picture = Picture(report_samples.HOSTILE, np.zeros((8, 8, 3), np.uint8))
    fragment = draw_gallery(Gallery(report_samples.HOSTILE, "", (example,)), {report_samples.HOSTILE: [picture]})
    assert not Outline(fragment).all("script")


def test_an_error_names_the_unit():
    broken = Picture("p", np.zeros((8, 8), np.uint8))
    with pytest.raises(DataError, match="u/7"):
        draw_gallery(Gallery("t", "", (Example("u/7", ""),)), {"u/7": [broken]})


def test_an_empty_gallery_says_so():
    assert "There is no unit to show here." in draw_gallery(Gallery("t", "", ()), {})


def test_clicks_without_an_order_are_dots_without_numbers():
    image = np.full((40, 60, 3), 90, np.uint8)
    points = [(10.0, 20.0, True), (59.0, 0.0, False)]
    gallery = Gallery("crowd", "", [Example("a", "")])
    numbered = draw_gallery(gallery, {"a": [Picture("clicks", image, points=points)]})
    dotted = draw_gallery(gallery, {"a": [Picture("clicks", image, points=points, ordered=False)]})
    assert numbered.count("</text>") == 2
    assert dotted.count("<circle") == 2
    assert "</text>" not in dotted


def test_a_record_opens_below_the_pictures_of_its_unit_only():
    (gallery,) = report_samples.sections()[1].blocks
    outline = Outline(draw_gallery(gallery, report_samples.pictures(), records=report_samples.records()))
    assert [box["class"] for box in outline.all("details")] == ["record"]
    assert "beach" in outline.texts and "0, 1, 2, 3, 4, 5, 6, 7, … (500 values)" in outline.texts
    assert report_samples.records()["u/1"].command in outline.texts


def test_a_box_opens_with_its_heading_and_says_how_many_units_it_holds():
    (gallery,) = report_samples.sections()[1].blocks
    for opened in (True, False):
        outline = Outline(draw_gallery(gallery, report_samples.pictures(), opened=opened))
        assert ("open" in outline.all("details")[0]) == opened
        assert [tag for tag, _ in outline.elements][:4] == ["figure", "details", "summary", "h3"]
        assert "3 units" in outline.texts


def test_small_pictures_stand_in_two_columns():
    def drawn(width: int) -> str:
        picture = Picture("p", np.zeros((50, width, 3), np.uint8))
        return draw_gallery(Gallery("t", "", (Example("u", ""),)), {"u": [picture] * 3})

    assert 'class="gallery two"' in drawn(160) and 'class="gallery two"' not in drawn(240)


@pytest.mark.parametrize(("count", "side"), [(1, 256), (4, 256), (5, 176), (10, 176)])
def test_many_pictures_of_a_unit_are_small_and_their_clicks_stay_in_place(count, side):
    picture = Picture("p", np.zeros((512, 512, 3), np.uint8), points=((255.5, 127.5, True),))
    fragment = draw_gallery(Gallery("t", "c", (Example("u", ""),)), {"u": [picture] * count})
    images = Outline(fragment).all("img")
    assert [(image["width"], image["height"]) for image in images] == [(str(side), str(side))] * count
    assert set(re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', fragment)) == {(str(side // 2), str(side // 4))}


def test_long_lists_and_texts_are_cut_and_say_how_long_they_are():
    record = {"ints": list(range(500)), "names": "a\nb", "long": "x" * 500, "none": None, "nan": math.nan, "low": -0.25}
    said = dict(format_record_fields({**record, "flag": True, "bytes": b"12", "few": [1, 2], "empty": []}))
    assert said["ints"] == "0, 1, 2, 3, 4, 5, 6, 7, … (500 values)"
    assert said["names"] == "a, b" and said["few"] == "1, 2" and said["empty"] == "\N{EN DASH}"
    assert said["long"].endswith("… (500 characters)") and len(said["long"]) < 150
    assert (said["none"], said["nan"], said["flag"], said["bytes"]) == ("nothing", "undefined", "yes", "2 bytes")
    assert said["low"] == "\N{MINUS SIGN}0.25"


def test_the_box_holds_fields_and_the_command_as_text():
    outline = Outline(
        draw_record(UnitRecord([("a", report_samples.HOSTILE)], report_samples.HOSTILE), report_samples.HOSTILE)
    )
    assert [tag for tag, _ in outline.elements][:2] == ["details", "summary"]
    assert not outline.all("script")
    assert sum("ünïcödé" in text for text in outline.texts) == 2


def test_nothing_to_say_is_nothing():
    assert draw_record(UnitRecord(), "u") == ""
