from __future__ import annotations

import math

from hardlook.report.unit_records import UnitRecord, draw_record, record_fields

from . import samples
from .drawn import Outline


def test_long_lists_and_texts_are_cut_and_say_how_long_they_are():
    record = {"ints": list(range(500)), "names": "a\nb", "long": "x" * 500, "none": None, "nan": math.nan, "low": -0.25}
    said = dict(record_fields({**record, "flag": True, "bytes": b"12", "few": [1, 2], "empty": []}))
    assert said["ints"] == "0, 1, 2, 3, 4, 5, 6, 7, … (500 values)"
    assert said["names"] == "a, b" and said["few"] == "1, 2" and said["empty"] == "\N{EN DASH}"
    assert said["long"].endswith("… (500 characters)") and len(said["long"]) < 150
    assert (said["none"], said["nan"], said["flag"], said["bytes"]) == ("nothing", "undefined", "yes", "2 bytes")
    assert said["low"] == "\N{MINUS SIGN}0.25"


def test_the_box_holds_fields_and_the_command_as_text():
    outline = Outline(draw_record(UnitRecord([("a", samples.HOSTILE)], samples.HOSTILE), samples.HOSTILE))
    assert [tag for tag, _ in outline.elements][:2] == ["details", "summary"]
    assert not outline.all("script")
    assert sum("ünïcödé" in text for text in outline.texts) == 2


def test_nothing_to_say_is_nothing():
    assert draw_record(UnitRecord(), "u") == ""
